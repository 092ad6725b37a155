"""The model asks the person something in the middle of a turn."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gateway.agent.tools.ask_person import REFUSED, UNANSWERED
from gateway.domain.adapter import Limits
from gateway.people.access import AccessSettings
from gateway.runtime.clock import SystemClock
from gateway.store.port import Store
from gateway.store.redis import RedisStore
from gateway.turns.reception import ASKING_WORDS
from tests.support.asking import WithButtons, asked, results
from tests.support.fakes import ManualClock
from tests.support.gateway import STORE_STEPS, FakeModel, KillAt, Killed, MortalStore, Say, config_in, in_turn, running

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_server"]

EVERYBODY = AccessSettings(allow=("fake:*",))
Opened = Callable[[], Store]


def asks(question: str, *options: str, **more: Any) -> Say:
    given = {"options": options} if options else {}
    return Say(calls=[("ask_person", json.dumps({"question": question, **given, **more}))])


async def test_options_are_buttons_and_any_words_are_an_answer(tmp_path: Path) -> None:
    model = FakeModel(
        in_turn(
            asks("Which colour?", "red", "blue"),
            asks("Which sizes?", "S", "M", "L", multiple=True),
            asks("For whom?", "me", "Anna"),
            asks("How many?"),
            asks("Gift wrap?", "yes", "no"),
            Say(text="ordered"),
        )
    )
    async with running(
        tmp_path, config=config_in(tmp_path, access=EVERYBODY), model=model, adapter=WithButtons(limits=Limits())
    ) as live:
        event = await live.tell("order a shirt")
        assert (await asked(live)).startswith("Which colour?\n1. red\n2. blue\n\nYour next message is the answer")
        row = next(each for each in live.adapter.sent if each.kind == "question")
        assert [button.label for line in row.buttons for button in line] == [
            "red",
            "blue",
            "In other words …",
            "Refuse",
        ]
        await live.adapter.receive(live.adapter.inbound(row.buttons[1][0].token, kind="press", user="somebody"))
        await live.adapter.receive(live.adapter.inbound(row.buttons[1][0].token, kind="press"))
        for number, said in enumerate(("1 and 3", "my brother, he is 2 m tall", "7", "/deny"), 2):
            await asked(live, number)
            await live.tell(said)
        assert (await live.answer(event)).text == "ordered"
    answers = ("blue", "S; L", "my brother, he is 2 m tall", "7")
    assert results(model) == [*(f"The person answered: {each}" for each in answers), REFUSED]


async def test_a_restart_asks_nothing_twice(tmp_path: Path, reopened: Opened) -> None:
    model = FakeModel(in_turn(asks("Which?", "this", "that"), asks("Which?", "this", "that"), Say(text="done")))
    before, after = (WithButtons(limits=Limits(trusted=True)) for _ in range(2))
    async with running(tmp_path, model=model, adapter=before, store=reopened()) as live:
        event = await live.tell("go")
        await asked(live)
        live.gateway.stop(grace=0)
    async with running(tmp_path, model=model, adapter=after, store=reopened()) as live:
        await live.tell("/answer that")
        assert "Which?" in await asked(live)
        await live.tell("/answer 1")
        assert (await live.answer(event)).text == "done"
        await live.quiet()
    assert [
        len([row for row in each.sent if row.kind == "question" and not row.edits]) for each in (before, after)
    ] == [1, 1]
    assert results(model) == ["The person answered: that", "The person answered: this"]


class DiesAt(MortalStore):
    """A store whose process dies just before a step."""

    step = ""

    def __getattribute__(self, name: str) -> Any:
        kill = object.__getattribute__(self, "kill")
        if kill is not None and name == object.__getattribute__(self, "step"):
            kill.passed.set()
        return super().__getattribute__(name)


class DiesOnRedisAt(RedisStore):
    """The same on Redis, where nobody lets go of what a dead process holds."""

    step = ""
    kill: KillAt | None = None

    def __getattribute__(self, name: str) -> Any:
        kill = object.__getattribute__(self, "kill")
        if kill is not None and name == object.__getattribute__(self, "step"):
            kill.passed.set()
        if kill is not None and kill.passed.is_set() and name in STORE_STEPS:
            raise Killed
        return object.__getattribute__(self, name)


@pytest.mark.parametrize("step", ["running", "amend", "decide"])
async def test_an_answer_that_was_stored_before_a_kill_is_taken_once(tmp_path: Path, step: str) -> None:
    model, clock = FakeModel(in_turn(asks("Which?"), Say(text="done"))), ManualClock()
    dying, kill = DiesAt(tmp_path / "legato.db", clock=clock), KillAt("accept.after", 0)
    dying.kill = kill
    async with running(tmp_path, model=model, clock=clock, points=kill, store=dying) as live:
        event = await live.tell("go")
        await asked(live)
        await clock.advance(3)
        dying.step = step
        with suppress(Killed):
            await live.tell("that one")
    assert kill.passed.is_set()
    async with running(tmp_path, model=model, clock=clock) as live:
        await live.advance_until(lambda: live.adapter.answer_to(event), seconds=6)
        await live.quiet()
        assert [row.text for row in live.adapter.sent if row.kind == "reply"] == ["done"]
    assert results(model) == ["The person answered: that one"]


@pytest.mark.slow
@pytest.mark.parametrize("step", ["running", "amend", "decide"])
async def test_on_redis_another_process_takes_such_an_answer_once(
    tmp_path: Path, step: str, redis_server: RedisServer
) -> None:
    redis_server.empty()
    model = FakeModel(in_turn(asks("Which?"), Say(text="done")))
    kill, lease = KillAt("accept.after", 0), 1.0
    dying = DiesOnRedisAt(redis_server.url, clock=SystemClock(), lease_seconds=lease)
    dying.kill = kill
    async with running(tmp_path, model=model, points=kill, store=dying) as live:
        event = await live.tell("go")
        await asked(live)
        dying.step = step
        with suppress(Killed):
            await live.tell("that one")
    assert kill.passed.is_set()
    store = RedisStore(redis_server.url, clock=SystemClock(), lease_seconds=lease)
    async with running(tmp_path, model=model, store=store) as live:
        assert (await live.answer(event)).text == "done"
        await live.quiet()
        assert [row.text for row in live.adapter.sent if row.kind == "reply"] == ["done"]
    assert results(model) == ["The person answered: that one"]


async def test_without_an_answer_the_turn_goes_on(tmp_path: Path) -> None:
    model, clock = FakeModel(in_turn(asks("Which?"), Say(text="I took the first"))), ManualClock()
    async with running(tmp_path, model=model, clock=clock) as live:
        event = await live.tell("go")
        await asked(live)
        await clock.advance(600)
        assert (await live.answer(event)).text == "I took the first"
    assert results(model) == [UNANSWERED]


async def test_what_is_no_answer_in_words_is_told_how_to_give_one(tmp_path: Path) -> None:
    model = FakeModel(in_turn(asks("Which?"), Say(text="done")))
    async with running(tmp_path, model=model) as live:
        event = await live.tell("go")
        await asked(live)
        await live.tell("/answer")
        await live.adapter.until(lambda: "/answer the blue one" in "".join(live.adapter.shown("c", "error")))
        await live.tell("/steer be quick")
        await live.adapter.until(lambda: live.adapter.shown("c", "notice") == [ASKING_WORDS])
        await live.tell("that one")
        assert (await live.answer(event)).text == "done"
    assert results(model) == ["The person answered: that one"]
