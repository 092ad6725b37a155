"""Who was let in is greeted once, and admins and groups are told something once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

from gateway.delivery.outbox import Outbox
from gateway.domain.chat import Inbound, Outbound, SessionKey, Source
from gateway.domain.pairing import Guest
from gateway.people.access import Access
from gateway.people.welcome import WELCOME, WELCOME_IN_GROUP, Welcome
from gateway.runtime.errors import StoreUnavailable
from gateway.store.port import Store

ABOUT = Inbound(
    event_id="e1", source=Source(platform="test", chat="g", chat_type="group", user="eve", thread="t"), text="hi"
)


def guest(user: str, **more: Any) -> Guest:
    return Guest(
        **{
            "platform": "test",
            "user": user,
            "chat": f"c-{user}",
            "name": "",
            "code": user,
            "at": 5.7,
            "greeted": False,
            **more,
        }
    )


def welcome(shelf: Callable[..., Outbox], *guests: Guest) -> Welcome:
    pairing = Mock(book=AsyncMock(return_value=Mock(guests=guests)), greeted=AsyncMock())
    pairing.access = Access(admins={"test:boss", "test:chief", "test:here@g"})
    return Welcome(pairing=pairing, outbox=shelf(direct_chat=lambda user: None if user == "chief" else f"d-{user}"))


async def rows(store: Store, chat: str, thread: str | None = None) -> list[Outbound]:
    return await store.outbox(SessionKey(platform="test", chat=chat, thread=thread).address, 9)


async def test_a_guest_is_greeted_once_where_they_asked(store: Store, shelf: Callable[..., Outbox]) -> None:
    known = guest("old", greeted=True)
    anna, ben = guest("anna"), guest("ben", place="Choir", name="Ben")
    greets = welcome(shelf, known, anna, ben)
    for _ in range(2):  # the note that they were greeted may be lost
        await greets.greet()
    assert [row.text for row in await rows(store, "c-anna")] == [WELCOME]
    assert [row.text for row in await rows(store, "c-ben")] == [WELCOME_IN_GROUP.format(name="Ben")]
    assert await rows(store, "c-old") == []
    assert cast(Any, greets.pairing).greeted.await_args.args == ([anna, ben],)


async def test_a_store_that_is_away_is_asked_the_next_time(shelf: Callable[..., Outbox]) -> None:
    greets = welcome(shelf)
    cast(Any, greets.pairing).book.side_effect = StoreUnavailable("away")
    await greets.look()
    cast(Any, greets.pairing).greeted.assert_not_awaited()


async def test_admins_and_a_group_are_told_once(store: Store, shelf: Callable[..., Outbox]) -> None:
    tells = welcome(shelf)
    for _ in range(2):
        await tells.tell_admins(ABOUT, "Eve asks.")
        await tells.tell_group(ABOUT, "Who are you?")
    assert [row.text for row in await rows(store, "d-boss")] == ["Eve asks."]
    assert await rows(store, "d-here") == []
    assert [row.text for row in await rows(store, "g", "t")] == ["Who are you?"]
