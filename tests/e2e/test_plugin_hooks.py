"""Hooks of plug-ins: the example of docs/adding.md, installed beside one that is broken, in the real program; and
those that hang."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from gateway.agent.moments import Answered, Asked, Called, Compact, Compacting, Note, Refuse, Replace, Returned, Said
from gateway.agent.plugged import REST, Plugged, made
from gateway.agent.tools.ask_person import KEPT_BACK
from gateway.runtime.errors import ConfigError
from gateway.runtime.structs import replace
from tests.support.asking import results
from tests.support.fakes import ManualClock
from tests.support.gateway import Gate, Live, Say, config_in, in_turn, running
from tests.support.program import ROOT, chatting, legato

if TYPE_CHECKING:
    from tests.support.redis_server import RedisServer  # at run time it is a plugin, which nobody may import first

pytest_plugins = ["tests.support.redis_server"]

BROKEN = """
import asyncio

class Broken:
    def on_message(self, said):
        raise SystemExit("no")

    async def before_model(self, asked):
        asked.messages.clear()
        return "something"

    async def after_model(self, answered):
        raise asyncio.CancelledError

    def before_tool(self, called):
        raise asyncio.CancelledError

    def after_tool(self, returned):
        raise KeyError("x")
"""
CARD = "4111 1111 1111 1111"
ESCAPED = CARD.replace(" ", "\\u0020")  # as a model may write it


def installed(folder: Path) -> dict[str, str]:
    """The environment of a program with the page's plug-in, and one that comes before it and does everything wrong."""
    page = (ROOT / "docs/adding.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^## Add hooks\n.*?^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    for package, code, points in (
        ("legato_warden", example, "warden = legato_warden:Warden"),
        ("legato_broken", BROKEN, "broken = legato_broken:Broken"),
    ):
        information = folder / "site" / f"{package}-1.0.dist-info"
        information.mkdir(parents=True)
        (folder / "site" / f"{package}.py").write_text(code, encoding="utf-8")
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (information / "entry_points.txt").write_text(f"[legato.hooks]\n{points}\n")
    return {"PYTHONPATH": f"{folder / 'site'}:{ROOT}"}


@pytest.mark.parametrize("store", ["sqlite", pytest.param("redis", marks=pytest.mark.slow)])
async def test_the_example_of_the_page_in_the_real_program(
    tmp_path: Path, redis_server: RedisServer, store: str
) -> None:
    redis_server.empty()
    url = redis_server.url if store == "redis" else f"sqlite:///{tmp_path / 'legato.db'}"
    (tmp_path / "config.yaml").write_text(json.dumps({"store": {"url": url}}), encoding="utf-8")
    (tmp_path / "secret.txt").write_text("hidden")
    where = installed(tmp_path)
    async with chatting(tmp_path, **where) as program:
        said = [
            {"id": "card", "text": f"my card is {CARD}"},
            {"id": "price", "text": "the table costs 300 €"},
            {"id": "tool", "text": f'call clock {{"timezone": "{ESCAPED}"}}'},
            {"id": "secret", "text": 'call read_file {"name": "secret.txt"}'},
            {"id": "last", "text": "/recall card"},
            {"id": "new", "text": "/new"},
        ]
        for each in said:
            program.send(each)
            await program.until_answered(each["id"])
        card, price, tool, secret, last, _ = await program.until_answered(*(each["id"] for each in said))
        status, errors = await program.finish()
    assert status == 0, errors
    assert (card["kind"], card["text"]) == ("error", "I take no card numbers; send your message again without it.")
    assert "[Note of the plug-in warden: Amounts are in euros.]" in price["text"]
    assert "[a card number]" in tool["text"]
    assert CARD not in tool["text"]
    assert "Files with secrets are not for you." in secret["text"]
    assert CARD not in last["text"]
    seen = (tmp_path / "warden.txt").read_text().splitlines()
    key = seen[0].removeprefix("began ")
    assert seen == [f"began {key}", f"ended {key}", f"began {key}"]
    status, out, _ = await legato(tmp_path, "plugins", **where)
    assert (status, "hooks:\n  * broken  from legato_broken 1.0\n  * warden" in out) == (0, True)


