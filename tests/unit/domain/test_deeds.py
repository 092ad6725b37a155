"""What tools do, in a person's words."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.domain.deeds import deed_in_words

DIFF = "--- a\n+++ b\n@@ -1,2 +1,3 @@\n one\n+++ two\n+three\n---- four"


@pytest.mark.parametrize(
    ("tool", "given", "result", "doing", "done"),
    [
        ("web_search", {"query": "rye\nbread"}, "", "searching the web for “rye bread”", None),
        ("memory", {"action": "add", "text": "you live in Bern"}, "", "remembering: you live in Bern", None),
        ("memory", {"action": "search"}, "", "looking up what I remember", "looked up what I remember"),
        ("read_file", {"file": "hello.py", "offset": 9}, "text", "reading hello.py", "read hello.py"),
        ("write_file", {"path": "src/a.py", "content": "x"}, DIFF, "writing src/a.py", "wrote src/a.py (+2 −1)"),
        ("write_file", {"path": "src/a.py", "remove": True}, "Gone.", "deleting src/a.py", "deleted src/a.py"),
        ("shell", {"command": "pytest -q"}, "exit code 0", "running `pytest -q`", "ran `pytest -q`"),
        ("shell", {"command": "x" * 99}, "", f"running `{'x' * 60}…`", f"ran `{'x' * 60}…`"),
        ("delegate", {"task": "compare prices"}, "", "asking a helper: compare prices", None),
        (
            "reminders",
            {"action": "create", "when": "2026-12-01T09:00", "text": "tea"},
            "",
            "setting a reminder for Tuesday, 1 December, 9:00: tea",
            "set a reminder for Tuesday, 1 December, 9:00: tea",
        ),
        ("reminders", {"action": "create", "when": "in 5 minutes"}, "", "setting a reminder in 5 minutes", None),
        ("reminders", {"action": "create", "when": "09:00"}, "", "setting a reminder for 09:00", None),
        ("reminders", {"action": "cancel", "number": 3}, "", "cancelling reminder 3", "cancelled reminder 3"),
        ("reminders", {"action": "dance"}, "", "using reminders: dance", "used reminders: dance"),
        ("search_history", {"words": "tea"}, "", None, "searched earlier conversations for “tea”"),
        ("todo", {"items": ["a"]}, "", "updating the to-do list", "updated the to-do list"),
        ("todo", {}, "", "looking at the to-do list", "looked at the to-do list"),
        ("web_fetch", {"url": "https://www.example.org/a"}, "", None, "read example.org/a"),
        ("github_create_issue", {"labels": ["a"], "title": "Bug"}, "", None, "used github create issue: Bug"),
        ("dice", {"many": True}, "", "using dice", "used dice"),
    ],
)
def test_a_tool_is_told_in_words(
    tool: str, given: dict[str, Any], result: str, doing: str | None, done: str | None
) -> None:
    if doing is not None:
        assert deed_in_words(tool, given, over=False) == doing
    if done is not None:
        assert deed_in_words(tool, given, result, over=True) == done
