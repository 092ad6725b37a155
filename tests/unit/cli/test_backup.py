"""What `legato backup` and `legato restore` say that they did."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.app.backup.making import Made
from gateway.app.backup.restoring import Restored, Verified
from gateway.cli.backup import made_text, restored_text, verified_text


def test_a_backup_and_those_that_it_replaces_are_named() -> None:
    made = Made(file="b.tar", bytes=1_250_000, deleted=["old.tar"])
    assert made_text(made) == "The backup b.tar holds the whole store (1.2 MB).\nDeleted: old.tar"


@pytest.mark.parametrize(
    ("made_at", "aside", "lines"),
    [
        ("", None, ["The store legato.db is now the backup, with 1 session and 2 messages."]),
        (
            "2026-01-02",
            "aside",
            [
                "The store legato.db is now the backup of 2026-01-02, with 1 session and 2 messages.",
                "The earlier data is in aside. Delete that folder when all is well.",
            ],
        ),
    ],
)
def test_what_was_restored_is_told_with_what_it_replaced(made_at: str, aside: Any, lines: list[str]) -> None:
    facts: dict[str, Any] = {"store": "legato.db", "made_at": made_at, "sessions": 1, "messages": 2, "aside": aside}
    assert restored_text(Restored(**facts)).splitlines() == lines


FOUND: dict[str, Any] = {
    "rows": {
        "session": 1_000,
        "lost": 3,
        "empty": 0,
    },
    "made_at": None,
    "legato": None,
    "same": 7,
    "changed": 8,
    "gone": 9,
    "not_compared": None,
}


def test_a_backup_is_compared_with_the_store() -> None:
    lines = verified_text(Verified(**FOUND)).splitlines()
    assert [line.split() for line in lines[:-2]] == [["session", "1,000"], ["lost", "3"]]
    assert "7 are unchanged in the store, 8 have changed, and 9 are gone." in lines[-2]
    alone = verified_text(Verified(**{**FOUND, "not_compared": "there is no store"}))
    assert "No session was compared: there is no store" in alone
    assert "unchanged" not in alone
