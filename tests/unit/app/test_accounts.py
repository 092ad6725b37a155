"""One process reads an account: who waits, who takes over, who gives up."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

import pytest

from gateway.app.accounts import LEASE_SECONDS, AccountLeases
from gateway.domain.adapter import Accept, Limits
from gateway.domain.chat import Outbound
from gateway.runtime.errors import Disconnected, StoreLocked, StoreUnavailable
from gateway.runtime.tasks import Background
from tests.support.fakes import ManualClock


class Leases:
    """The two methods of the store that matter here, shared by all who hold a reference."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.held: dict[str, tuple[str, float]] = {}
        self.down = False
        self.hangs = False
        self.sends: set[str] = set()  # what the last one who said so sends to

    async def hold(self, name: str, holder: str, seconds: float) -> bool:
        if self.down:
            raise StoreUnavailable("the store is away")
        if self.hangs:
            await self._clock.sleep(1_000)
        owner, until = self.held.get(name, ("", 0.0))
        if owner not in ("", holder) and until > self._clock.monotonic():
            return False
        self.held[name] = (holder, self._clock.monotonic() + seconds)
        return True

    def serve(self, *, runs: Collection[str], sends: Collection[str]) -> None:
        self.sends = set(sends)

    async def let_go(self, name: str, holder: str) -> None:
        if self.held.get(name, ("", 0.0))[0] == holder:
            del self.held[name]


class Reader:
    """An adapter with an account, which reads until it is told that there is no more."""

    name = "probe"
    limits = Limits()
    account = "bot"

    def __init__(self, *, waits: bool = True, reader_sends: bool = False) -> None:
        self.waits_for_account = waits
        self.reader_sends = reader_sends
        self.reading = False
        self.begun = 0
        self.no_more = asyncio.Event()
        self.breaks: Exception | None = None

    async def run(self, accept: Accept) -> None:
        self.reading = True
        self.begun += 1
        self.accept = accept
        try:
            await self.no_more.wait()
            if self.breaks:
                raise self.breaks
        finally:
            self.reading = False

    async def send(self, outbound: Outbound) -> str:
        return outbound.id

    async def aclose(self) -> None:
        self.no_more.set()


async def nothing(batch):
    return []


@pytest.fixture
def leases(clock: ManualClock) -> Leases:
    return Leases(clock)


def owner(leases: Leases, clock: ManualClock, worker: str, background: Background | None = None) -> AccountLeases:
    return AccountLeases(store=leases, clock=clock, worker=worker, background=background or Background(), runs=())


async def test_the_second_waits_and_takes_over_within_fifteen_seconds_of_a_death(
    leases: Leases, clock: ManualClock
) -> None:
    first, second, doomed = Reader(), Reader(), Background()
    one = asyncio.create_task(owner(leases, clock, "w1", doomed).read(first, nothing))
    await clock.settle()
    two = asyncio.create_task(owner(leases, clock, "w2").read(second, nothing))
    await clock.advance(60)
    assert (first.reading, second.reading) == (True, False)

    one.cancel()  # killed: it lets nothing go
    await doomed.aclose()
    leases.held["probe:bot"] = ("w1", clock.monotonic() + LEASE_SECONDS)
    await clock.advance(15)
    assert second.reading

    second.no_more.set()
    await two
    assert "probe:bot" in leases.held  # what it read is yet to be answered


async def test_who_loses_the_lease_stops_reading_and_comes_back_when_it_is_free(
    leases: Leases, clock: ManualClock
) -> None:
    reader = Reader()
    reading = asyncio.create_task(owner(leases, clock, "w1").read(reader, nothing))
    await clock.settle()
    leases.held["probe:bot"] = ("w2", clock.monotonic() + 30)
    await clock.advance(6)
    assert not reader.reading
    await clock.advance(40)
    assert reader.reading
    reader.no_more.set()
    await reading


async def test_a_store_that_is_away_for_longer_than_the_lease_ends_the_reading(
    leases: Leases, clock: ManualClock
) -> None:
    reader = Reader()
    reading = asyncio.create_task(owner(leases, clock, "w1").read(reader, nothing))
    await clock.settle()
    leases.down = True
    await clock.advance(8)
    assert reader.reading
    await clock.advance(10)
    assert not reader.reading
    leases.down = False
    await clock.advance(3)
    assert reader.reading
    reader.no_more.set()
    await reading


