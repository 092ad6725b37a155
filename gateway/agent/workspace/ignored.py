"""Which files of a workspace nobody searches: what .gitignore names, and the inside of .git.

The rules are git's (https://git-scm.com/docs/gitignore). They may come from a stranger, so each is matched name by
name, in a time that no pattern can stretch. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct

FILE: Final = ".gitignore"
LARGEST: Final = 100_000  # bytes of one that is read
_MOST_RULES: Final = 500  # of one file
_ESCAPED: Final = re.compile(r"\\(.)")


class Rule(Struct, frozen=True, kw_only=True):
    """One line of the .gitignore in a `folder`, which is "" or ends with a slash. `**` among the `names` stands for any
    number of folders."""

    folder: str
    names: tuple[str, ...]
    folders_only: bool
    takes_back: bool


def rules_in(text: str, folder: str) -> list[Rule]:
    """The rules of a .gitignore in this folder."""
    return [rule for line in text.splitlines()[:_MOST_RULES] if (rule := _rule(line, folder)) is not None]


def _rule(line: str, folder: str) -> Rule | None:
    line = re.sub(r"(?<!\\)\s+$", "", line)
    takes_back, line = line.startswith("!"), line.removeprefix("!")
    if not line.strip("/") or line.startswith("#"):
        return None
    folders_only, path = line.endswith("/"), line.rstrip("/")
    plain = _ESCAPED.sub(lambda found: f"[{found[1]}]" if found[1] in "*?[" else found[1], path)
    names = tuple(name.replace("[^", "[!") for name in plain.split("/") if name)
    anywhere = () if "/" in path else ("**",)
    return Rule(folder=folder, names=(*anywhere, *names), folders_only=folders_only, takes_back=takes_back)


def is_ignored(path: str, rules: Sequence[Rule], *, is_folder: bool) -> bool:
    """Whether a path is left out. Of the rules that fit, the last one counts."""
    if is_folder and path.rpartition("/")[2] == ".git":
        return True
    for rule in reversed(rules):
        applies = (is_folder or not rule.folders_only) and path.startswith(rule.folder)
        if applies and _fits(rule.names, path[len(rule.folder) :].split("/")):
            return not rule.takes_back
    return False


def _fits(pattern: Sequence[str], names: Sequence[str]) -> bool:
    """Whether names fit. Each part of the pattern says how many of the names it may have led through by then."""
    reached = {0}
    for part in pattern:
        if part == "**":
            reached = set(range(min(reached), len(names) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(names) and fnmatchcase(names[at], part)}
        if not reached:
            return False
    return len(names) in reached
