"""Where a person is reached by what nobody there asked for, and the home chat."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from gateway.domain.chat import ChatAddress, Source
from gateway.people.access import Access
from gateway.people.people import Home, People, Place, place_at
from gateway.runtime.errors import UserError
from gateway.store.port import Store

SAID, CHOSEN = ChatAddress(platform="fake", chat="said"), ChatAddress(platform="fake", chat="chosen", thread="t")


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("chat_type", ["direct", "group", "thread"])
def test_a_place_is_the_chat_of_its_person_and_for_a_key_whichever_comes_next(chat_type: str, keyed: bool) -> None:
    source = Source(platform="api", chat="c", chat_type=chat_type, user="anna", thread="t")  # type: ignore[arg-type]
    place = place_at(source, Access(keyed=("api",) if keyed else ("another",)))
    assert place.to == ChatAddress(platform="api", chat="c", thread=None if keyed else "t")
    assert place.person == (None if chat_type == "direct" else "anna")


async def test_the_home_is_the_chat_that_an_admin_chose_or_else_that_of_the_settings(store: Store) -> None:
    home = Home(store=store, said="fake:said")
    assert await home.needed() == Place(to=SAID)
    chosen = Place(to=CHOSEN, person="anna")
    await home.move(chosen)
    assert await Home(store=store, said=None).needed() == chosen
    await store.set_notes("home", {"chat": '{"to": 5}'})  # what a later release may write
    assert await home.place() == Place(to=SAID)
    await home.move(None)
    assert await home.place() == Place(to=SAID)
    home.said = None
    assert await home.place() is None
    with pytest.raises(UserError, match="no home chat"):
        await home.needed()


def test_other_settings_hold_at_once() -> None:
    parts: dict[str, Any] = {
        name: Mock() for name in ("pairing", "approvals", "welcome", "reminders", "firing", "home")
    }
    access = Access(allow={"fake:anna"})
    People(**parts).take_up(access, deadline=60.0, lasts="session", home="fake:said")
    assert parts["pairing"].access is parts["approvals"].access is parts["reminders"].access is access
    assert (parts["approvals"].seconds, parts["approvals"].lasts, parts["home"].said) == (60.0, "session", "fake:said")
