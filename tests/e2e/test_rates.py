"""A platform's rates, kept by a whole gateway on a real file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gateway.domain.adapter import GRACE, Rate
from gateway.domain.chat import ChatAddress, Outbound
from gateway.runtime.errors import RateLimited
from tests.support.fakes import ManualClock
from tests.support.gateway import FakeAdapter, running


class Paced(FakeAdapter):
    """A platform that takes two messages in ten seconds, and writes down when."""

    account = "bot"

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock
        self.moments: list[float] = []

    def rates(self, to: ChatAddress) -> Sequence[Rate]:
        """Everybody shares one limit."""
        return [Rate(bucket="all", most=2, seconds=10.0)]

    async def send(self, outbound: Outbound) -> str:
        """Show it, and note the time."""
        shown = await super().send(outbound)
        self.moments.append(self._clock.monotonic())
        return shown


async def test_replies_come_as_fast_as_the_platform_allows_and_no_faster(tmp_path: Path) -> None:
    clock = ManualClock()
    adapter = Paced(clock)
    async with running(tmp_path, adapter=adapter, clock=clock) as live:
        adapter.failures = [RateLimited("slow down", retry_after=5.0)]
        events = [await live.tell(f"m{number}", chat=f"c{number}") for number in range(7)]
        await live.advance_until(lambda: len(adapter.sent) == 7, seconds=0.25)
        assert sorted([(await live.answer(event)).text for event in events]) == [f"echo: m{n}" for n in range(7)]
        assert all(
            last - first >= 10.0 - GRACE for first, last in zip(adapter.moments, adapter.moments[2:], strict=False)
        )
        await live.quiet()
        rows = await live.store.outbox(None, 20)
        assert {(row.state, row.ambiguous) for row in rows} == {("sent", 0)}
