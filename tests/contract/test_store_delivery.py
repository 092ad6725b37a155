"""The outbox: emission order per chat, one claimed row at a time, honest counts of attempts."""

from __future__ import annotations

import asyncio

import pytest

from gateway.domain.chat import MOST_DOUBTS, UNSENT, Album, Button, ChatAddress, KeptFile, Outbound, OutboundState
from gateway.runtime.structs import replace
from gateway.store.port import Store
from tests.support.store_kit import START, Bench, claimed, finish, outbound
from tests.support.waiting import eventually

pytest_plugins = ["tests.support.stores"]


async def drain(store: Store, row: Outbound | None) -> list[str]:
    """Send a chat's rows one after the other."""
    order = []
    while row is not None:
        order.append(row.id)
        row = await store.mark_sent(row.id, "m" + row.id)
    return order


async def test_rows_of_a_chat_follow_each_other(store: Store) -> None:
    rows = await store.emit([outbound("o1"), outbound("o2"), outbound("x", "2"), outbound("o3")])
    assert [(row.id, row.state, row.attempts) for row in rows] == [("o1", "sending", 1), ("x", "sending", 1)]
    assert await store.emit([outbound("o4")]) == ()
    assert await store.claim_outbound(9) == []
    assert await drain(store, rows[0]) == ["o1", "o2", "o3", "o4"]
    assert (await store.status()).unsent == 1
    states = {row.id: (row.state, row.platform_message_id) for row in await store.outbox(None, 9)}
    assert states["o2"] == ("sent", "mo2")
    assert states["x"] == ("sending", None)


async def test_albums_and_buttons_come_back_as_they_were(bench: Bench) -> None:
    store = await bench.open()
    file = KeptFile(ref="f1", digest="d1", name="a.png", mime="image/png", size=1, at=START)
    album = Album(ref="f0", digest="d0", name="b.png", mime="image/png", size=2, at=START, others=(file,))
    ticks = (Button(label="One", token="t1", kind="tick"), Button(label="Two", token="t2")), ()
    await store.emit([outbound("o1", file=file), replace(outbound("o2", file=album, buttons=ticks), kind="poll")])
    rows = {row.id: row for row in await (await bench.crash(store)).outbox(None, 9)}
    assert (rows["o1"].file, rows["o2"].file) == (file, album)
    assert (rows["o2"].kind, rows["o2"].buttons) == ("poll", ticks)


async def test_a_chat_has_unsent_rows_until_the_last_one_ended(store: Store) -> None:
    here = outbound("o1").to
    assert not await store.has_unsent(here)
    await store.emit([outbound("o1"), outbound("o2"), outbound("x", "2")])
    await store.mark_retry("o1", 30, ambiguous=False)
    assert await store.has_unsent(here)
    await store.mark_refused("o1", "for a reason")
    assert await store.has_unsent(here)
    await store.mark_sent("o2", "m2")
    assert not await store.has_unsent(here)
    assert await store.has_unsent(outbound("x", "2").to)


async def test_a_row_is_emitted_once(store: Store) -> None:
    await store.emit([outbound("o1", text="first")])
    assert await store.emit([outbound("o1", text="second")]) == ()
    assert [row.text for row in await store.outbox(None, 9)] == ["first"]
    await store.mark_sent("o1", "m1")
    assert await store.emit([outbound("o1")]) == ()
    assert (await store.status()).unsent == 0


async def test_a_retry_waits_and_its_chat_with_it(bench: Bench) -> None:
    store = await bench.open()
    await store.emit([outbound("o1"), outbound("o2")])
    assert await store.next_due() is None
    await store.mark_retry("o1", 30, ambiguous=False)
    assert 0 < (await store.next_due() or 0) <= 30
    await bench.clock.advance(29)
    assert await store.claim_outbound(9) == []
    assert await store.emit([outbound("o3")]) == ()
    await bench.clock.advance(1)
    assert await store.next_due() == 0
    (row,) = await store.claim_outbound(9)
    assert (row.id, row.attempts, row.ambiguous) == ("o1", 2, 0)
    assert await store.next_due() is None
    await store.mark_retry("o1", 40, ambiguous=True)
    await bench.clock.advance(40)
    (row,) = await store.claim_outbound(9)
    assert (row.attempts, row.ambiguous) == (3, 1)
    assert await drain(store, row) == ["o1", "o2", "o3"]


