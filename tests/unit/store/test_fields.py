"""What stores of earlier layouts kept of sessions and rows, and samples that have every field."""

from __future__ import annotations

from importlib.resources import files

import pytest
from msgspec.structs import fields

from gateway.domain.chat import OutboundState, SessionKey
from gateway.domain.session import Session, Todo
from gateway.store.redis.scripts import script
from gateway.store.shared.fields import OUTBOUND, SESSION
from tests.support.store_kit import FULL_SESSION

KEY = SessionKey(platform="test", chat="1/2", thread="t", user="ü")
KEPT = {
    "id": "s1",
    "key": KEY.text,
    "chat_type": "direct",
    "started_at": "0.5",
    "model": "m",
    "system_prompt": "",
    "todos": '[["buy","open"]]',
    "announced": "[]",
    "input_tokens": "7",
    "of a later release": "x",
}


@pytest.mark.parametrize("columns", [True, False])
def test_a_session_is_read_from_columns_and_from_a_hash(columns: bool) -> None:
    kept = KEPT | ({"started_at": 0.5, "input_tokens": 7, "parent_id": None} if columns else {})
    session = SESSION.of_texts(kept)
    assert (session.key, session.started_at, session.usage.input_tokens) == (KEY, 0.5, 7)
    assert (session.todos, session.announced, session.epoch) == ((Todo(text="buy", status="open"),), (), 1)
    assert session.parent_id is None


def test_a_field_that_is_needed_is_an_error() -> None:
    with pytest.raises(TypeError, match="model"):
        SESSION.of_texts({name: text for name, text in KEPT.items() if name != "model"})


def test_a_row_is_read_with_its_address_and_its_buttons() -> None:
    row = OUTBOUND.of_texts(
        {"id": "o1", "key": KEY.text, "platform": "test", "chat": "1/2", "kind": "question", "text": "May I?"}
        | {"state": "sending", "attempts": "2", "buttons": '[[["Yes","y"],["No","n"]]]', "due_at": "3.5"}
    )
    assert (row.state, row.to.chat, row.attempts, row.due_at) == (OutboundState.SENDING, "1/2", 2, 3.5)
    assert [button.token for button in row.buttons[0]] == ["y", "n"]


def test_the_sample_has_every_field_so_that_none_is_forgotten() -> None:
    left_out = [each.name for each in fields(Session) if getattr(FULL_SESSION, each.name) == each.default]
    assert not left_out, f"tests/support/store_kit.py: give FULL_SESSION other values than the defaults of {left_out}"


def test_every_script_knows_the_words_it_uses() -> None:
    folder = files("gateway.store.redis").joinpath("scripts")
    names = [each.name.removesuffix(".lua") for each in folder.iterdir() if each.name.endswith(".lua")]
    assert all(script(name).text for name in names)
