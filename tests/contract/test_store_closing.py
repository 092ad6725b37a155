"""Chats in which nothing can be shown any more: their rows end unseen, and a message from them opens them."""

from __future__ import annotations

from dataclasses import replace

from gateway.domain.chat import ChatAddress, Inbound, Outbound
from gateway.store.port import Store
from tests.support.store_kit import Bench, arrival, outbound

pytest_plugins = ["tests.support.stores"]

HERE = ChatAddress(platform="test", chat="1")
TOPIC = ChatAddress(platform="test", chat="1", thread="7")
WHY = "the person has blocked the bot"


async def states(store: Store) -> dict[str, tuple[str, str | None]]:
    """Return the state of each row."""
    return {row.id: (row.state, row.error) for row in await store.outbox(None, 99)}


async def test_rows_of_a_closed_chat_end_at_once_and_those_of_others_do_not(store: Store) -> None:
    await store.emit([outbound("o1"), outbound("o2"), outbound("x", "2"), outbound("o3")])
    await store.close_chat(HERE, WHY)
    assert await store.closed(HERE) == await store.closed(TOPIC) == WHY
    assert await store.closed(ChatAddress(platform="test", chat="2")) is None
    assert await store.mark_refused("o1", "blocked") is None
    assert await store.emit([replace(outbound("o4"), to=TOPIC)]) == ()
    assert await states(store) == {
        "o1": ("refused", "blocked"),
        "o2": ("refused", WHY),
        "o3": ("refused", WHY),
        "o4": ("refused", WHY),
        "x": ("sending", None),
    }
    assert (await store.status()).unsent == 1
    assert await store.claim_outbound(9) == []


async def test_rows_behind_one_that_is_being_sent_end_at_once_too(store: Store) -> None:
    await store.emit([outbound("o1"), outbound("o2"), outbound("o3")])
    await store.close_chat(HERE, WHY)
    await store.open_chat(HERE)
    assert await store.mark_sent("o1", "m1") is None
    assert [row.state for row in await store.outbox(None, 9)] == ["refused", "refused", "sent"]


async def test_a_row_that_is_put_off_when_its_chat_closes_ends_instead_of_being_tried(bench: Bench) -> None:
    store = await bench.open()
    await store.emit([outbound("o1")])
    await store.mark_retry("o1", 30, ambiguous=False)
    await store.close_chat(HERE, WHY)
    assert (await states(store))["o1"] == ("refused", WHY)
    await store.emit([outbound("o2")])
    await store.open_chat(HERE)
    (row,) = await store.emit([outbound("o3")])
    await store.close_chat(HERE, WHY)  # while it is being sent
    await store.mark_retry(row.id, 30, ambiguous=False)
    await bench.clock.advance(31)
    assert await store.claim_outbound(9) == []
    assert {state for state, _ in (await states(store)).values()} == {"refused"}


async def test_a_row_whose_sender_died_with_its_chat_closed_is_not_tried_again(bench: Bench) -> None:
    store = await bench.open()
    await store.emit([outbound("o1")])
    await store.close_chat(HERE, WHY)
    store = await bench.crash(store)
    assert await store.closed(HERE) == WHY
    assert await store.claim_outbound(9) == []
    assert (await states(store))["o1"] == ("refused", WHY)


async def test_an_accepted_message_opens_its_chat(bench: Bench) -> None:
    store = await bench.open()
    await store.accept([arrival("e1")], cap=9)
    await store.close_chat(HERE, WHY)
    await store.accept([arrival("e1"), arrival("other", "2")], cap=9)  # a message that is known says nothing new
    assert await store.closed(HERE) == WHY
    await store.accept([arrival("e2", text="/status", bypass=True)], cap=9)
    assert await store.closed(HERE) is None
    assert [row.id for row in await store.emit([outbound("o1")])] == ["o1"]


async def test_a_message_that_finds_its_lane_full_opens_its_chat_so_that_the_refusal_is_seen(store: Store) -> None:
    await store.accept([arrival("e1")], cap=1)
    await store.close_chat(HERE, WHY)
    await store.accept([arrival("e2")], cap=1)
    assert [row.id for row in await store.refuse(arrival("e2"), outbound("o1"))] == ["o1"]


async def test_the_gateways_own_request_opens_no_chat(store: Store) -> None:
    await store.close_chat(HERE, WHY)
    asked = arrival("expiry")
    own = Inbound(event_id="expiry", source=asked.inbound.source, text="s1", kind="expiry")
    await store.accept([replace(asked, inbound=own)], cap=9)
    assert await store.closed(HERE) == WHY


async def test_a_row_that_finds_its_chat_gone_closes_it(store: Store) -> None:
    await store.emit([outbound("o1"), outbound("o2"), outbound("x", "2")])
    await store.accept([arrival("other", "2")], cap=9)
    assert await store.mark_refused("o1", WHY, gone=True) is None
    assert await store.closed(HERE) == WHY
    assert (await states(store))["o2"] == ("refused", WHY)
    assert (await states(store))["x"][0] == "sending"


async def test_a_refusal_that_a_message_has_overtaken_closes_nothing(store: Store) -> None:
    await store.emit([outbound("o1"), outbound("o2"), outbound("o3"), outbound("o4")])
    await store.accept([arrival("e1")], cap=9)
    assert _id(await store.mark_refused("o1", WHY, gone=True)) == "o2"
    await store.refuse(arrival("e2"), outbound("no room"))
    assert _id(await store.mark_refused("o2", WHY, gone=True)) == "o3"
    await store.open_chat(HERE)
    assert _id(await store.mark_refused("o3", WHY, gone=True)) == "o4"
    await store.accept([arrival("e1")], cap=9)  # a message that is known says nothing new
    assert await store.closed(HERE) is None
    await store.mark_refused("o4", WHY, gone=True)
    assert await store.closed(HERE) == WHY


async def test_a_row_that_is_tried_again_asks_anew_whether_its_chat_is_there(bench: Bench) -> None:
    store = await bench.open()
    await store.emit([outbound("o1")])
    await store.accept([arrival("e1")], cap=9)
    await store.mark_retry("o1", 1, ambiguous=False)
    await bench.clock.advance(2)
    assert [row.id for row in await store.claim_outbound(9)] == ["o1"]
    await store.mark_refused("o1", WHY, gone=True)
    assert await store.closed(HERE) == WHY


async def test_what_was_heard_before_a_row_was_handed_out_does_not_keep_its_chat_open(store: Store) -> None:
    await store.emit([outbound("o1"), outbound("o2")])
    await store.accept([arrival("e1")], cap=9)
    await store.mark_sent("o1", None)
    await store.mark_refused("o2", WHY, gone=True)
    assert await store.closed(HERE) == WHY


def _id(row: Outbound | None) -> str | None:
    return row and row.id


async def test_opening_and_closing_twice_does_no_harm(store: Store) -> None:
    await store.open_chat(HERE)
    await store.close_chat(HERE, WHY)
    await store.close_chat(HERE, "the chat was deleted")
    assert await store.closed(HERE) == "the chat was deleted"
    await store.open_chat(HERE)
    await store.open_chat(HERE)
    assert await store.closed(HERE) is None
