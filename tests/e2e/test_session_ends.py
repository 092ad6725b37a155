"""Clocks that jump, sweeps that fail, and the end of quiet sessions all the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gateway.domain.session import EndReason, Session, SessionRef
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreUnavailable
from gateway.store.records import EXPIRY_CLAIM, MOST_ATTEMPTS, Lease, Opening
from gateway.store.sqlite.backend import SqliteStore
from gateway.turns.turn import PUT_AWAY
from tests.support.fakes import ManualClock
from tests.support.gateway import FakeAdapter, KillAt, Live, RecordingEngine, running

WEEK = 7 * 86_400.0


async def sweep(live: Live) -> None:
    await live.gateway.upkeep.expiry.sweep()
    await live.quiet()


async def test_a_clock_that_jumped_ahead_and_back_does_not_burn_a_sessions_end(
    tmp_path: Path, clock: ManualClock
) -> None:
    """The sweep saw it due, the lane did not: the real end must still come, without a message."""
    heard: list[tuple[Any, ...]] = []
    async with running(tmp_path, engine=lambda: RecordingEngine(heard), clock=clock) as live:
        await live.ask("hello")
        clock.jump(WEEK)
        accept = live.store.accept

        async def accept_and_jump_back(arrivals: Any, *, cap: int) -> Any:
            clock.jump(-WEEK)
            return await accept(arrivals, cap=cap)

        live.store.accept = accept_and_jump_back  # type: ignore[method-assign]
        await sweep(live)
        live.store.accept = accept  # type: ignore[method-assign]
        assert await live.tip() is not None
        await clock.advance(WEEK + EXPIRY_CLAIM + 3_600)
        await sweep(live)
        assert await live.tip() is None
    assert [told[0] for told in heard].count("end") == 1


class EndsLater(SqliteStore):
    """A store that cannot end sessions while `failing`."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        super().__init__(folder / "legato.db", clock=clock, concurrency=16)
        self.failing = True
        self.refused = 0

    async def end_session(
        self, lease: Lease, ref: SessionRef, reason: EndReason, at: float, opening: Opening | None
    ) -> Session | None:
        if self.failing:
            self.refused += 1
            raise StoreUnavailable("The disk is full.")
        return await super().end_session(lease, ref, reason, at, opening)


async def test_an_end_that_the_store_refused_once_comes_with_a_later_sweep(tmp_path: Path, clock: ManualClock) -> None:
    store = EndsLater(tmp_path, clock)
    async with running(tmp_path, store=store, clock=clock) as live:
        await live.ask("hello")
        await clock.advance(WEEK)
        await live.gateway.upkeep.expiry.sweep()
        await clock.until_pending()
        await live.advance_until(lambda: store.refused > 1, seconds=10.0)
        store.failing = False

        async def ended() -> bool:
            return await live.tip() is None

        await live.advance_until(ended, seconds=10.0)
        await live.quiet()
        assert live.adapter.shown("c") == ["echo: hello", PUT_AWAY]


async def test_an_end_that_kills_the_process_is_buried_without_a_word(tmp_path: Path, clock: ManualClock) -> None:
    """The person sent nothing, so nothing of theirs can have gone unanswered."""
    adapters: list[FakeAdapter] = []
    async with running(tmp_path, clock=clock) as live:
        await live.ask("hello")
    await clock.advance(WEEK)
    killers: Sequence[KillAt] = [KillAt("turn.claimed") for _ in range(MOST_ATTEMPTS + 2)]
    for kill in killers:
        adapters.append(FakeAdapter())
        async with running(tmp_path, clock=clock, adapter=adapters[-1], points=kill) as live:
            while not kill.passed.is_set() and (await live.store.status()).waiting:
                await clock.advance(1)
        await clock.advance(61)
    shown = [row.text for adapter in adapters for row in adapter.sent]
    assert set(shown) <= {PUT_AWAY}
