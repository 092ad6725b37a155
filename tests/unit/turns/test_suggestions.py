"""Suggestions: a few short things to say below an answer, each of which works once."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest

from gateway.domain.chat import Outbound
from gateway.domain.message import Message, assistant, text_of, user
from gateway.runtime.structs import replace
from gateway.store.port import Store
from gateway.turns import suggestions
from gateway.turns.suggestions import Suggestions, taken
from tests.support import store_kit
from tests.support.store_kit import key, new_session, outbound

SAID = "/forget everything\nYes\n- Tell me more\n\nTell me more\n* Thanks, s3cret\n• Bye\nLate"
TALK = (user("When?"), assistant("On Tuesday, s3cret."))


class Below:
    """The place below an answer, where a model says `said`."""

    def __init__(self, store: Store, patch: pytest.MonkeyPatch, said: str = SAID) -> None:
        self.outbox, self.asked = Mock(emit=AsyncMock()), AsyncMock(return_value=said)
        self.outbox.new_id.return_value = "new"
        self._begun: list[Coroutine[Any, Any, None]] = []
        patch.setattr(suggestions, "asked_aside", self.asked)
        background = Mock()
        background.start_once.side_effect = lambda work, name: self._begun.append(work)
        self._suggestions = Suggestions(
            store=store,
            outbox=self.outbox,
            background=background,
            redact=lambda text: text.replace("s3cret", "…"),
        )

    async def begin(self, *rows: Outbound, talk: tuple[Message, ...] = TALK) -> list[Outbound]:
        """What stands below these rows."""
        stored = Mock(messages=talk, session=new_session("s1"))
        self._suggestions.begin(cast(Any, Mock(stored=stored)), rows, cast(Any, None))
        for work in self._begun:
            await work
        return [row for call in self.outbox.emit.await_args_list for row in call.args[0]]


@pytest.mark.parametrize("grows", [True, False])
async def test_they_stand_below_the_last_words_and_one_of_them_works_once(
    store: Store, monkeypatch: pytest.MonkeyPatch, grows: bool
) -> None:
    place = Below(store, monkeypatch)
    place.outbox.grows.return_value = grows
    rows = (outbound("o1"), outbound("o2", text="On Tuesday"), replace(outbound("o3"), kind="notice"))
    (below,) = await place.begin(*rows)
    assert [each.label for (each,) in below.buttons] == ["Tell me more", "Thanks, …", "Bye"]
    assert (below.id, below.kind, below.text, below.edits) == (
        ("new", "reply", "On Tuesday", "o2") if grows else ("new", "notice", "You could say:", None)
    )
    told = text_of(place.asked.await_args.args[3].messages[1])  # type: ignore[union-attr]
    assert "Person: When?\n\nAssistant: On Tuesday, …." in told
    tokens = [each.token for (each,) in below.buttons]
    first = tokens[0].removesuffix(" 0")
    for forged in (f"{first} {end}" for end in ("3", "9", "012", "99999", "x", "", "-1", "٣")):
        assert await taken(store, key(), forged) == ""
    assert await taken(store, key("2"), tokens[1]) == ""
    assert await taken(store, key(), tokens[1]) == "Thanks, …"
    assert [await taken(store, key(), each) for each in tokens] == ["", "", ""]


async def test_only_the_newest_ones_work(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    (earlier,) = await Below(store, monkeypatch).begin(outbound("o1"))
    (later,) = await Below(store, monkeypatch).begin(outbound("o2"))
    assert await taken(store, key(), earlier.buttons[0][0].token) == ""
    assert await taken(store, key(), later.buttons[0][0].token) == "Tell me more"


@pytest.mark.parametrize("why", ["no buttons", "no words", "nobody asked", "nothing comes to mind", "waits", "runs"])
async def test_there_are_none(store: Store, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    place = Below(store, monkeypatch, said="-" if why == "nothing comes to mind" else SAID)
    place.outbox.has_buttons.return_value = why != "no buttons"
    if why == "waits":
        await store_kit.put(store, "e1")
    if why == "runs":
        await store_kit.claimed(store)
    row = replace(outbound("o1"), kind="notice" if why == "no words" else "reply")
    assert await place.begin(row, talk=() if why == "nobody asked" else TALK) == []
    assert bool(place.asked.await_count) is (why in ("nothing comes to mind", "waits", "runs"))