class Wise:
    """Answers what it is told to, and notes its moments."""

    def __init__(self) -> None:
        self.moments: list[Any] = []
        self.answers: dict[str, Any] = {}

    async def on_message(self, said: Said) -> Any:
        return self._answer("on_message", said)

    async def before_model(self, asked: Asked) -> Any:
        return self._answer("before_model", asked)

    def after_model(self, answered: Answered) -> Any:
        return self._answer("after_model", answered)

    def before_tool(self, called: Called) -> Any:
        return self._answer("before_tool", called)

    def after_tool(self, returned: Returned) -> Any:
        return self._answer("after_tool", returned)

    def before_compaction(self, compacting: Compacting) -> Any:
        return self._answer("before_compaction", compacting)

    def _answer(self, name: str, moment: Any) -> Any:
        self.moments.append(moment)
        return self.answers.get(name)


def plug(live: Live, **plugins: Any) -> Plugged:
    """Give a running gateway these plug-ins."""
    agents = live.gateway.agents
    plugged = Plugged(plugins=plugins, clock=live.clock)
    agents.sessions.hooks.plugged = plugged
    for name in ("fitting", "steps", "compactor"):
        getattr(agents, name).keywords["plugged"] = plugged
    return plugged


async def test_several_plug_ins_have_their_order_and_what_they_answer_counts(tmp_path: Path) -> None:
    first, second = Wise(), Wise()
    first.answers = {"on_message": (Note("one"), Note("[CONTEXT"))}
    second.answers = {"on_message": Note("two"), "after_tool": Replace("second")}
    async with running(tmp_path) as live:
        plug(live, first=first, second=second)
        live.model.script = in_turn(Say(calls=[("clock", "{}")]), Say(text="done"))
        await live.ask("hello")
        asked = next(each for each in second.moments if isinstance(each, Asked))
        assert next(text for _, text in live.model.spoken()).startswith("hello\n[Note of the plug-in first: one]")
        assert "[Note of the plug-in second: two]" in asked.messages[-1]["content"]
        assert [each.text for each in second.moments if isinstance(each, Answered)] == ["", "done"]
        first.answers = {"after_tool": Replace("first")}
        live.model.script = in_turn(Say(calls=[("clock", "{}")]), Say(text="done"))
        await live.ask("again")
        assert live.model.requests[-1].messages[-1]["content"] == "second"
        assert [each.text for each in second.moments if isinstance(each, Returned)][-1] == "first"
        first.answers = {"on_message": Refuse("Not now.")}
        second.moments.clear()
        assert await live.ask("third") == "Not now."
        assert second.moments == []
        assert "third" not in str(await live.store.transcript(await live.tip()))  # type: ignore[arg-type]


async def test_a_wish_for_a_compaction_is_followed_where_there_is_something_to_compact(tmp_path: Path) -> None:
    wise = Wise()
    async with running(tmp_path, config=config_in(tmp_path)) as live:
        plug(live, wise=wise)
        wise.answers = {"after_model": Compact()}
        await live.ask("short")
        await live.ask("short again")
        assert not [each for each in wise.moments if isinstance(each, Compacting)]
        wise.answers = {}
        for number in range(12):
            await live.ask(f"{number} " + "words that fill the window " * 266)
        before = await live.tip()
        wise.answers = {"on_message": Compact()}
        await live.ask("and now")
        wise.answers = {}
        after = await live.tip()
        assert before is not None
        assert after is not None
        assert after.compaction_count == before.compaction_count + 1
        assert [each.trigger for each in wise.moments if isinstance(each, Compacting)][-1] == "plugin"


class Hanging:
    """Never returns."""

    def __init__(self) -> None:
        self.release, self.calls = threading.Event(), list[str]()

    def on_message(self, said: Said) -> None:
        self.calls.append("on_message")
        self.release.wait(60)

    async def before_tool(self, called: Called) -> None:
        self.calls.append("before_tool")
        await asyncio.Event().wait()


