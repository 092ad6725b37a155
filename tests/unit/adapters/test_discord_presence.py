"""The line below the bot's name: how often it changes, and to what, by a clock that the test owns."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hypothesis import given
from hypothesis import strategies as st

from adapters.discord.presence import EVERY, Presence
from gateway.domain.chat import ChatAddress
from tests.support.fakes import ManualClock

CHATS = [ChatAddress(platform="discord", chat=str(number)) for number in range(3)]


class Shown:
    """What people see, and when it changed."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.lines: list[str] = []
        self.moments: list[float] = []
        self.presence = Presence(self.clock, "Ask me", self._show)

    async def _show(self, line: str) -> None:
        self.lines.append(line)
        self.moments.append(self.clock.monotonic())


@asynccontextmanager
async def shown() -> AsyncIterator[Shown]:
    found = Shown()
    yield found
    await found.presence.aclose()


async def test_it_says_in_how_many_chats_the_bot_works_and_then_the_idle_line_again() -> None:
    async with shown() as found:
        for chat in CHATS[:2]:
            found.presence.switch(chat, active=True)
        await found.clock.advance(EVERY)
        found.presence.switch(CHATS[0], active=False)
        await found.clock.advance(EVERY)
        found.presence.switch(CHATS[1], active=False)
        await found.clock.advance(EVERY)
        assert found.lines == ["Working in 2 chats", "Working in 1 chat", "Ask me"]


async def test_short_work_changes_nothing_and_leaves_nothing_waiting() -> None:
    async with shown() as found:
        found.presence.switch(CHATS[0], active=True)
        await found.clock.advance(EVERY / 2)
        found.presence.switch(CHATS[0], active=False)
        await found.clock.advance(3 * EVERY)
        assert (found.lines, found.clock.pending) == ([], ())


@given(st.lists(st.tuples(st.sampled_from(CHATS), st.booleans(), st.sampled_from([0.0, 0.3, 4.9, 5.0, 7.0]))))
async def test_the_latest_wins_within_discords_rate(steps: list[tuple[ChatAddress, bool, float]]) -> None:
    at_work: set[ChatAddress] = set()
    async with shown() as found:
        for chat, active, pause in steps:
            found.presence.switch(chat, active=active)
            (at_work.add if active else at_work.discard)(chat)
            await found.clock.advance(pause)
        await found.clock.advance(2 * EVERY)
        said = f"Working in {len(at_work)} chat{'s' if len(at_work) > 1 else ''}" if at_work else "Ask me"
        assert (found.lines or ["Ask me"])[-1] == said
        for first, fifth in zip(found.moments, found.moments[5:], strict=False):
            assert fifth - first > 20.0
