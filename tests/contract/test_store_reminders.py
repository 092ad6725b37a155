"""The contract of reminders: each version once, those that are due in their order, and none in a closed chat."""

from __future__ import annotations

import asyncio

from gateway.domain.chat import ChatAddress, Inbound
from gateway.domain.reminder import Reminder
from gateway.runtime.structs import replace
from gateway.store.port import Store
from gateway.store.records import Arrival
from tests.support.store_kit import START, Bench, arrival, key, outbound, put, reminder

pytest_plugins = ["tests.support.stores"]

MANY = 9


async def added(store: Store, number: str, chat: str = "1", **changes: object) -> Reminder:
    """A reminder, as it is once it is stored."""
    stored = await store.add_reminder(reminder(number, chat, **changes), MANY, 10_000)
    assert stored is not None
    return stored


async def due(store: Store, now: float = START) -> list[str]:
    """The ids of the reminders that are due."""
    return [each.id for each in await store.due_reminders(now, MANY)]


async def test_a_reminder_is_read_as_it_was_stored_after_a_crash_too(bench: Bench) -> None:
    store = await bench.open()
    odd = reminder("r1", "1", text="Tee \ud83d 买\n", rule="1 week on mon,fri", when_late="skip", zone="Europe/Berlin")
    stored = await store.add_reminder(odd, MANY, 10_000)
    assert stored == replace(odd, number=1, text="Tee \ud83d 买\n")
    store = await bench.crash(store)
    assert await store.reminders(key(), 0) == [stored]
    assert await store.reminder(key().address, "r1") == stored
    assert await store.reminder(key("2").address, "r1") is None
    assert await store.reminder(key().address, "r2") is None
    assert (await store.has_reminders(key()), await store.has_reminders(key("2"))) == (True, False)


async def test_the_same_reminder_is_stored_once_and_keeps_its_number(store: Store) -> None:
    first = await added(store, "r1")
    assert (await added(store, "r2")).number == 2
    assert await added(store, "r1", text="another") == first
    assert (await added(store, "r3", "2")).number == 1


async def test_a_person_has_no_more_open_reminders_than_allowed(store: Store) -> None:
    assert await store.add_reminder(reminder("r1"), 1, 10_000) is not None
    assert await store.add_reminder(reminder("r2"), 1, 10_000) is None
    other = reminder("r3")
    assert await store.add_reminder(replace(other, source=replace(other.source, user="u9")), 1, 10_000) is not None
    await store.change_reminder(reminder("r1").changed(state="cancelled", due_at=None))
    assert await store.add_reminder(reminder("r4"), 1, 10_000) is not None


async def test_only_the_version_before_is_replaced(bench: Bench) -> None:
    store = await bench.open()
    first = await added(store, "r1")
    said = first.changed(text="said")
    assert (await store.change_reminder(said, [outbound("o1")])).first
    late = first.changed(text="late")
    refused = await store.change_reminder(late, [outbound("o2")], own("s2"))
    assert (refused.first, refused.outbound) == (False, ())
    store = await bench.crash(store)
    assert [each.text for each in await store.reminders(key(), 0)] == ["said"]
    assert [row.id for row in await store.rows(key().address, ["o1", "o2"])] == ["o1"]
    assert await store.waiting(key(), MANY) == []
    assert not (await store.change_reminder(reminder("unknown").changed())).first


async def test_of_many_changes_at_once_one_is_made(store: Store) -> None:
    first = await added(store, "r1")
    changed = await asyncio.gather(
        *(store.change_reminder(first.changed(text=str(each)), [outbound(f"o{each}")]) for each in range(8))
    )
    assert [each.first for each in changed].count(True) == 1
    assert len(await store.rows(key().address, [f"o{each}" for each in range(8)])) == 1


async def test_a_change_shows_its_rows_and_puts_its_item_into_the_lane(bench: Bench) -> None:
    store = await bench.open()
    first = await added(store, "r1")
    changed = await store.change_reminder(first.changed(due_at=None, state="done"), [outbound("o1")], own("s1"))
    assert [row.id for row in changed.outbound] == ["o1"]
    claim = await asyncio.wait_for(store.claim_next("w"), 60)
    assert (claim.item.inbound.event_id, claim.item.inbound.kind, claim.item.attempts) == ("s1", "schedule", 1)
    store = await bench.crash(store)
    again = await asyncio.wait_for(store.claim_next("w"), 60)
    assert again.item.inbound == claim.item.inbound


async def test_an_item_of_a_reminder_waits_behind_what_is_there(store: Store) -> None:
    first = await added(store, "r1")
    await put(store, "e1", "e2")
    await store.change_reminder(first.changed(due_at=None, state="done"), (), own("s1"))
    await store.claim_next("w")
    assert [item.inbound.event_id for item in await store.waiting(key(), MANY)] == ["e2", "s1"]


async def test_reminders_are_due_in_their_order_and_again_until_they_are_changed(store: Store) -> None:
    for number, at in (("late", START - 5), ("first", START - 50), ("later", START + 1), ("now", START)):
        await added(store, number, due_at=at, chat=number)
    await added(store, "paused", "4", due_at=None, state="paused")
    for _ in range(2):
        assert await due(store) == ["first", "late", "now"]
    assert [each.id for each in await store.due_reminders(START, 2)] == ["first", "late"]
    (found, *_) = await store.due_reminders(START, 1)
    await store.change_reminder(found.changed(due_at=START + 60))
    assert await due(store) == ["late", "now"]
    assert await due(store, START + 60) == ["late", "now", "later", "first"]


