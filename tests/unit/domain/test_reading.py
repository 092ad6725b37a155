"""The last read message of each channel, from one run to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from adapters.discord.codec import snowflake
from gateway.domain.adapter import Accepted
from gateway.domain.chat import Inbound, Source
from gateway.domain.reading import Cursors, Doubts, stored
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.structs import replace
from gateway.store.records import LEASE_SECONDS
from tests.support.fakes import ManualClock
from tests.support.store_kit import outbound

NOW = 1_795_348_800.0
DAY = 86_400.0


class Notes:
    """A notebook that may fail."""

    def __init__(self, **notes: str) -> None:
        self.notes = dict(notes)
        self.failing = False
        self.writes = 0

    async def read(self) -> Mapping[str, str]:
        return dict(self.notes)

    async def write(self, changes: Mapping[str, str | None]) -> None:
        if self.failing:
            raise StoreUnavailable("full")
        self.writes += 1
        for name, value in changes.items():
            self.notes.pop(name, None)
            if value is not None:
                self.notes[name] = value


async def loaded(notes: Notes) -> Cursors:
    cursors = Cursors(snowflake)
    await cursors.load(notes, NOW, DAY)
    return cursors


async def test_a_run_that_dies_at_once_does_not_move_the_beginning() -> None:
    notes = Notes()
    first = await loaded(notes)
    again = Cursors(snowflake)
    await again.load(notes, NOW + 60, DAY)
    assert again.of("c") == first.of("c") == snowflake(NOW)


async def test_a_chat_of_two_is_remembered_before_anything_of_it_is_read() -> None:
    notes = Notes()
    cursors = await loaded(notes)
    assert cursors.meet("d")
    await cursors.save(notes, NOW, connected=True, idle=False)
    again = await loaded(notes)
    assert list(again.alone()) == ["d"]
    assert again.of("d") == snowflake(NOW)
    assert not again.meet("d")


async def test_threads_that_were_not_listed_are_known_by_their_cursors() -> None:
    notes = Notes(base="7", **{"alone d": str(snowflake(NOW)), "a": str(snowflake(NOW)), "b": str(snowflake(NOW) + 1)})
    cursors = await loaded(notes)
    cursors.advance("c", snowflake(NOW) + 2, alone=False)
    assert cursors.put_away({"c"}) == ["b", "a"]


async def test_a_first_run_begins_now() -> None:
    cursors = await loaded(Notes())
    assert cursors.of("c") == snowflake(NOW)
    assert cursors.alive_at is None


async def test_a_channel_goes_on_where_it_was() -> None:
    notes = Notes()
    cursors = await loaded(notes)
    message = snowflake(NOW + 100)
    cursors.advance("c", message, alone=False)
    cursors.advance("c", message - 1, alone=False)
    cursors.advance("d", message - 5, alone=True)
    await cursors.save(notes, NOW + 101, connected=True, idle=True)
    later = await loaded(notes)
    assert (later.of("c"), later.of("d")) == (message, message - 5)
    assert list(later.alone()) == ["d"]
    assert later.alive_at == NOW + 101
    assert later.of("another") == message - (60_000 << 22)


async def test_the_account_does_not_advance_while_a_message_waits() -> None:
    notes = Notes(base="7", alive="1")
    cursors = await loaded(notes)
    cursors.advance("c", snowflake(NOW), alone=False)
    await cursors.save(notes, NOW, connected=True, idle=False)
    assert (await loaded(notes)).of("another") == 7


async def test_what_could_not_be_saved_is_saved_later() -> None:
    notes = Notes()
    cursors = await loaded(notes)
    cursors.advance("c", snowflake(NOW), alone=False)
    notes.failing = True
    with pytest.raises(StoreUnavailable):
        await cursors.save(notes, NOW, connected=True, idle=True)
    notes.failing = False
    await cursors.save(notes, NOW, connected=True, idle=True)
    assert notes.notes["c"] == str(snowflake(NOW))


async def test_where_nothing_happens_nothing_is_written_but_that_it_is_alive_now_and_then() -> None:
    notes = Notes()
    cursors = await loaded(notes)
    for second in range(60):
        await cursors.save(notes, NOW + second, connected=True, idle=True)
    assert notes.writes == 3  # the first when it begins


async def test_old_channels_are_forgotten_but_no_chat_of_two() -> None:
    old = str(snowflake(NOW - 2 * DAY))
    notes = Notes(**{"c": old, "alone d": old, "base": "7"})
    cursors = await loaded(notes)
    assert list(cursors.alone()) == ["d"]
    assert set(notes.notes) == {"alone d", "base"}


async def test_a_row_may_have_been_shown_if_a_send_was_lost_or_another_process_may_have_begun_it() -> None:
    clock = ManualClock(NOW)
    doubts = Doubts(clock)
    row = outbound("1", created_at=NOW)
    assert not doubts.concern(row, NOW)
    assert doubts.concern(row, NOW - 1.0), "a process before this one may have shown its beginning"
    assert doubts.concern(replace(row, ambiguous=1), NOW)

    doubts.note("1")
    assert doubts.concern(row, NOW)


async def test_a_row_is_in_doubt_before_another_process_may_take_over() -> None:
    clock = ManualClock(NOW)
    doubts = Doubts(clock)
    await clock.advance(LEASE_SECONDS - 1.0)

    assert doubts.concern(outbound("1", created_at=NOW), NOW)


class Pauses(ManualClock):
    """A clock that only notes for how long it is asked to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)


async def test_what_finds_no_room_waits_longer_and_longer_until_some_of_it_does() -> None:
    batch = [
        Inbound(event_id=name, source=Source(platform="p", chat="c", chat_type="direct", user="u"), text="")
        for name in "abc"
    ]
    rooms: list[str | None] = ["", "", None, "a", "", "bc"]  # whose messages find room; None: the store is away
    offered: list[str] = []

    async def accept(given: Sequence[Inbound]) -> Sequence[Accepted]:
        offered.append("".join(each.event_id for each in given))
        room = rooms.pop(0)
        if room is None:
            raise StoreUnavailable("away")
        return [Accepted(event_id=each.event_id, status="new" if each.event_id in room else "full") for each in given]

    clock = Pauses()
    found = await stored(clock, accept, batch)
    assert [(each.event_id, each.status) for each in found] == [("a", "new"), ("b", "new"), ("c", "new")]
    assert offered == ["abc", "abc", "abc", "abc", "bc", "bc"]
    assert clock.asked == [0.1, 0.2, 0.4, 0.1, 0.2]