async def test_a_row_that_is_not_due_blocks_its_chat_only(bench: Bench) -> None:
    store = await bench.open()
    await store.emit([outbound("o1")])
    await store.mark_retry("o1", 60, ambiguous=False)
    rows = await store.emit([outbound("o2"), outbound("x", "2")])
    assert [row.id for row in rows] == ["x"]
    await bench.clock.advance(60)
    (row,) = await store.claim_outbound(9)
    assert await drain(store, row) == ["o1", "o2"]


async def test_a_row_whose_message_is_gone_is_sent_like_one_that_never_was(bench: Bench) -> None:
    store = await bench.open()
    claim = await claimed(store)
    await store.open_reply(claim.lease, claim.item, outbound("o1", state="streaming"))
    await store.note_streamed("o1", "m1")
    (row,) = (await finish(store, claim, outbound("o1"), outbound("o2"))).outbound
    await store.mark_retry("o1", 0, ambiguous=True)
    (row,) = await store.claim_outbound(9)
    assert (row.platform_message_id, row.ambiguous) == ("m1", 1)
    await store.mark_retry("o1", 0, ambiguous=False, anew=True)
    store = await bench.crash(store)
    (row,) = await store.claim_outbound(9)
    assert (row.id, row.platform_message_id, row.ambiguous, row.attempts) == ("o1", None, 0, 1)
    assert await drain(store, row) == ["o1", "o2"]


async def test_a_reply_whose_first_message_may_be_shown_is_in_doubt(bench: Bench) -> None:
    store = await bench.open()
    claim = await claimed(store)
    await store.open_reply(claim.lease, claim.item, outbound("o1", state="streaming"))
    await store.note_streamed("o1", None)
    (row,) = (await finish(store, claim, outbound("o1"))).outbound
    assert (row.platform_message_id, row.ambiguous) == (None, 1)
    await store.note_streamed("o1", None)  # too late: the reply has ended
    store = await bench.crash(store)
    (row,) = await store.claim_outbound(9)
    assert row.ambiguous == 2  # the crash is a doubt of its own


async def test_what_was_only_put_off_was_no_attempt(store: Store) -> None:
    (row,) = await store.emit([outbound("o1")])
    for _ in range(3):
        assert row.attempts == 1
        await store.mark_retry("o1", 0, ambiguous=False, counted=False)
        (row,) = await store.claim_outbound(9)
    await store.mark_retry("o1", 0, ambiguous=False)
    (row,) = await store.claim_outbound(9)
    assert row.attempts == 2


@pytest.mark.parametrize("hours", [-5, 5])
async def test_a_wall_clock_that_is_set_moves_no_retry(bench: Bench, hours: int) -> None:
    store = await bench.open()
    await store.emit([outbound("o1")])
    await store.mark_retry("o1", 60, ambiguous=False)
    bench.clock.jump(hours * 3_600)
    assert 0 < (await store.next_due() or 0) <= 60
    await bench.clock.advance(59)
    assert await store.claim_outbound(9) == []
    await bench.clock.advance(1)
    assert [row.id for row in await store.claim_outbound(9)] == ["o1"]


async def test_a_wall_clock_set_back_before_a_start_holds_no_retry_up(bench: Bench) -> None:
    store = await bench.open()
    await store.emit([outbound("o1")])
    await store.mark_retry("o1", 60, ambiguous=False)
    bench.clock.jump(-5 * 3_600)
    store = await bench.crash(store)
    assert 0 < (await store.next_due() or 0) <= 60
    await bench.clock.advance(60)
    assert [row.id for row in await store.claim_outbound(9)] == ["o1"]


async def test_the_limit_of_a_claim_leaves_the_rest(bench: Bench) -> None:
    store = await bench.open()
    for chat in "1234":
        await store.emit([outbound("o" + chat, chat)])
        await store.mark_retry("o" + chat, int(chat), ambiguous=False)
    await bench.clock.advance(9)
    assert [row.id for row in await store.claim_outbound(3)] == ["o1", "o2", "o3"]
    assert [row.id for row in await store.claim_outbound(3)] == ["o4"]
    assert await store.claim_outbound(3) == []


async def test_a_refused_row_makes_way_and_its_stand_in_keeps_its_place(store: Store) -> None:
    await store.emit([outbound("o1"), outbound("o2"), outbound("o3")])
    following = await store.mark_refused("o1", "too long", outbound("e1", text="could not be shown"))
    assert following is not None
    assert (following.id, following.text, following.attempts) == ("e1", "could not be shown", 1)
    await store.mark_retry("e1", 0.0, ambiguous=False)
    (row,) = await store.claim_outbound(9)
    assert await drain(store, row) == ["e1", "o2", "o3"]
    refused = [row for row in await store.outbox(None, 9) if row.state == "refused"]
    assert [(row.id, row.error) for row in refused] == [("o1", "too long")]


