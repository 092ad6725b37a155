"""What is known of what reminders said."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from gateway.domain.message import assistant, noted
from gateway.turns.reminded import _known


def test_rows_of_the_very_first_moment_are_known_and_no_earlier_ones() -> None:
    said = [noted(assistant(row), at=at, reminded=row) for row, at in (("early", 9.0), ("first", 10.0), ("last", 11.0))]
    conversation = cast(Any, SimpleNamespace(newest_first=lambda: reversed(said)))
    assert _known(conversation, 10.0) == {"first", "last"}
