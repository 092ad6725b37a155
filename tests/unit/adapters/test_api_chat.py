"""What a program is told at the end of an answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from adapters.api.chat import Chat, asked_in
from adapters.api.shapes import ApiError, ChatRequest, Turn
from gateway.domain.adapter import ADMIN_ROLE
from gateway.domain.chat import Outbound, Returns
from gateway.domain.keys import Key
from gateway.runtime.structs import replace
from tests.support.fakes import ManualClock
from tests.support.store_kit import outbound


def ended(last: Outbound | None, cut: bool = False, text: str = "hello") -> Returns:
    """What the row says that ended an answer."""
    chat = Chat(server=Mock(), desk=Mock(), clock=ManualClock(), models=("m",))
    asked: Any = SimpleNamespace(text=text, param="messages")
    answer: Any = SimpleNamespace(final=SimpleNamespace(last=last, cut=cut))
    return chat._returns(asked, answer)


def test_an_answer_ends_with_its_row_or_with_nothing_yet() -> None:
    row = replace(outbound("o1"), returns=Returns(finish="length"))
    for cut in (True, False):
        assert ended(row, cut) is row.returns
    assert ended(None) == Returns()


def test_one_that_the_end_of_the_program_cut_off_may_be_asked_for_again() -> None:
    with pytest.raises(ApiError) as raised:
        ended(None, cut=True)
    assert raised.value.status == 503


@pytest.mark.parametrize(("fault", "status"), [("request", 400), ("cap", 429), ("", 502)])
def test_a_failure_has_the_status_that_says_whose_it_is(fault: Any, status: int) -> None:
    with pytest.raises(ApiError) as raised:
        ended(replace(outbound("o1"), kind="error", returns=Returns(fault=fault)))
    assert raised.value.status == status
    command = replace(outbound("o1"), kind="error")
    assert ended(command, text="/nothing") == Returns(), "the error of a command is its answer"


@pytest.mark.parametrize(
    ("key", "within", "cap", "roles"),
    [
        (Key(name="k", cap=2.5), (), ("k", 2.5), ()),
        (Key(name="k", front_end=True), ("k",), None, ()),
        (Key(name="k", admin=True), (), None, (ADMIN_ROLE,)),
    ],
)
def test_a_message_counts_against_the_cap_of_its_key(key: Key, within: Any, cap: Any, roles: Any) -> None:
    request: Any = SimpleNamespace(headers={})
    source = asked_in(request, key, ChatRequest(model="m", turns=(Turn(role="user", text="hi"),), user="ann")).source
    assert (source.within, source.cap, source.roles) == (within, cap, roles)
