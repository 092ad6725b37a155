"""The in-memory half of the SQLite store, its lanes; and the codec."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.chat import ChatAddress, Inbound, Source
from gateway.runtime.errors import SessionConflict
from gateway.runtime.structs import replace
from gateway.store.records import Arrival, InboxItem, ToolIntent
from gateway.store.shared import documents
from gateway.store.shared.documents import (
    dumps,
    inbound_from,
    inbound_json,
    intents_from,
    intents_json,
    parsed,
    storable,
)
from gateway.store.shared.platforms import chat_name
from gateway.store.sqlite.lanes import Lanes
from gateway.store.sqlite.messages import message_columns, message_from
from tests.support.fakes import ManualClock
from tests.support.store_kit import key


def item(number: int, chat: str = "1", attempts: int = 0) -> InboxItem:
    source = Source(platform="test", chat=chat, chat_type="direct", user="u")
    inbound = Inbound(event_id=f"e{number}", source=source, text="")
    return InboxItem(id=str(number), key=key(chat), inbound=inbound, accepted_at=0.0, attempts=attempts)


def lanes(concurrency: int = 9, waiting: list[InboxItem] | None = None) -> Lanes:
    made = Lanes(clock=ManualClock(), concurrency=concurrency)
    made.begin(3, waiting or [])
    return made


def reserve(board: Lanes, *chats: str) -> list[str]:
    arrivals = [Arrival(inbound=item(1, chat).inbound, key=key(chat), at=0.0) for chat in chats]
    return [each.chat for each in board.reserve(arrivals).values()]


async def test_a_reserved_lane_is_claimed_by_its_first_item() -> None:
    board = lanes()
    assert reserve(board, "1", "2") == ["1", "2"]
    assert reserve(board, "1") == []
    board.claimed(item(1, attempts=1))
    board.queued(item(2))
    board.unreserve({"1": key("1"), "2": key("2")})
    lane = await board.next_ready()
    claim = board.grant(lane, "w")
    assert claim.item.id == "1"
    assert [each.id for each in board.waiting(key("1"), 9)] == ["2"]
    assert reserve(board, "2") == ["2"]


async def test_only_so_many_lanes_are_reserved() -> None:
    board = lanes(concurrency=2)
    assert reserve(board, "1", "2", "3") == ["1", "2"]
    board.unreserve({"1": key("1")})
    assert reserve(board, "3") == ["3"]


async def test_a_lease_is_good_until_its_last_operation() -> None:
    board = lanes()
    reserve(board, "1")
    board.claimed(item(1, attempts=1))
    lane = await board.next_ready()
    claim = board.grant(lane, "w")
    assert board.check(claim.lease, claim.item) is lane
    with pytest.raises(SessionConflict):
        board.check(claim.lease, item(2))
    with pytest.raises(SessionConflict):
        board.check(replace(claim.lease, fence=claim.lease.fence - 1))
    board.check(claim.lease, ends=True)
    with pytest.raises(SessionConflict):
        board.check(claim.lease)
    board.not_ended(lane)
    board.check(claim.lease)
    board.check(claim.lease, ends=True)
    board.ended(lane, None)
    with pytest.raises(SessionConflict):
        board.check(claim.lease)
    assert board.current(key("1")) is None


async def test_an_item_of_an_earlier_process_is_current_once_it_had_begun() -> None:
    board = lanes(waiting=[item(1, attempts=1), item(2, "2"), item(3)])
    begun = board.current(key("1"))
    assert begun is not None
    assert begun.id == "1"
    assert board.current(key("2")) is None
    lane = await board.next_ready()
    assert lane.head is None
    board.counted(lane, replace(lane.queue[0], attempts=2))
    claim = board.grant(lane, "w")
    board.check(claim.lease, ends=True)
    board.released(lane, counted=False)
    assert [each.id for each in board.waiting(key("1"), 9)] == ["1", "3"]
    assert (await board.next_ready()).key == key("2")
    assert claim.item.attempts == 2


async def test_what_nobody_was_given_can_be_taken_back() -> None:
    board = lanes()
    reserve(board, "1", "2")
    board.claimed(item(1, "1", attempts=1))
    board.claimed(item(2, "2", attempts=1))
    board.grant(await board.next_ready(), "w")
    assert [each.id for each in board.close()] == ["2"]
    assert reserve(board, "3") == []


async def test_waiting_workers_are_served_in_turn() -> None:
    board = lanes()
    first, second = asyncio.create_task(board.next_ready()), asyncio.create_task(board.next_ready())
    await asyncio.sleep(0)
    first.cancel()
    board.queued(item(1))
    assert (await second).key == key("1")
    await asyncio.gather(first, return_exceptions=True)


@given(st.text(), st.text(), st.none() | st.text())
def test_an_inbound_survives_its_json(event_id: str, text: str, thread: str | None) -> None:
    source = Source(platform="p", chat=text, chat_type="thread", user=event_id, thread=thread, renamed=thread)
    inbound = Inbound(event_id=event_id, source=source, text=text, reply_to=thread, part_of=thread)
    encoded = inbound_json(inbound)
    encoded.encode("utf-8")
    assert inbound_from(encoded) == inbound


@given(st.text())
def test_any_text_can_be_stored(text: str) -> None:
    storable(text).encode("utf-8")
    dumps({"x": text}).encode("utf-8")


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3), st.none() | st.integers(0, 9))
def test_a_message_survives_its_columns(extra: dict[str, str], tokens: int | None) -> None:
    message = {**extra, "role": "user", "content": "c", "_legato": {"person": "s", "id": "9", "at": 1.0}}
    body, note = message_columns(message)  # type: ignore[arg-type]
    again = message_from((9, body, note, tokens, 1.0))
    expected = {"person": "s", "id": "9", "at": 1.0, **({} if tokens is None else {"tokens": tokens})}
    assert again == {**message, "_legato": expected}


def test_threads_of_a_chat_share_its_outbox_lane() -> None:
    one, two = (ChatAddress(platform="p", chat="c", thread=thread) for thread in ("1", None))
    assert chat_name(one) == chat_name(two)
    assert chat_name(one) != chat_name(ChatAddress(platform="p", chat="c/thread=1"))


def test_intents_survive_their_json() -> None:
    intents = (ToolIntent(call_id="c", tool="t"),)
    assert intents_from(intents_json(intents)) == intents


def test_documents_that_are_parsed_together_are_those_that_are_parsed_alone() -> None:
    half = "中" * (documents._AT_ONCE // 2)
    values: list[Any] = [{"n": 1}, half, [], half, None, 'a "quoted", 好', half, half, {}]
    assert parsed(map(dumps, values)) == values
    assert parsed([dumps(half)] * 3) == [half] * 3
    assert parsed([]) == []
