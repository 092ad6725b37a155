"""What a tool does, in a person's words: "Read hello.py", "Searched the web for “rye bread”". Pure.

Each tool has a row, or one for each of its actions: what it is doing, what it has done, and what follows, of which the
first that has all its arguments is said. A tool without a row is called by its own name. Code stands between backticks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from gateway.domain.chat import in_a_line

_LONGEST: Final = 60  # characters of an argument
_ADDRESS: Final = re.compile(r"https?://(?:www\.)?", re.IGNORECASE)
_ACTION: Final = "action"
_TABLE: Final[Mapping[str, tuple[str, str, Sequence[str]]]] = {
    "ask_person": ("asking", "asked", ("you: {question}",)),
    "clock": ("looking up", "looked up", ("the time",)),
    "delegate": ("asking", "asked", ("a helper: {task}",)),
    "find_tools": ("looking for", "looked for", ("a tool",)),
    "history_read": ("reading", "read", ("earlier messages ({message})",)),
    "list_files": ("looking at", "looked at", ("the files in {path}", "the files")),
    "make_image": ("drawing", "drew", ("a picture: {prompt}",)),
    "make_poll": ("asking", "asked", ("everybody: {question}",)),
    "memory add": ("remembering:", "remembered:", ("{text}",)),
    "memory remove": ("forgetting:", "forgot:", ("{fact}",)),
    "memory replace": ("correcting", "corrected", ("what I remember: {text}",)),
    "memory search": ("looking up", "looked up", ("what I remember of “{words}”", "what I remember")),
    "patch": ("changing", "changed", ("{path}",)),
    "read_file": ("reading", "read", ("{file}", "a file")),
    "reminders cancel": ("cancelling", "cancelled", ("reminder {number}",)),
    "reminders change": ("changing", "changed", ("reminder {number}",)),
    "reminders create": ("setting", "set", ("a reminder {when}: {text}", "a reminder {when}", "a reminder")),
    "reminders list": ("looking at", "looked at", ("the reminders",)),
    "reminders resume": ("continuing", "continued", ("reminder {number}",)),
    "reminders skip": ("skipping", "skipped", ("reminder {number} once",)),
    "reminders snooze": ("putting off", "put off", ("reminder {number}",)),
    "reminders timezone": ("setting", "set", ("the time zone to {timezone}",)),
    "search_files": ("searching", "searched", ("the files for “{words}”", "the files for `{pattern}`", "the files")),
    "search_history": ("searching", "searched", ("earlier conversations for “{words}”",)),
    "send_file": ("sending", "sent", ("{name}", "{file}", "a file")),
    "shell": ("running", "ran", ("`{command}`", "a command")),
    "skill": ("reading", "read", ("the skill {name}", "a skill")),
    "todo": ("looking at", "looked at", ("the to-do list",)),
    "todo change": ("updating", "updated", ("the to-do list",)),
    "topic close": ("closing", "closed", ("the topic",)),
    "topic open": ("opening", "opened", ("the topic {name}", "a topic")),
    "topic rename": ("renaming", "renamed", ("the topic to {name}", "the topic")),
    "web_fetch": ("reading", "read", ("{url}",)),
    "web_search": ("searching", "searched", ("the web for “{query}”",)),
    "write_file": ("writing", "wrote", ("{path}",)),
    "write_file remove": ("deleting", "deleted", ("{path}",)),
}


def deed_in_words(tool: str, given: Mapping[str, Any], result: str | None = None, *, over: bool) -> str:
    """What the call of a tool with these arguments has done, if it is `over`, or does; in one line, which begins with a
    small letter. `result`: of a call that changed a file, its diff, of which the lines are counted."""
    said = {name: shown for name, each in given.items() if (shown := _shown(name, each))}
    doing, done, rests = _TABLE.get(_row(tool, given)) or _TABLE.get(tool) or ("", "", ())
    rest = next((each for each in rests if all(name in said for name in _names(each))), None)
    if rest is None:
        first = next(iter(said.values()), "")
        return f"{'used' if over else 'using'} {in_a_line(tool.replace('_', ' '), _LONGEST)}{first and f': {first}'}"
    return f"{done if over else doing} {rest.format_map(said)}{_counts(result) if over and result else ''}"


def _row(tool: str, given: Mapping[str, Any]) -> str:
    if tool == "todo" and given.get("items"):
        return "todo change"
    if tool == "write_file" and given.get("remove") is True:
        return "write_file remove"
    return f"{tool} {given.get(_ACTION, '')}".strip()


def _names(rest: str) -> Sequence[str]:
    return re.findall(r"{(\w+)}", rest)


def _shown(name: str, value: Any) -> str:
    """An argument in a line; "" for one that is no text and no number."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    text = str(value)[: 20 * _LONGEST]
    if name == "when" and text[:1].isdigit():
        with suppress(ValueError):
            at = datetime.fromisoformat(text)
            text = f"{at:%A}, {at.day} {at:%B}, {at.hour}:{at:%M}"
        text = f"for {text}"
    line = in_a_line(_ADDRESS.sub("", text, count=1) if name == "url" else text, _LONGEST + 1)
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def _counts(result: str) -> str:
    """How many lines came and went by a diff; "" for any other result."""
    if not result.startswith("--- "):
        return ""
    lines = result.split("\n")[2:]
    came, went = sum(each.startswith("+") for each in lines), sum(each.startswith("-") for each in lines)
    return f" (+{came} −{went})"
