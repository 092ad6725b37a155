"""A temporary chat: nothing else learns of it while it lives, and it is nowhere once it has ended."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gateway.agent.forgetting import NOT_UNDONE
from gateway.agent.memory.snapshot import MemorySettings
from gateway.domain.chat import OWN, Attachment, SessionKey
from gateway.domain.memory import scope_of
from gateway.domain.message import text_of
from gateway.runtime.clock import SystemClock
from gateway.store.redis import RedisStore
from tests.support.fakes import ManualClock
from tests.support.gateway import Fetching, KillAt, Live, RecordingEngine, Say, config_in, in_turn, running
from tests.support.remains import in_files, in_keys, in_server, left_in_the_end

if TYPE_CHECKING:
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_server"]

WORD = "quizzaciously"
DAY = 86_400.0
OTHER = f"{OWN}other"


@dataclass(frozen=True, slots=True)
class Place:
    """A gateway's store, which may be opened again, and where a word of it is still found."""

    run: Callable[..., AbstractAsyncContextManager[Live]]
    remains: Callable[[], list[str]]


def remains_in(folder: Path) -> list[str]:
    """The files of a store in which the word is still found."""
    return in_files([folder / "legato.db", folder / "legato.db-wal"], WORD)


@pytest.fixture(params=["sqlite", "redis"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "sqlite":
        return Place(run=lambda **parts: running(tmp_path, **parts), remains=lambda: remains_in(tmp_path))
    server: RedisServer = request.getfixturevalue("redis_server")
    server.empty()

    @asynccontextmanager
    async def run(**parts: Any) -> AsyncIterator[Live]:
        store = RedisStore(server.url, clock=SystemClock())
        async with running(tmp_path, store=store, **parts) as live:
            yield live

    return Place(run=run, remains=lambda: in_server(server, WORD) or in_keys(server, WORD))


async def sweep(live: Live) -> None:
    await live.gateway.upkeep.expiry.sweep()
    await live.quiet()


def prompt(live: Live) -> str:
    return "\n".join(text_of(each) for each in live.model.requests[-1].messages)


def file(name: str) -> Attachment:
    return Attachment(kind="document", ref=name, name=name, mime="text/plain")


def tools(live: Live) -> set[str]:
    return {each["function"]["name"] for each in live.model.requests[-1].tools}


async def calls(live: Live) -> int:
    """How often a model was asked, as the sums say that stay."""
    return sum(each.calls for each in await live.store.usage(0.0, "model"))


async def test_it_learns_nothing_and_nothing_learns_of_it(place: Place, tmp_path: Path) -> None:
    config = config_in(tmp_path, memory=MemorySettings(flush=True))
    async with place.run(config=config) as live:
        fact = Say(calls=[("memory", json.dumps({"action": "add", "text": "The dog is called Rex."}))])
        live.model.script = in_turn(fact, Say(text="noted"))
        await live.ask("my dog is called Rex")
        live.model.script = in_turn()
        await live.ask("/new")
        await live.ask("the heliotrope blooms in June")
        assert "Rex" in prompt(live)
        before = tools(live)
        assert (await live.ask("/temporary")).startswith("This chat is temporary now.")
        await live.quiet()
        spent = await calls(live)
        await live.ask(f"my secret is {WORD}")
        await live.ask("and more of it")
        assert "Rex" not in prompt(live)
        assert "This chat is temporary" in prompt(live)
        assert before - tools(live) == {"memory", "reminders", "delegate", "patch", "shell", "write_file"} & before
        assert {"memory", "reminders"} <= before
        assert "I found nothing" in await live.ask("/recall secret", thread=OTHER)
        assert "blooms in June" in await live.ask("/recall heliotrope", thread=OTHER)
        assert WORD not in await live.ask("/sessions")
        assert await live.ask("/new") == (
            "I deleted the temporary chat. This is a fresh session. I cannot take back what my model's provider has "
            "already received. Only you can delete what you see in this chat."
        )
        await live.quiet()
        assert await calls(live) == spent + 2, "no title was made, and no fact was looked for"
        memory = await live.store.memory(scope_of(SessionKey(platform="fake", chat="c"), "direct"))
        assert [each.text for each in memory.facts if WORD in each.text] == []
        assert "heliotrope" in await live.ask("/sessions")
    assert await left_in_the_end(place.remains) == []


async def test_it_goes_by_itself_a_day_after_its_last_message(tmp_path: Path, clock: ManualClock) -> None:
    heard: list[tuple[Any, ...]] = []
    async with running(tmp_path, clock=clock, engine=lambda: RecordingEngine(heard)) as live:
        await live.ask("the heliotrope blooms in June")
        await clock.advance(60)
        await live.ask("/temporary")
        await clock.advance(60)
        await live.ask(f"my secret is {WORD}")
        await clock.advance(DAY - 60)
        await sweep(live)
        await live.ask("are you there?")
        assert WORD in prompt(live)
        await clock.advance(DAY)
        await sweep(live)
        assert live.adapter.shown()[-1].startswith("Your temporary chat ended after a long silence, and I deleted it.")
        assert await live.tip() is None
        ends = [told for told in heard if told[0] == "end"]
        assert [WORD in str(told) for told in ends] == [False, False], "an engine could keep what it is told"
        assert len(ends) == 2
        await live.ask("hello")
        assert WORD not in prompt(live)
        assert "1. the heliotrope" in await live.ask("/sessions")
    assert remains_in(tmp_path) == []


@pytest.mark.parametrize("point", ["session.ended", "session.hook_called"])
async def test_a_crash_between_its_end_and_its_deletion_loses_nothing_of_that(
    tmp_path: Path, clock: ManualClock, point: Any
) -> None:
    kill = KillAt(point, nth=2)
    async with running(tmp_path, clock=clock, points=kill) as live:
        await live.ask("the heliotrope blooms in June")
        await clock.advance(60)
        await live.ask("/temporary")
        await clock.advance(60)
        await live.ask(f"my secret is {WORD}")
        await live.tell("/new")
        await kill.passed.wait()
    assert remains_in(tmp_path) != []
    await clock.advance(60)
    async with running(tmp_path, clock=clock) as live:
        await live.quiet()
        await sweep(live)
        told = [row.text for row in await live.gateway.store.outbox(None, 99)]
        assert [each for each in told if "earlier session" in each or each.startswith("I deleted")] == [
            "I deleted the temporary chat. This is a fresh session. " + NOT_UNDONE
        ]
        await live.ask("hello")
        assert WORD not in prompt(live)
        assert "1. the heliotrope" in await live.ask("/sessions")
    assert remains_in(tmp_path) == []


async def test_what_is_said_between_two_of_them_and_after_one_stays(tmp_path: Path, clock: ManualClock) -> None:
    async with running(tmp_path, clock=clock) as live:
        await live.ask("the heliotrope blooms in June")
        for word in (f"my secret is {WORD}", f"another is {WORD}"):
            for said in ("/temporary", word, "/resume 1", "the tulip blooms in May"):
                await clock.advance(60)
                await live.ask(said)
        shown = [row.text for row in await live.gateway.store.outbox(None, 99)]
        assert shown.count("echo: the tulip blooms in May") == 2
        await sweep(live)
        left = [row.text for row in await live.gateway.store.outbox(None, 99)]
        assert left.count("echo: the tulip blooms in May") == 2
    assert remains_in(tmp_path) == []


async def test_a_rule_that_is_said_in_one_binds_no_other_chat(place: Place) -> None:
    async with place.run() as live:
        await live.ask("hello")
        await live.ask("/temporary")
        await live.ask(f"From now on, always call me {WORD}.")
        await live.ask("/new")
        await live.ask("hello")
        assert WORD not in prompt(live)


async def test_what_is_kept_is_an_ordinary_chat(place: Place) -> None:
    async with place.run() as live:
        await live.ask("/temporary")
        await live.ask(f"my secret is {WORD}")
        assert (await live.ask("/temporary keep")).startswith("This is an ordinary chat from now on")
        await live.ask("and more of it")
        assert WORD in prompt(live)
        assert "This chat is temporary" not in prompt(live)
        assert "memory" in tools(live)
        assert WORD in await live.ask("/recall secret", thread=OTHER)
        assert (tip := await live.tip()) is not None
        assert tip.expires_at == tip.last_active_at + 7 * DAY
        await live.ask("/new")
        assert WORD in await live.ask("/sessions")


async def test_words_taken_back_and_copies_stay_temporary(place: Place) -> None:
    async with place.run() as live:
        await live.ask("/temporary")
        await live.ask(f"my secret is {WORD}")
        await live.ask("/undo")
        await live.ask("something else")
        await live.ask("/branch")
        assert (tip := await live.tip()) is not None
        assert tip.temporary
        assert (await live.ask("/sessions")).endswith("There are no earlier sessions yet.")
        await live.ask("/new")
    assert await left_in_the_end(place.remains) == []


async def test_files_go_with_it(tmp_path: Path, clock: ManualClock) -> None:
    adapter = Fetching(f"the code is {WORD}".encode())
    async with running(tmp_path, clock=clock, adapter=adapter) as live:
        key = SessionKey(platform="fake", chat="c")
        await live.ask("an ordinary one", attachments=(file("kept.txt"),))
        await clock.advance(60)
        await live.ask("/temporary")
        await clock.advance(60)
        await live.ask("look at this", attachments=(file("code.txt"),))
        assert len(await live.store.kept_files(key, 10)) == 2
        await live.ask("/new")
        assert [each.name for each in await live.store.kept_files(key, 10)] == ["kept.txt"]


async def test_a_group_has_none(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        told = await live.ask("/temporary", chat_type="group")
        assert told == "I can only have a temporary chat with you alone. Ask me in a private chat."
        assert await live.tip() is None


async def test_only_a_temporary_chat_is_kept(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        await live.ask("hello")
        assert await live.ask("/temporary keep") == "This is not a temporary chat, so I keep it anyway."
        assert (await live.ask("/temporary please")).startswith("Send /temporary to start")