async def test_a_store_that_gives_no_answer_ends_the_reading_with_the_lease(leases: Leases, clock: ManualClock) -> None:
    reader = Reader()
    reading = asyncio.create_task(owner(leases, clock, "w1").read(reader, nothing))
    await clock.settle()
    leases.hangs = True
    await clock.advance(LEASE_SECONDS - 1)
    assert reader.reading
    await clock.advance(2)
    assert not reader.reading
    leases.hangs = False
    reader.no_more.set()
    await clock.advance(1_000)
    await reading


async def test_one_that_does_not_wait_for_another_waits_for_the_store(leases: Leases, clock: ManualClock) -> None:
    reader = Reader(waits=False)
    reading = asyncio.create_task(owner(leases, clock, "w1").read(reader, nothing))
    await clock.settle()
    leases.down = True
    await clock.advance(LEASE_SECONDS + 10)
    assert (reader.reading, reading.done()) == (False, False)
    leases.down = False
    await clock.advance(3)
    assert reader.reading
    reader.no_more.set()
    await reading


async def test_one_that_does_not_wait_says_who_is_there(leases: Leases, clock: ManualClock) -> None:
    await leases.hold("probe:bot", "w2", 30)
    with pytest.raises(StoreLocked, match="already uses this store"):
        await owner(leases, clock, "w1").read(Reader(waits=False), nothing)


async def test_what_the_adapter_raises_comes_out_as_itself(leases: Leases, clock: ManualClock) -> None:
    reader = Reader()
    reader.breaks = Disconnected("the platform is gone")
    reader.no_more.set()
    with pytest.raises(Disconnected):
        await owner(leases, clock, "w1").read(reader, nothing)


async def test_where_only_the_reader_sends_the_right_to_send_comes_and_goes_with_the_account(
    leases: Leases, clock: ManualClock
) -> None:
    reader, mine = Reader(reader_sends=True), owner(leases, clock, "w1")
    await leases.hold("probe:bot", "w2", 30)
    mine.begin([reader])
    reading = asyncio.create_task(mine.read(reader, nothing))
    await clock.settle()
    assert leases.sends == set()
    await clock.advance(32)
    assert leases.sends == {"probe"}
    leases.held["probe:bot"] = ("w2", clock.monotonic() + 30)
    await clock.advance(6)
    assert leases.sends == set()
    await clock.advance(40)
    reader.no_more.set()
    await reading
    assert leases.sends == {"probe"}
    await mine.aclose()
    assert leases.held == {}


@pytest.mark.parametrize("away", ["down", "hangs"])
async def test_a_terminal_reads_on_while_the_store_is_away_and_its_input_waits(
    leases: Leases, clock: ManualClock, away: str
) -> None:
    reader, mine = Reader(waits=False, reader_sends=True), owner(leases, clock, "w1")
    mine.begin([reader])
    reading = asyncio.create_task(mine.read(reader, nothing))
    await clock.settle()
    setattr(leases, away, True)
    await clock.advance(LEASE_SECONDS + 1)
    assert (reader.reading, leases.sends) == (True, set())
    with pytest.raises(StoreUnavailable, match="asked for again"):
        await reader.accept([])
    reader.no_more.set()  # what it read is yet to be answered and shown
    await reading
    setattr(leases, away, False)
    await clock.advance(1_000)
    assert (reader.begun, leases.sends) == (1, {"probe"})
    assert await reader.accept([]) == []
    await mine.aclose()
    assert leases.held == {}


async def test_a_terminal_whose_place_was_taken_meanwhile_says_so(leases: Leases, clock: ManualClock) -> None:
    reader = Reader(waits=False, reader_sends=True)
    reading = asyncio.create_task(owner(leases, clock, "w1").read(reader, nothing))
    await clock.settle()
    leases.held["probe:bot"] = ("w2", clock.monotonic() + 30)
    await clock.advance(6)
    with pytest.raises(StoreLocked, match="already uses this store"):
        await reading
    assert not reader.reading


async def test_any_process_sends_where_the_reader_need_not(leases: Leases, clock: ManualClock) -> None:
    await leases.hold("probe:bot", "w2", 30)
    owner(leases, clock, "w1").begin([Reader()])
    assert leases.sends == {"probe"}
