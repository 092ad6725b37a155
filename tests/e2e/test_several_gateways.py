"""Two gateways on one Redis: what one accepts reaches the turn that the other runs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gateway.domain.chat import Attachment
from gateway.domain.turn import BUSY, STOPPED, SessionSettings
from gateway.runtime.clock import SystemClock
from gateway.runtime.structs import replace
from gateway.store.redis import RedisStore
from tests.support.gateway import FakeAdapter, Live, config_in, running
from tests.support.model import FakeModel, Gate, Say, echo, in_turn
from tests.support.waiting import eventually

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_server"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """`runner` has begun a turn in chat "c", which waits at `gate`; `other` is the second process."""

    runner: Live
    other: Live
    gate: Gate

    def shown(self, *kinds: str) -> list[str]:
        """Return the texts that the chat was shown by either, each once for every time."""
        return [*self.runner.adapter.shown("c", *kinds), *self.other.adapter.shown("c", *kinds)]

    async def asked(self, text: str) -> str:
        """Say something to the other process; the answer, whoever shows it."""
        event = await self.other.tell(text)

        def answer() -> str | None:
            for live in (self.other, self.runner):
                if (row := live.adapter.answer_to(event)) is not None:
                    return row.text
            return None

        found: str = await eventually(answer)
        return found


@asynccontextmanager
async def pair(server: RedisServer, folder: Path, *, sessions: SessionSettings | None = None) -> AsyncIterator[Pair]:
    """Both gateways, once one of them runs the turn."""
    server.empty()
    gate = Gate()
    model = FakeModel(in_turn(Say(text="the answer", gate=gate), then=echo))
    config = config_in(folder, **({"sessions": sessions} if sessions else {}))

    def gateway() -> AbstractAsyncContextManager[Live]:
        store = RedisStore(server.url, clock=SystemClock())
        return running(folder, config=config, model=model, adapter=FakeAdapter(), store=store)

    async with gateway() as one, gateway() as two:
        await one.tell("think hard")
        await gate.until_waiting()
        mine = one.gateway.running_turns.count() > 0  # whichever claimed it
        runner, other = (one, two) if mine else (two, one)
        yield Pair(runner=runner, other=other, gate=gate)


async def test_a_stop_ends_the_turn_of_another_process(redis_server: RedisServer, tmp_path: Path) -> None:
    async with pair(redis_server, tmp_path) as both:
        assert re.match(
            r"I am working on a message that came \d+ s ago\. /stop ends my work\.", await both.asked("/status")
        )
        assert (await both.asked("/stop")).startswith("Stopping.")
        await eventually(lambda: STOPPED in both.shown("notice"))
        await eventually(lambda: both.gate.waiting == 0)
        assert await both.asked("/stop") == "Nothing is running."
        assert await both.asked("and now?") == "echo: and now?"
        assert "the answer" not in both.shown()


async def test_a_message_waits_for_the_turn_of_another_process_and_its_person_is_told(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    async with pair(redis_server, tmp_path) as both:
        waiting = asyncio.create_task(both.asked("me too"))
        await eventually(lambda: BUSY in both.shown("notice"))
        both.gate.open()
        assert await waiting == "echo: me too"
        assert both.shown("notice") == [BUSY]
        assert sorted(both.shown("reply")) == ["echo: me too", "the answer"]


async def test_text_for_the_running_turn_reaches_it_in_another_process(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    sessions = SessionSettings(busy_mode="interrupt")
    async with pair(redis_server, tmp_path, sessions=sessions) as both:
        assert await both.asked("rather this") == "echo: rather this"
        assert both.gate.waiting == 0
        assert "the answer" not in both.shown()
        session = await both.other.tip()
        assert session is not None
        said = await both.other.store.transcript(session)
        assert [message["content"] for message in said if message["role"] == "user"] == ["think hard", "rather this"]


async def test_parts_that_different_processes_receive_are_one_message(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    async with pair(redis_server, tmp_path) as both:
        first, second = (
            replace(
                both.other.adapter.inbound(text), part_of="album 7", attachments=(Attachment(kind="image", ref="r"),)
            )
            for text in ("one", "two")
        )
        await both.other.adapter.receive(first)
        await eventually(lambda: both.shown("notice") == [BUSY])
        await both.runner.adapter.receive(second)
        both.gate.open()
        await eventually(lambda: len(both.shown("reply")) == 2)
        await both.runner.quiet()
        await both.other.quiet()
        assert (
            sum(text.startswith("echo: (1: a picture) one\n(2: a picture) two\n[") for text in both.shown("reply")) == 1
        )
        assert len(both.shown()) == 3


@pytest.mark.parametrize("text", ["same event", "/whoami"])
async def test_an_event_that_both_receive_is_answered_once(
    redis_server: RedisServer, tmp_path: Path, text: str
) -> None:
    async with pair(redis_server, tmp_path) as both:
        inbound = both.runner.adapter.inbound(text, chat="twice", event="e-twice")
        answers = await asyncio.gather(*(live.adapter.receive(inbound) for live in (both.runner, both.other)))
        assert sorted(answer[0].status for answer in answers) == ["duplicate", "new"]
        await eventually(lambda: len(both.runner.adapter.shown("twice")) + len(both.other.adapter.shown("twice")))
        both.gate.open()
        await both.runner.quiet()
        await both.other.quiet()
        assert len(both.runner.adapter.shown("twice")) + len(both.other.adapter.shown("twice")) == 1