async def test_a_refused_row_without_a_stand_in_lets_the_next_go(store: Store) -> None:
    await store.emit([outbound("o1"), outbound("o2")])
    following = await store.mark_refused("o1", "gone")
    assert following is not None
    assert following.id == "o2"


async def test_marking_twice_claims_nothing_more(store: Store) -> None:
    await store.emit([outbound("o1"), outbound("o2"), outbound("o3")])
    assert await store.mark_sent("o1", "m1") is not None
    assert await store.mark_sent("o1", "m2") is None
    assert await store.mark_refused("o1", "late") is None
    await store.mark_retry("o1", 0.0, ambiguous=True)
    assert {row.id: row.state for row in await store.outbox(None, 9)} == {
        "o1": "sent",
        "o2": "sending",
        "o3": "pending",
    }


async def test_what_a_dead_process_was_sending_is_ambiguous(bench: Bench) -> None:
    store = await bench.open()
    await store.emit([outbound("o1"), outbound("o2")])
    await store.emit([outbound("x", "2")])
    await store.mark_retry("x", 50, ambiguous=False)
    store = await bench.crash(store)
    assert await store.next_due() is not None
    (row,) = await store.claim_outbound(9)
    assert (row.id, row.state, row.attempts, row.ambiguous) == ("o1", "sending", 2, 1)
    assert await store.claim_outbound(9) == []
    assert 0 < (await store.next_due() or 0) <= 50
    assert await drain(store, row) == ["o1", "o2"]
    await bench.clock.advance(50)
    (late,) = await store.claim_outbound(9)
    assert (late.id, late.attempts, late.ambiguous) == ("x", 2, 0)
    store = await bench.crash(store)
    (late,) = await store.claim_outbound(9)
    assert (late.attempts, late.ambiguous) == (3, 1)


async def test_one_row_is_claimed_by_one_of_many(store: Store) -> None:
    for chat in range(20):
        await store.emit([outbound(f"o{chat}", str(chat))])
        await store.mark_retry(f"o{chat}", 0.0, ambiguous=False)
    batches = await asyncio.gather(*(store.claim_outbound(7) for _ in range(6)))
    assert sorted(row.id for batch in batches for row in batch) == sorted(f"o{chat}" for chat in range(20))


async def test_a_row_whose_taker_is_cancelled_while_another_claims_is_offered_again(store: Store) -> None:
    looked = asyncio.Event()
    store.on_rows(looked.set)
    emitting = asyncio.create_task(store.emit([outbound("1")]))
    await asyncio.sleep(0)  # it is on its way
    claimed, _ = await asyncio.gather(store.claim_outbound(9), _cancelled(emitting))
    async with asyncio.timeout(60):
        while not claimed and await store.has_unsent(outbound("1").to):
            await looked.wait()
            looked.clear()
            claimed = await store.claim_outbound(9)
    assert [row.id for row in claimed or emitting.result()] == ["1"]


async def _cancelled(task: asyncio.Task[tuple[Outbound, ...]]) -> None:
    task.cancel()


@pytest.mark.parametrize("rounds", range(1, 6))
async def test_rows_whose_taker_was_cancelled_are_offered_again(store: Store, rounds: int) -> None:
    emitting = asyncio.create_task(store.emit([outbound("o1")]))
    for _ in range(rounds):
        await asyncio.sleep(0)
    emitting.cancel()
    await asyncio.gather(emitting, return_exceptions=True)
    await store.emit([outbound("x", "2")])  # by now the first is durable, if both are in one file
    rows = emitting.result() if not emitting.cancelled() else await eventually(lambda: store.claim_outbound(9))
    assert [(row.id, row.attempts, row.ambiguous) for row in rows] == [("o1", 1, 0)]


async def test_threads_are_listed_apart(store: Store) -> None:
    topic = ChatAddress(platform="test", chat="1", thread="7")
    plain = ChatAddress(platform="test", chat="1")
    one, other = outbound("o1"), outbound("o2")
    await store.emit([one, Outbound(id="t1", key=one.key, to=topic, kind="notice", text="in a topic"), other])
    assert [row.id for row in await store.outbox(topic, 9)] == ["t1"]
    assert [row.id for row in await store.outbox(plain, 9)] == ["o2", "o1"]
    assert [row.id for row in await store.outbox(plain, 1)] == ["o2"]
    assert [row.id for row in await store.outbox(None, 9)] == ["o2", "t1", "o1"]