async def test_a_process_is_given_the_reminders_of_the_platforms_that_it_sends_to(store: Store) -> None:
    await added(store, "here")
    elsewhere = reminder("there", "2")
    there = replace(elsewhere, key=key("2", platform="a/b c"), source=replace(elsewhere.source, platform="a/b c"))
    await store.add_reminder(there, MANY, 10_000)
    assert sorted(await due(store)) == ["here", "there"]
    store.serve(runs=["test", "a/b c"], sends=["a/b c"])
    assert await due(store) == ["there"]
    store.serve(runs=[], sends=["test"])
    assert await due(store) == ["here"]


async def test_open_reminders_come_first_then_the_latest_others(store: Store) -> None:
    for number in "abcde":
        await added(store, number)
    for number in "bde":
        await store.change_reminder(reminder(number).changed(state="done", due_at=None))
    await store.change_reminder(reminder("c").changed(state="paused", due_at=None))
    await added(store, "x", "2")
    assert [each.id for each in await store.reminders(key(), 2)] == ["a", "c", "e", "d"]
    assert [each.id for each in await store.reminders(key(), 0)] == ["a", "c"]
    assert await store.reminders(key("3"), 9) == []


async def test_the_latest_others_are_found_behind_many_open_ones(store: Store) -> None:
    over = [reminder(f"over{each}", due_at=None, state="done") for each in range(3)]
    for each in (*over, *(reminder(f"r{number:02}") for number in range(60))):
        assert await store.add_reminder(each, 60, 10_000) is not None
    assert await store.add_reminder(reminder("more"), 60, 10_000) is None
    listed = [each.id for each in await store.reminders(key(), 2)]
    assert listed == [*(f"r{number:02}" for number in range(60)), "over2", "over1"]


async def test_reminders_of_a_closed_chat_wait_until_somebody_writes_there(bench: Bench) -> None:
    store = await bench.open()
    await added(store, "r1")
    await added(store, "r2", due_at=START + 9)
    await added(store, "other", "2")
    await store.close_chat(key().address, "deleted")
    assert (await due(store), await due(store, START + 99)) == (["other"], ["other"])
    assert [each.parked for each in await store.reminders(key(), 0)] == [True, True]
    store = await bench.crash(store)
    assert await due(store) == ["other"]
    await store.accept([own("expiry")], cap=MANY)  # which says nothing of who is there
    assert await due(store) == ["other"]
    await put(store, "e1")
    assert sorted(await due(store)) == ["other", "r1"]
    assert sorted(await due(store, START + 99)) == ["other", "r1", "r2"]


async def test_a_refusal_that_closes_a_chat_parks_its_reminders(store: Store) -> None:
    first = await added(store, "r1")
    await store.change_reminder(first.changed(due_at=START + 5), [outbound("o1")])
    await store.mark_refused("o1", "blocked", gone=True)
    assert await due(store, START + 9) == []
    assert (await added(store, "r2")).parked
    assert await due(store, START + 9) == []
    await store.open_chat(key().address)
    assert await due(store, START + 9) == ["r2", "r1"]


async def test_a_parked_reminder_can_be_changed(store: Store) -> None:
    first = await added(store, "r1")
    await store.close_chat(key().address, "deleted")
    (parked,) = await store.reminders(key(), 0)
    assert (await store.change_reminder(parked.changed(due_at=START + 5))).first
    assert await due(store, START + 9) == []
    assert parked.version == first.version
    await store.open_chat(key().address)
    assert await due(store, START + 9) == ["r1"]


async def test_a_row_says_when_it_was_shown(bench: Bench) -> None:
    store = await bench.open()
    await store.emit([outbound("o1"), outbound("o2"), outbound("o3")])
    await bench.clock.advance(7)
    await store.mark_sent("o1", "p1")
    store = await bench.crash(store)
    rows = await store.rows(key().address, ["o2", "o1", "o1", "unknown"])
    shown = {row.id: row.shown_at for row in rows}
    assert set(shown) == {"o1", "o2"}
    assert shown["o2"] is None
    assert shown["o1"] is not None
    assert shown["o1"] >= START + 7  # a shared store goes by its server's time
    elsewhere = ChatAddress(platform="test", chat="2")
    assert await store.rows(elsewhere, ["o1"]) == []


def own(event_id: str) -> Arrival:
    """A prompt that its time has come for."""
    asked = arrival(event_id)
    source = asked.inbound.source
    return replace(asked, inbound=Inbound(event_id=event_id, source=source, text="news?", kind="schedule"))


async def test_a_chat_has_a_cap_beside_that_of_a_person(store: Store) -> None:
    assert await store.add_reminder(reminder("r1"), 9, 1) is not None
    other = reminder("r2")
    assert await store.add_reminder(replace(other, source=replace(other.source, user="u9")), 9, 1) is None
    assert await store.add_reminder(reminder("r1"), 9, 1) is not None
    assert await store.add_reminder(reminder("r3", "2"), 9, 1) is not None


async def test_several_reminders_are_changed_together_or_not_at_all(store: Store) -> None:
    first, second = [await added(store, number) for number in ("r1", "r2")]
    done = [each.changed(state="done", due_at=None) for each in (first, second)]
    assert not (await store.change_reminder(done[0], [outbound("o1")], also=[done[1].changed()])).first
    assert [each.state for each in await store.reminders(first.key, 9)] == ["waiting", "waiting"]
    assert await store.outbox(None, 9) == []
    changed = await store.change_reminder(done[0], [outbound("o1")], also=[done[1]])
    assert changed.first
    assert [row.id for row in changed.outbound] == ["o1"]
    assert await store.due_reminders(START + 9, 9) == []
