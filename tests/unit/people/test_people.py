"""Where a person is reached by what nobody there asked for."""

from __future__ import annotations

import pytest

from gateway.domain.chat import ChatAddress, Source
from gateway.people.access import Access
from gateway.people.people import place_at


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("chat_type", ["direct", "group", "thread"])
def test_a_place_is_the_chat_of_its_person_and_for_a_key_whichever_comes_next(chat_type: str, keyed: bool) -> None:
    source = Source(platform="api", chat="c", chat_type=chat_type, user="anna", thread="t")  # type: ignore[arg-type]
    place = place_at(source, Access(keyed=("api",) if keyed else ("another",)))
    assert place.to == ChatAddress(platform="api", chat="c", thread=None if keyed else "t")
    assert place.person == (None if chat_type == "direct" else "anna")
