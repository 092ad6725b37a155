"""Who is let in and shown out by a command."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest

from gateway.commands.base import CommandContext
from gateway.commands.people import IN_CHAT, listed, pair
from gateway.domain.chat import SessionKey
from gateway.domain.pairing import CODE_SECONDS, Guest, GuestBook, PairingRequest
from tests.support.fakes import ManualClock

BOB = Guest(platform="fake", user="bob", chat="c", name="Bob", code="AAAAAAAA", at=0.0)


async def test_the_turns_of_who_is_shown_out_are_stopped_in_every_process() -> None:
    keys = [SessionKey(platform="fake", chat=chat, user="bob") for chat in ("c", "d")]
    running, store, clock = Mock(), AsyncMock(), ManualClock()
    running.for_person.return_value = keys
    access = SimpleNamespace(is_admin=lambda source: True, trusted={"fake"})
    people = SimpleNamespace(pairing=SimpleNamespace(access=access, show_out=AsyncMock(return_value=BOB)))
    here = SimpleNamespace(source=SimpleNamespace(platform="fake"))
    facts: dict[str, Any] = {"people": people, "inbound": here, "argument": "remove fake:bob"}
    context = SimpleNamespace(store=store, running_turns=running, clock=clock, **facts)
    assert str(await pair.run(cast(CommandContext, context))).startswith("I shut fake:bob")
    people.pairing.show_out.assert_awaited_once_with("fake", "bob")
    running.for_person.assert_called_once_with("fake", "bob")
    assert [call.args for call in store.signal.await_args_list] == [(key, "stop", clock.now()) for key in keys]


@pytest.mark.parametrize(("age", "said"), [(CODE_SECONDS - 1.0, "fake:eve “Eve”"), (CODE_SECONDS, "nobody is asking")])
def test_who_asked_is_listed_as_long_as_the_code_is_taken(age: float, said: str) -> None:
    eve = PairingRequest(platform="fake", user="eve", chat="d", name="Eve", code="BBBBBBBB", event="e", at=1_000.0)
    assert said in listed(GuestBook(asking=(eve,)), 1_000.0 + age, IN_CHAT)
