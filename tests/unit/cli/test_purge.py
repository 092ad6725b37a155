"""`legato purge`: of which conversations what goes."""

from __future__ import annotations

from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest

from gateway.cli import purge as purging
from gateway.cli.purge import Purge, _purge, is_whole, key_named, person_named, preview, preview_text
from gateway.domain.chat import SessionKey
from gateway.domain.pairing import Guest, GuestBook, PairingRequest
from gateway.people.pairing import guest_book, set_guest_book
from gateway.runtime.errors import UserError
from gateway.store.port import Store
from gateway.store.records import Talk
from tests.support.fakes import ManualClock, SequentialIds
from tests.support.store_kit import key, new_session

ANNA = ("test", "u1")
ALONE, GROUP = Talk(key=key(), chat_type="direct"), Talk(key=key("g"), chat_type="group")
OWN = Talk(key=SessionKey(platform="test", chat="g", user="u1"), chat_type="group")


class Kept:
    """A store with these conversations: in each, one session that is over, one that goes on."""

    def __init__(self, *talks: Talk) -> None:
        self.store = cast(Any, Mock(talks=AsyncMock(return_value=[*talks]), sessions=AsyncMock(side_effect=self._page)))
        self.forgetter = cast(Any, Mock(erase=AsyncMock(return_value={"messages": 2, "files": 0})))
        self.forgetter.forget_said_by = AsyncMock(return_value={"messages": 1})
        self.forgetter.forget_memory, self.forgetter.forget_own = AsyncMock(), AsyncMock()
        self.book = GuestBook()

    async def _page(self, at: SessionKey, limit: int, offset: int = 0) -> list[Any]:
        over = new_session("s1", key=at, ended_at=5.0, last_active_at=5.0, message_count=4)
        return [new_session("s2", key=at, chat_type="group", last_active_at=5.0, message_count=3), over][offset:][
            :limit
        ]

    async def go(self, wanted: Purge, clock: ManualClock) -> dict[str, int]:
        return await _purge(self.store, self.forgetter, wanted, clock, SequentialIds())


@pytest.mark.parametrize(
    ("wanted", "lines"),
    [
        (
            Purge(person=ANNA),
            ["1: everything (2 sessions, 7 messages)", "g: what the person said (2 sessions, 7 messages)"],
        ),
        (
            Purge(before=5.1),
            ["1: the older part (1 session, 4 messages)", "g: the older part (1 session, 4 messages)"],
        ),
        (Purge(before=5.0), ["There is nothing to purge."]),
        (Purge(key=key("g")), ["g: everything (2 sessions, 7 messages)"]),
    ],
)  # fmt: skip
async def test_what_would_go_is_said_before(wanted: Purge, lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purging, "_PAGE", 1)
    kept = Kept(ALONE, GROUP)
    shown = preview_text(await preview(kept.store, wanted))
    assert shown.replace("test/chat=", "").splitlines() == lines
    if wanted.key is None:
        kept.store.talks.assert_awaited_once_with(*(wanted.person or (None, None)))


@pytest.mark.parametrize(("talk", "whole"), [(ALONE, True), (GROUP, False), (OWN, True)])
def test_of_a_group_that_shares_a_conversation_only_a_persons_words_go(talk: Talk, whole: bool) -> None:
    assert is_whole(talk, Purge(person=ANNA)) is whole
    assert is_whole(talk, Purge(before=1.0))


async def test_a_person_goes_with_their_memory_and_their_place_in_the_guest_book(
    store: Store, clock: ManualClock
) -> None:
    kept = Kept(ALONE, GROUP)
    there = [Guest(platform="test", user=user, chat="1", name="", code="A", at=0.0) for user in ("u1", "ben")]
    asks = PairingRequest(platform="test", user="u1", chat="2", name="", code="B", event="e", at=0.0)
    await set_guest_book(store, GuestBook(guests=tuple(there), asking=(asks,), version=1))
    kept.store.notes, kept.store.set_notes = store.notes, store.set_notes
    assert await kept.go(Purge(person=ANNA), clock) == {"messages": 3, "guests": 1}
    book = await guest_book(store)
    assert ([each.user for each in book.guests], book.asking) == (["ben"], ())
    (erased,) = kept.forgetter.erase.await_args_list
    assert (erased.args[1].key, erased.args[1].before) == (key(), None)
    kept.forgetter.forget_memory.assert_awaited_once()
    assert kept.forgetter.forget_said_by.await_args.args[:2][0] == key("g")
    assert kept.forgetter.forget_own.await_args.args[0].user == "u1"
    assert await kept.go(Purge(person=ANNA), clock) == {"messages": 3}, "nobody is let in any more"


async def test_of_what_is_old_only_words_go(clock: ManualClock) -> None:
    kept = Kept(ALONE, OWN)
    assert await kept.go(Purge(before=5.0), clock) == {"messages": 4}
    assert [call.args[1].before for call in kept.forgetter.erase.await_args_list] == [5.0, 5.0]
    kept.forgetter.forget_memory.assert_not_awaited()
    kept.forgetter.forget_own.assert_not_awaited()


async def test_of_a_person_only_older_words_go_from_a_group(clock: ManualClock) -> None:
    kept = Kept(GROUP)
    assert await kept.go(Purge(person=ANNA, before=5.0), clock) == {"messages": 1}
    assert kept.forgetter.forget_said_by.await_args.kwargs == {"before": 5.0}
    kept.forgetter.forget_own.assert_not_awaited()


@pytest.mark.parametrize("text", ["", "anna", "telegram:", ":7"])
def test_a_person_has_a_platform_and_an_id(text: str) -> None:
    assert person_named("telegram:7:8") == ("telegram", "7:8")
    with pytest.raises(UserError, match="does not name a person"):
        person_named(text)


def test_a_key_is_one_that_a_list_prints() -> None:
    assert key_named("test/chat=1") == key()
    with pytest.raises(UserError, match="is not the key of a conversation"):
        key_named("anna")