async def test_a_hook_that_hangs_costs_its_limit_once_and_rests(tmp_path: Path, clock: ManualClock) -> None:
    hanging, wise = Hanging(), Wise()
    try:
        async with running(tmp_path, clock=clock) as live:
            plug(live, hanging=hanging, wise=wise)

            async def ask(text: str) -> str:
                live.model.script = in_turn(Say(calls=[("clock", "{}")]), Say(text=f"done: {text}"))
                event = await live.tell(text)
                await live.advance_until(lambda: live.adapter.answer_to(event), seconds=1.0)
                return (await live.answer(event)).text

            with capture_logs() as logs:
                assert await ask("one") == "done: one"
                assert await ask("two") == "done: two"
            assert hanging.calls == ["on_message", "before_tool"]
            told = [each for each in logs if each["event"] == "hook_called" and each["error"]]
            assert [(each["plugin"], each["hook"], each["outcome"]) for each in told] == [
                ("hanging", "on_message", "timed out"),
                ("hanging", "before_tool", "timed out"),
            ]
            assert [each.text for each in wise.moments if isinstance(each, Said)] == ["one", "two"]
            await clock.advance(REST)
            assert await ask("three") == "done: three"
            assert hanging.calls.count("on_message") == 2
    finally:
        hanging.release.set()


async def test_a_message_that_steers_a_turn_is_heard_too_and_a_refused_one_is_told_behind_it(tmp_path: Path) -> None:
    wise = Wise()
    async with running(tmp_path) as live:
        plug(live, wise=wise)
        gate = Gate()
        live.model.script = in_turn(Say(calls=[("clock", "{}")], gate=gate), Say(text="done"))
        first = await live.tell("begin")
        await gate.until_waiting()
        wise.answers = {"on_message": Refuse("Not that.")}
        steered = await live.tell("/steer leave it")
        gate.open()
        assert (await live.answer(first)).text == "done"
        assert (await live.answer(steered)).text == "Not that."
        assert [each.text for each in wise.moments if isinstance(each, Said)] == ["begin", "leave it"]


async def test_words_that_answer_a_question_and_corrected_ones_are_heard_too(tmp_path: Path) -> None:
    wise, gate = Wise(), Gate()
    async with running(tmp_path) as live:
        plugged = plug(live, wise=wise)
        live.model.script = in_turn(
            Say(calls=[("ask_person", '{"question": "Which?", "options": ["this", "that"]}')]),
            Say(calls=[("ask_person", '{"question": "How do you pay?"}')], gate=gate),
            Say(text="done"),
        )
        event = await live.tell("begin")

        async def answered(count: int, said: str) -> None:
            questions = live.adapter.shown
            await live.adapter.until(lambda: len(questions("c", "question")) >= count)
            await live.tell(said)

        wise.answers = {"on_message": Note("noted")}
        await answered(1, "2")
        await gate.until_waiting()
        wise.answers = {"on_message": Refuse("No card numbers.")}
        gate.open()
        await answered(2, f"with {CARD}")
        assert (await live.answer(event)).text == "done"
        assert results(live.model) == ["The person answered: that", KEPT_BACK.format(sentence="No card numbers.")]
        assert [each.text for each in wise.moments if isinstance(each, Said)] == ["begin", "2", f"with {CARD}"]
        session = await live.tip()
        assert session is not None
        said = live.adapter.inbound(f"with {CARD}")
        assert (await plugged.message(session, said)).refusal
        wise.answers = {}
        corrected = replace(said, text="in cash")
        assert not (await plugged.message(session, corrected)).refusal


class Unfit:
    """Has a hook that takes nothing."""

    def on_message(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    ("offered", "said"), [(Unfit, "on_message must take one moment"), (object(), "it has no hook")]
)
def test_a_plug_in_that_does_not_fit_is_named_at_the_start(offered: Any, said: str) -> None:
    class Point:
        group, name, dist, value = "legato.hooks", "odd", None, "odd:Odd"

        def load(self) -> Any:
            return offered

    with pytest.raises(ConfigError, match=said):
        made(Point())  # type: ignore[arg-type]
