"""Words that redaction takes out of the conversation are taken out of the notes about it, however they are put
there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.context.verification import withheld, without
from gateway.domain.message import Message, user
from gateway.runtime.redaction import MARK, Redactor
from tests.support.transcripts import call

REDACT = Redactor(["configured-one"])


def test_a_password_that_only_its_place_gives_away_is_known_by_itself() -> None:
    messages: list[Message] = [
        user("db password: tulip-meadow-77\nand that is all"),
        {"role": "assistant", "content": None, "tool_calls": [call("k", password="maple-street-12")]},  # type: ignore[list-item]
        {"role": "tool", "tool_call_id": "k", "content": 'secret="first-of-two" and secret="other-of-two"'},
        user("configured-one"),
    ]
    found = withheld(messages, REDACT)
    assert set(found) == {"tulip-meadow-77", "maple-street-12", "first-of-two", "other-of-two", "configured-one"}
    notes = without("Logs in with tulip-meadow-77, then maple-street-12.", found)
    assert notes == f"Logs in with {MARK}, then {MARK}."


def test_where_there_is_nothing_to_redact_nothing_is_withheld() -> None:
    assert withheld([user("hello"), user(f"a mark of before: {MARK}")], REDACT) == []


def test_what_is_as_short_as_a_word_is_left_alone() -> None:
    assert withheld([user("password: hush1")], REDACT) == []


words = st.lists(
    st.sampled_from(["a", "password: tulip-meadow-77", MARK, "configured-one", "\n", "x y z"]), max_size=12
)


@given(words)
def test_only_what_redaction_replaced_is_ever_withheld(pieces: list[str]) -> None:
    text = " ".join(pieces)
    found = withheld([user(text)], REDACT)
    assert all(secret in text for secret in found)
    if MARK not in text:
        assert set(found) <= {"tulip-meadow-77", "configured-one"}
        assert without(text, found) == REDACT(text)