async def test_a_row_comes_back_whole(bench: Bench) -> None:
    store = await bench.open()
    row = outbound("o1", text="多 \x00 😀", session_id="s", answers="e1", created_at=START)
    await store.emit([row])
    store = await bench.crash(store)
    (found,) = await store.outbox(None, 1)
    assert (found.key, found.to, found.kind, found.text) == (row.key, row.to, row.kind, row.text)
    assert (found.session_id, found.answers, found.created_at) == ("s", "e1", START)


async def test_rows_are_listed_by_their_state(store: Store) -> None:
    await store.emit([outbound("o1"), outbound("o2"), outbound("x", "2"), outbound("o3")])
    await store.mark_sent("o1", "m1")
    await store.mark_refused("x", "for a reason")
    listed = [row.id for row in await store.outbox(None, 9, (OutboundState.REFUSED, OutboundState.SENT))]
    assert sorted(listed) == ["o1", "x"]  # of two chats that got them at once neither row is newer
    assert [row.id for row in await store.outbox(None, 1, UNSENT)] == ["o3"]
    assert [row.id for row in await store.outbox(outbound("o1").to, 9, UNSENT)] == ["o3", "o2"]
    assert await store.outbox(outbound("o1").to, 9, (OutboundState.REFUSED,)) == []


async def doubted(bench: Bench, store: Store, row_id: str, times: int) -> None:
    """Send a row so often without an answer that it holds up no other; after that it waits for an hour."""
    for number in range(times):
        await store.mark_retry(row_id, 3_600 if number == times - 1 else 0, ambiguous=True)
        if number < times - 1:
            (row,) = await store.claim_outbound(9)
            assert (row.id, row.ambiguous) == (row_id, number + 1)


async def test_a_row_in_doubt_keeps_its_place_for_a_while(bench: Bench) -> None:
    store = await bench.open()
    await store.emit([outbound("o1"), outbound("o2")])
    await doubted(bench, store, "o1", MOST_DOUBTS)
    assert await store.claim_outbound(9) == []
    assert await store.emit([outbound("o3")]) == ()
    await bench.clock.advance(3_600)
    (row,) = await store.claim_outbound(9)
    assert await drain(store, row) == ["o1", "o2", "o3"]


async def test_a_row_much_in_doubt_holds_up_nobody_and_goes_as_soon_as_another_is_shown(bench: Bench) -> None:
    store = await bench.open()
    await store.emit([outbound("o1"), outbound("o2"), outbound("o3")])
    await doubted(bench, store, "o1", MOST_DOUBTS + 1)
    (row,) = await store.claim_outbound(9)
    assert row.id == "o2"
    assert await store.claim_outbound(9) == []
    following = await store.mark_sent("o2", "m2")
    assert following is not None
    assert (following.id, following.ambiguous) == ("o1", MOST_DOUBTS + 1)
    await store.mark_retry("o1", 3_600, ambiguous=True)
    store = await bench.crash(store)
    (row,) = await store.claim_outbound(9)
    assert await drain(store, row) == ["o3", "o1"]
    assert (await store.status()).unsent == 0


async def test_a_row_much_in_doubt_is_repeated_at_its_time_but_beside_no_other(bench: Bench) -> None:
    store = await bench.open()
    await store.emit([outbound("o1"), outbound("o2"), outbound("o3")])
    await doubted(bench, store, "o1", MOST_DOUBTS + 1)
    assert [row.id for row in await store.claim_outbound(9)] == ["o2"]
    await bench.clock.advance(3_600)
    assert await store.claim_outbound(9) == []
    await store.mark_retry("o2", 30, ambiguous=False)
    await bench.clock.advance(30)
    (row,) = await store.claim_outbound(9)
    assert await drain(store, row) == ["o1", "o2", "o3"]


def told(number: str) -> Outbound:
    """A reminder that fires."""
    return replace(outbound(number), kind="reminder")


