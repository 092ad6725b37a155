"""Chats in which nothing can be shown any more: their rows end unseen, and a message from them opens them."""

from __future__ import annotations

from gateway.domain.chat import ChatAddress, Inbound, Outbound
from gateway.runtime.structs import replace
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
        "o2": ("withheld", WHY),
        "o3": ("withheld", WHY),
        "o4": ("withheld", WHY),
        "x": ("sending", None),
    }
    assert (await store.status()).unsent == 1
    assert await store.claim_outbound(9) == []


async def test_rows_behind_one_that_is_being_sent_end_at_once_too(store: Store) -> None:
    await store.emit([outbound("o1"), outbound("o2"), outbound("o3")])
    await store.close_chat(HERE, WHY)
    await store.open_chat(HERE)
    assert await store.mark_sent("o1", "m1") is None
    assert [row.state for row in await store.outbox(None, 9)] == ["withheld", "withheld", "sent"]


async def test_a_row_that_is_put_off_when_its_chat_closes_ends_instead_of_being_tried(bench: Bench) -> None:
    store = await bench.open()
    await store.emit([outbound("o1")])
    await store.mark_retry("o1", 30, ambiguous=False)
    await store.close_chat(HERE, WHY)
    assert (await states(store))["o1"] == ("withheld", WHY)
    await store.emit([outbound("o2")])
    await store.open_chat(HERE)
    (row,) = await store.emit([outbound("o3")])
    await store.close_chat(HERE, WHY)  # while it is being sent
    await store.mark_retry(row.id, 30, ambiguous=False)
    await bench.clock.advance(31)
    assert await store.claim_outbound(9) == []
    assert {state for state, _ in (await states(store)).values()} == {"withheld"}


async def test_a_row_whose_sender_died_with_its_chat_closed_is_not_tried_again(bench: Bench) -> None:
    store = await bench.open()
    await store.emit([outbound("o1")])
    await store.close_chat(HERE, WHY)
    store = await bench.crash(store)
    assert await store.closed(HERE) == WHY
    assert await store.claim_outbound(9) == []
    assert (await states(store))["o1"] == ("withheld", WHY)


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
    assert (await states(store))["o2"] == ("withheld", WHY)
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


async def test_what_was_no_answer_is_refused_and_what_is_withheld_goes_out_anew(bench: Bench) -> None:
    store = await bench.open()
    notice, edit = replace(outbound("n1"), kind="notice"), replace(outbound("e1"), edits="o0")
    await store.emit([outbound("o1"), notice, edit, outbound("o2")])
    await store.mark_retry("o1", 0, ambiguous=True)
    await store.claim_outbound(9)
    await store.mark_refused("o1", WHY, gone=True)
    assert {row_id: state for row_id, (state, _) in (await states(store)).items()} == {
        "o1": "withheld",
        "n1": "refused",
        "e1": "refused",
        "o2": "withheld",
    }
    assert await store.open_chat(HERE)
    assert not await store.open_chat(HERE)
    store = await bench.crash(store)
    (row,) = await store.emit([outbound("o3"), outbound("o1", created_at=5.0)])
    assert row.id == "o3"
    again = await store.mark_sent("o3", "m3")
    assert again is not None
    assert (again.id, again.ambiguous, again.created_at, again.error) == ("o1", 0, 5.0, None)
    assert (await store.status()).unsent == 1
    await store.mark_sent("o1", "m1")
    assert (await store.status()).unsent == 0
    assert (await states(store))["o2"] == ("withheld", WHY)


async def test_who_opens_a_chat_is_told_that_it_was_closed(store: Store) -> None:
    await store.close_chat(HERE, WHY)
    first, second = await store.accept([arrival("e1"), arrival("e2")], cap=9)
    assert (first.reopened, second.reopened) == (True, False)
    await store.mark_refused((await store.emit([outbound("o1")]))[0].id, "unknown", keeps=True)
    assert (await states(store))["o1"] == ("withheld", "unknown")
    assert not (await store.accept([arrival("e3")], cap=9))[0].reopened
