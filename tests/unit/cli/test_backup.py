"""What `legato backup` and `legato restore` say that they did."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.app.backup.making import Made
from gateway.app.backup.restoring import Restored, Verified
from gateway.cli.backup import made_text, restored_text, verified_text


def test_a_backup_and_those_that_it_replaces_are_named() -> None:
    made = Made(file="b.tar", bytes=1_250_000, deleted=["old.tar"])
    assert made_text(made) == "b.tar holds the whole store (1.2 MB).\nDeleted: old.tar"


@pytest.mark.parametrize(
    ("made_at", "aside", "lines"),
    [
        ("", None, ["legato.db is the backup: 1 session, 2 messages."]),
        (
            "2026-01-02",
            "aside",
            [
                "legato.db is the backup of 2026-01-02: 1 session, 2 messages.",
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
        "session": {"backup": 1_000, "now": 5},
        "lost": {"backup": 3, "now": 0},
        "new": {"backup": 0, "now": 4},
        "unknown": {"backup": 2, "now": None},
        "empty": {"backup": 0, "now": 0},
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
    assert [line.split() for line in lines[1:-2]] == [
        ["session", "1,000", "5"], ["lost", "3", "0"], ["new", "0", "4"], ["unknown", "2", "?"],
    ]  # fmt: skip
    assert "holds 7 unchanged and 8 changed; 9 are gone." in lines[-2]
    alone = verified_text(Verified(**{**FOUND, "not_compared": "there is no store"}))
    assert "No session was compared: there is no store" in alone
    assert "unchanged" not in alone
