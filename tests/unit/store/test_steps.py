"""The steps of a store, on a space in memory: what each leaves in the records, also where no method shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from gateway.domain.chat import MOST_DOUBTS, OutboundState
from gateway.domain.message import user
from gateway.domain.usage import CanonicalUsage, LedgerEntry
from gateway.runtime.errors import SessionConflict
from gateway.runtime.structs import replace
from gateway.store.draft import Draft
from gateway.store.fleeting import MemoryRecords
from gateway.store.kinds import (
    ACCOUNT,
    CHAT,
    EVENT,
    HELD,
    ITEM,
    KINDS,
    LANE,
    LEFT,
    LOOKS,
    MEMBER,
    READY,
    RESERVED,
    ROW,
    SUM,
    SUSPECTS,
    TRIED,
    TURN,
    EventRecord,
)
from gateway.store.records import ATTEMPT_PAUSES, Beginning, Cap, Erasure, InboxItem, Lease, Opening, Reservation
from gateway.store.shared.platforms import Platforms
from gateway.store.space import Caller, Space
from gateway.store.steps import forgetting, lanes, members, outbox, reports, sessions, spending, turns
from tests.support.store_kit import START, arrival, key, new_session, outbound, step

T = TypeVar("T")
CHAT_1 = "test/chat=1"


class Process:
    """A process on a space, which a test moves through time."""

    def __init__(self, records: MemoryRecords, owner: str = "a", **changes: Any) -> None:
        facts = {"now": START, "uptime": 1_000.0, "runs": Platforms(), "sends": Platforms(), "pauses": ATTEMPT_PAUSES}
        self.records = records
        self.space = Draft(records)
        self.caller = Caller(owner=owner, **{**facts, **changes})

    def run(self, step: Callable[..., T], *args: Any) -> T:
        """Run a step."""
        return self.records.run(step, *args)[0]

    def told(self, step: Callable[..., Any], *args: Any) -> list[tuple[str, ...]]:
        """The news of a step."""
        return self.records.run(step, *args)[1]

    def accept(self, *events: str, chat: str = "1", room: int = 0, bypass: bool = False) -> lanes.Accepted:
        """Accept messages of a chat."""
        arrivals = [arrival(each, chat, bypass=bypass) for each in events]
        return self.run(lanes.accept, self.caller, arrivals, 100, room)

    def claim(self) -> tuple[Lease, InboxItem]:
        """Claim the lane that is next."""
        found = self.run(lanes.claim, self.caller)
        assert isinstance(found, lanes.Claimed)
        return Lease(key=found.item.key, worker="w", fence=found.fence), found.item


@pytest.fixture
def space() -> MemoryRecords:
    return MemoryRecords()


@pytest.fixture
def process(space: MemoryRecords) -> Process:
    return Process(space)


# -- the space -----------------------------------------------------------------------------------------


def test_a_step_that_fails_leaves_nothing_behind(process: Process) -> None:
    process.accept("e1")
    before = sorted(process.records.documents)

    def half(space: Space) -> None:
        space.put(EVENT, EventRecord(name="test/e2", item=9))
        lanes.accept(space, process.caller, [arrival("e3"), arrival("e4", "2")], 9, 9)
        space.drop(LANE, CHAT_1)
        space.extend("s1", [1, 2], at=0)
        raise SessionConflict("no")

    with pytest.raises(SessionConflict):
        process.run(half)
    assert sorted(process.records.documents) == before
    lane = process.space.get(LANE, CHAT_1)
    assert lane is not None
    assert len(lane.queue) == 1
    assert process.space.members("s1") == []
    assert [lane.key for lane in process.space.first(READY, "test", 9)] == [key()]


def test_a_record_stands_only_where_its_present_state_says(process: Process) -> None:
    process.accept("e1", room=1)
    space = process.space
    assert (space.count(HELD, "a"), space.count(READY, "test")) == (1, 0)
    process.run(members.leave, "a")
    assert (space.count(HELD, "a"), space.count(READY, "test")) == (0, 1)


def test_every_kind_has_a_name_of_its_own() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS)


def test_a_lane_that_is_claimed_with_its_message_tells_what_the_turn_begins_with(process: Process) -> None:
    process.accept("e1")
    lease, item = process.claim()
    opened = process.run(sessions.open_session, lease, Opening(session=new_session("s1")))
    process.run(turns.finish, process.caller, lease, item, None, "answered", [])
    accepted = process.run(turns.accept, process.caller, [arrival("e2"), arrival("e3", "2")], 9, 2)
    begins = [Beginning(journal=None, tip=tip, reminders=False) for tip in (opened.session, None)]
    assert [each.begins for each in accepted.claimed] == begins


# -- lanes ---------------------------------------------------------------------------------------------


def test_an_idle_lane_is_claimed_with_the_acceptance_as_far_as_there_is_room(process: Process) -> None:
    accepted = process.run(lanes.accept, process.caller, [arrival("e1"), arrival("e2", "2"), arrival("e3")], 9, 1)
    assert [each.item.inbound.event_id for each in accepted.claimed] == ["e1"]
    assert [receipt.waiting for receipt in accepted.receipts] == [0, 0, 1]
    assert [lane.key.chat for lane in process.space.first(READY, "test", 9)] == ["2"]


def test_a_lane_that_waits_is_told_of(process: Process) -> None:
    told = process.told(lanes.accept, process.caller, [arrival("e1"), arrival("e2")], 9, 0)
    assert told == [("ready", "test"), ("behind", "test/chat=1")]
    lease, _ = process.claim()
    assert process.told(lanes.release, lease, False) == [("ready", "test")]


def test_a_lane_of_another_platform_is_claimed_by_nobody_here(space: MemoryRecords) -> None:
    other = Process(space, runs=Platforms(["other"]))
    assert not other.accept("e1", room=5).claimed
    assert other.run(lanes.claim, other.caller) == lanes.NoClaim()


def test_the_lane_that_has_waited_longest_is_next_and_each_claim_has_a_higher_fence(process: Process) -> None:
    for chat in "213":
        process.accept(f"e{chat}", chat=chat)
    claims = [process.claim() for _ in range(3)]
    assert [lease.key.chat for lease, _ in claims] == ["2", "1", "3"]
    fences = [lease.fence for lease, _ in claims]
    assert fences == sorted(set(fences))


def test_a_step_counts_the_attempts_anew_and_a_failure_after_it_is_the_second(process: Process) -> None:
    process.accept("e1")
    lease, item = process.claim()
    opened = process.run(sessions.open_session, lease, Opening(session=new_session("s1")))
    counted = [item.attempts]
    for _ in range(5):
        process.run(turns.record_step, lease, opened.session.ref, item, step(user("more")))
        process.run(lanes.release, lease, True)
        lease, item = process.claim()
        counted.append(item.attempts)
    assert counted == [1, 2, 2, 2, 2, 2]


def test_suspects_are_tried_one_at_a_time_and_each_after_its_pause(space: MemoryRecords) -> None:
    first = Process(space)
    first.accept("e1"), first.accept("e2", chat="2")
    for owner in "bc":
        first.claim(), first.claim()
        first.run(members.leave, "a")
        first = Process(space, "a", uptime=0.0) if owner == "c" else first
    assert space.count(SUSPECTS, "test") == 2
    assert first.run(lanes.claim, first.caller) == lanes.NoClaim(again_in=ATTEMPT_PAUSES[2])
    later = Process(space, "a", uptime=ATTEMPT_PAUSES[2])
    lease, item = later.claim()
    assert (item.attempts, space.count(TRIED, "a")) == (3, 1)
    assert later.run(lanes.claim, later.caller) == lanes.NoClaim()
    told = later.told(turns.finish, later.caller, lease, item, None, "answered", ())
    assert ("ready", "test") in told
    assert later.claim()[1].attempts == 3


def test_what_a_turn_took_in_ends_with_it_even_after_a_crash(process: Process) -> None:
    process.accept("e1", "e2", "e3")
    lease, item = process.claim()
    second, third = process.run(lanes.waiting, key(), 9)
    opened = process.run(sessions.open_session, lease, Opening(session=new_session("s1")))
    process.run(turns.record_step, lease, opened.session.ref, item, step(user("x"), absorbed=[second.id]))
    process.run(members.leave, "a")
    lease, item = process.claim()
    last = (opened.session.ref, step(user("y"), absorbed=[third.id]))
    ended = process.run(turns.finish, process.caller, lease, item, last, "answered", ())
    assert ended.next is None
    outcomes = [process.space.get(ITEM, int(each.id)) for each in (item, second, third)]
    assert [each and each.outcome for each in outcomes] == ["answered", "absorbed", "absorbed"]
    assert process.space.get(TURN, int(item.id)) is None
    assert process.space.get(LANE, CHAT_1) is None


def test_items_beside_lanes_go_from_a_dead_process_to_one_that_runs_their_platform(process: Process) -> None:
    process.accept("stop", bypass=True)
    assert process.told(members.leave, "a") == [("left",)]
    assert process.space.count(LEFT, "test") == 1
    other = Process(process.records, "b")
    assert [item.attempts for item in other.run(lanes.claim_left, other.caller)] == [2]
    assert other.run(lanes.claim_left, other.caller) == []


# -- rows ----------------------------------------------------------------------------------------------


def row_state(space: MemoryRecords, name: str) -> tuple[str, str, int]:
    row = space.get(ROW, name)
    assert row is not None
    return row.out.state, row.claim, row.out.ambiguous


def test_of_a_chat_one_row_is_claimed_and_the_next_when_that_is_shown(process: Process) -> None:
    claimed = process.run(outbox.emit, process.caller, [outbound("o1"), outbound("o2"), outbound("x", "2")])
    assert [row.id for row in claimed] == ["o1", "x"]
    following = process.run(outbox.mark_sent, process.caller, "o1", "m1")
    assert following is not None
    assert following.id == "o2"
    assert row_state(process.space, "o1")[0] == "sent"


def test_where_nothing_waits_a_row_stands_behind_all_that_its_chat_has_shown(process: Process) -> None:
    process.run(outbox.emit, process.caller, [outbound("o1"), outbound("o2"), outbound("o3")])
    for name in ("o1", "o2", "o3"):
        process.run(outbox.mark_sent, process.caller, name, None)
    process.run(outbox.emit, process.caller, [outbound("o4")])
    rows = [process.space.get(ROW, name) for name in ("o1", "o2", "o3", "o4")]
    places = [row.place for row in rows if row is not None]
    assert places == sorted(set(places))


def test_a_row_that_a_dead_process_was_sending_is_in_doubt_unless_its_sender_lives_after_all(
    space: MemoryRecords,
) -> None:
    dead, other = Process(space, "a"), Process(space, "b")
    dead.run(outbox.emit, dead.caller, [outbound("o1"), outbound("o2")])
    dead.run(members.leave, "a")
    assert row_state(space, "o1") == ("sending", "", 0)
    assert [row.id for row in other.run(outbox.claim_due, other.caller, 9)] == ["o1"]
    assert row_state(space, "o1") == ("sending", "b", 1)
    assert dead.run(outbox.mark_sent, dead.caller, "o1", "m1") is None  # it knows, and keeps the row from no other
    other.run(outbox.mark_retry, other.caller, "o1", 60.0, True, False, True)
    assert row_state(space, "o1")[0] == "sent"
    assert [row.id for row in other.run(outbox.claim_due, other.caller, 9)] == ["o2"]


def test_a_process_that_lives_after_all_does_not_let_go_of_what_it_sends_anew(process: Process) -> None:
    process.run(outbox.emit, process.caller, [outbound("o1")])
    process.run(members.leave, process.caller.owner)
    assert [row.attempts for row in process.run(outbox.claim_due, process.caller, 9)] == [2]
    process.run(outbox.mark_retry, process.caller, "o1", 0.0, False, False, False, 1)  # of what it had in hand before
    assert row_state(process.records, "o1") == ("sending", process.caller.owner, 1)
    process.run(outbox.mark_retry, process.caller, "o1", 0.0, False, False, False, 2)
    assert row_state(process.records, "o1")[0] == "pending"


def test_a_retry_is_looked_at_when_it_is_due_and_by_who_sends_there(process: Process) -> None:
    process.run(outbox.emit, process.caller, [outbound("o1")])
    told = process.told(outbox.mark_retry, process.caller, "o1", 60.0, False, False, True)
    assert ("due", "test") in told
    assert process.run(outbox.next_due, process.caller) == START + 60
    elsewhere = Process(process.records, now=START + 61, sends=Platforms(["other"]))
    assert elsewhere.run(outbox.claim_due, elsewhere.caller, 9) == ()
    later = Process(process.records, now=START + 61)
    assert [row.attempts for row in later.run(outbox.claim_due, later.caller, 9)] == [2]
    assert process.space.get(CHAT, CHAT_1) is None  # nothing is left to be remembered of the chat
    assert process.space.names(LOOKS) == []


def test_a_row_much_in_doubt_lets_others_go_first_while_it_waits(process: Process) -> None:
    process.run(outbox.emit, process.caller, [outbound("o1"), outbound("o2")])
    for attempt in range(MOST_DOUBTS + 1):
        process.run(outbox.mark_retry, process.caller, "o1", 60.0 * (attempt == MOST_DOUBTS), True, False, True)
        claimed = process.run(outbox.claim_due, process.caller, 9)
        assert [row.id for row in claimed] == ["o2" if attempt == MOST_DOUBTS else "o1"]
    following = process.run(outbox.mark_sent, process.caller, "o2", "m2")
    assert following is not None
    assert following.id == "o1"


@pytest.mark.parametrize("heard", [False, True])
def test_a_chat_that_is_gone_is_closed_unless_somebody_was_heard_there_since(process: Process, heard: bool) -> None:
    process.run(outbox.emit, process.caller, [outbound("o1"), outbound("o2")])
    if heard:
        process.accept("e1")
    following = process.run(outbox.mark_refused, process.caller, "o1", "blocked", None, True, False)
    assert (following is None) is not heard
    assert row_state(process.space, "o2")[0] == (OutboundState.SENDING if heard else OutboundState.WITHHELD)


def test_a_row_that_is_being_sent_ends_by_itself_when_its_chat_closes(process: Process) -> None:
    process.run(outbox.emit, process.caller, [outbound("o1"), outbound("o2")])
    process.run(outbox.close_chat, outbound("o1").to, "blocked")
    assert [row_state(process.space, name)[0] for name in ("o1", "o2")] == ["sending", "withheld"]
    process.run(outbox.advance, process.caller, CHAT_1)
    assert row_state(process.space, "o1")[0] == "sending"


def test_the_rows_behind_one_that_is_forgotten_are_looked_at(process: Process) -> None:
    process.run(outbox.emit, process.caller, [outbound("o1"), replace(outbound("o2"), key=replace(key(), user="u"))])
    process.run(outbox.mark_retry, process.caller, "o1", 60.0, False, False, True)
    told = process.told(forgetting.erase, None, Erasure(id="d1", key=key(), at=START))
    assert ("rows", "test") in told
    assert [row.id for row in process.run(outbox.claim_due, process.caller, 9)] == ["o2"]
    process.run(outbox.mark_retry, process.caller, "o2", 60.0, False, False, True)
    process.run(forgetting.erase, None, Erasure(id="d2", key=replace(key(), user="u"), at=START))
    assert process.run(outbox.claim_due, process.caller, 9) == ()
    assert process.run(outbox.next_due, process.caller) is None  # nothing is left to look at


# -- what calls cost -----------------------------------------------------------------------------------


def test_calls_of_a_day_are_added_up_by_platform_purpose_and_model(process: Process) -> None:
    usage = CanonicalUsage(input_tokens=3)
    call = LedgerEntry(at=START, purpose="turn", provider="p", model="m", usage=usage, cost_usd=0.5)
    process.run(spending.enter, [call, replace(call, cost_usd=None), replace(call, model="n")], "s1", key())
    day = int(START // 86_400)
    found = process.space.get(SUM, f"{day} test turn m")
    assert found is not None
    assert (found.total.calls, found.total.unpriced_calls, found.total.usage.input_tokens) == (2, 1, 6)
    listed = process.run(spending.usage, day * 86_400.0, "model")
    assert [(total.label, total.calls) for total in listed] == [("m", 2), ("n", 1)]
    assert process.run(spending.usage, START - 1, "model") == process.run(spending.usage, day * 86_400.0, "model")


def test_what_a_dead_process_reserved_stays_spent(process: Process) -> None:
    caps = (Cap(name="chat", account="c", limit=10),)
    first = Reservation(id="r1", amount=6, caps=caps)
    assert process.run(spending.reserve, process.caller, first, START) is None
    assert process.run(spending.reserve, process.caller, first, START) is None  # the same id counts once
    reached = process.run(spending.reserve, process.caller, replace(first, id="r2"), START)
    assert reached is not None
    assert reached.spent == 6
    process.run(members.leave, "a")
    process.run(spending.settle, first, 1)
    account = process.space.get(ACCOUNT, "c")
    assert account is not None
    assert (account.spent, process.space.get(RESERVED, "r1 c")) == (6, None)


def test_who_has_the_store_for_itself_takes_over_from_all_and_another_only_from_the_dead(space: MemoryRecords) -> None:
    living = Process(space, "a")
    living.run(members.join, living.caller, START + 10)
    living.accept("e1", room=1)
    beside = Process(space, "b")
    beside.run(members.join, beside.caller, START + 10)
    assert space.count(HELD, "a") == 1
    alone = Process(space, "c", sole=True)
    alone.run(members.join, alone.caller, START + 10)
    assert (space.count(HELD, "a"), space.get(MEMBER, "a")) == (0, None)
    assert alone.claim()[1].attempts == 2


# -- reports -------------------------------------------------------------------------------------------


def test_a_name_is_an_event_or_a_number(process: Process) -> None:
    process.accept("e1", "7")
    lease, item = process.claim()
    assert lease.key == item.key
    by_event = process.run(reports.named, "e1", ["other", "test"])
    assert [fate.item.id for fate in by_event.fates] == [item.id]
    assert process.run(reports.named, item.id, []).fates == by_event.fates
    assert process.run(reports.named, "e1", ["other"]).fates == ()
    assert len(process.run(reports.named, "7", ["test"]).fates) == 1  # nothing has this number
    assert process.run(reports.named, str(1 << 63), ["test"]).fates == ()  # no store has so high a number