async def test_what_nobody_waits_for_goes_behind_all_others(store: Store) -> None:
    """But for the row that is being sent, and for a reminder that was sent before and put off."""
    (first,) = await store.emit([told("r1")])
    await store.emit([told("r2"), outbound("s1", answers="schedule:r:1"), outbound("o1")])
    assert await store.unasked(first.to) == 2
    assert await store.claim_outbound(9) == []
    await store.mark_retry("r1", 0, ambiguous=False)
    (row,) = await store.claim_outbound(9)
    assert row.id == "r1"
    following = await store.mark_sent("r1", "m1")
    assert following is not None
    assert following.id == "o1"
    await store.emit([outbound("o2")])
    assert await drain(store, following) == ["o1", "o2", "r2", "s1"]
    assert await store.unasked(first.to) == 0


async def test_a_scheduled_reply_that_streamed_goes_behind_all_others(store: Store) -> None:
    claim = await claimed(store)
    reply = outbound("o1", answers="schedule:r:1")
    await store.open_reply(claim.lease, claim.item, replace(reply, state=OutboundState.STREAMING))
    (row,) = await store.emit([outbound("o2")])
    assert (await finish(store, claim, reply)).outbound == ()
    await store.emit([outbound("o3")])
    assert await drain(store, row) == ["o2", "o3", "o1"]


async def test_a_crash_changes_nothing_in_the_order_of_what_nobody_waits_for(bench: Bench) -> None:
    store = await bench.open()
    await store.emit([outbound("o1"), told("r1"), outbound("o2")])
    store = await bench.crash(store)
    (row,) = await store.claim_outbound(9)
    assert await drain(store, row) == ["o1", "o2", "r1"]


def of(person: str, name: str, **facts: object) -> Outbound:
    """A row of this person's conversation in the chat that all share."""
    row = outbound(name)
    return replace(row, key=replace(row.key, user=person), **facts)


async def test_who_has_much_waiting_keeps_no_other_away(store: Store) -> None:
    (first,) = await store.emit([of("a", f"a{number}") for number in range(30)])
    await store.emit([of("b", "b0"), of("c", "c0")])
    await store.emit([of("b", "b1")])
    order = await drain(store, first)
    assert order[:7] == ["a0", "a1", "b0", "c0", "a2", "b1", "a3"]
    assert [name for name in order if name[0] == "a"] == [f"a{number}" for number in range(30)]


async def test_nobody_is_overtaken_for_ever(store: Store) -> None:
    """However often others write anew, each shown row brings the next one nearer."""
    row: Outbound | None
    (row,) = await store.emit([of("a", "a0"), of("a", "a1"), of("a", "a2")])
    order = []
    for number in range(12):
        assert row is not None
        await store.emit([of(f"p{number}", f"p{number}")])
        order.append(row.id)
        row = await store.mark_sent(row.id, "m" + row.id)
    assert [order.index(f"a{number}") for number in range(3)] == [0, 1, 3]


async def test_answers_go_before_notices_of_others_and_nobodys_own_order_changes(store: Store) -> None:
    (first,) = await store.emit([of("a", "a0")])
    await store.emit([of("a", "a1", kind="notice"), of("a", "a2"), of("b", "b0", kind="notice")])
    await store.emit([of("c", "c0")])
    assert await drain(store, first) == ["a0", "c0", "a1", "b0", "a2"]


async def test_a_row_that_was_put_off_stays_next_whatever_comes(bench: Bench) -> None:
    store = await bench.open()
    await store.emit([of("a", "a0"), of("a", "a1"), of("a", "a2")])
    await store.mark_retry("a0", 3, ambiguous=False, counted=False)
    await store.emit([of("b", "b0"), of("b", "b1")])
    await bench.clock.advance(5)
    (row,) = await store.claim_outbound(9)
    assert await drain(store, row) == ["a0", "a1", "b0", "a2", "b1"]


async def test_one_row_of_a_chat_is_sent_at_a_time_beside_one_in_doubt_too(bench: Bench) -> None:
    store = await bench.open()
    await store.emit([of("a", "a0"), *(of("a", f"a{number}") for number in range(1, 4))])
    for _ in range(MOST_DOUBTS + 1):
        await store.mark_retry("a0", 0, ambiguous=True)
        await store.claim_outbound(9)
    states = {row.id: row.state for row in await store.outbox(None, 9)}
    await store.emit([of("b", "b0"), of("b", "b1", kind="notice")])
    assert await store.claim_outbound(9) == []
    after = {row.id: row.state for row in await store.outbox(None, 9) if row.id[0] == "a"}
    assert after == states
    assert [*states.values()].count(OutboundState.SENDING) == 1
