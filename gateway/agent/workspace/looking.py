"""Walks through the files of a workspace that somebody may look for: without what .gitignore names."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from gateway.agent.workspace import tree
from gateway.agent.workspace.ignored import FILE, LARGEST, Rule, is_ignored, rules_in

_BINARY: Final = 8_192  # bytes at the beginning of a file: a NUL there is of no text


def visible(root: Path, names: Sequence[str]) -> Iterator[tuple[tree.Found, bool]]:
    """What is in a folder of the workspace, and whether it is left out: of a folder that is, nothing inside comes. Who
    names a folder wants to see it. Raises ToolError if there is no such folder."""
    with tree.entered(root, ()) as at:
        rules = _rules(at, "")
    with tree.entered(root, names):
        pass
    folder = "".join(f"{name}/" for name in names)

    def is_out(found: tree.Found) -> bool:
        while rules and not found.path.startswith(rules[-1].folder):  # of a folder that the walk has left
            rules.pop()
        return is_ignored(found.path, rules, is_folder=stat.S_ISDIR(found.facts.st_mode))

    def enters(found: tree.Found) -> bool:
        path = f"{found.path}/"
        if not folder.startswith(path) and (not path.startswith(folder) or is_out(found)):
            return False
        try:
            inside = os.open(found.name, tree.FOLDER, dir_fd=found.at)
        except OSError:
            return False
        rules.extend(_rules(inside, path))
        os.close(inside)
        return True

    for found in tree.walk(root, enters):
        if found.path.startswith(folder):
            yield found, is_out(found)


def _rules(at: int, folder: str) -> list[Rule]:
    try:
        with tree.open_file(at, FILE) as (file, _):
            return rules_in(b"".join(tree.pieces(file, LARGEST)).decode(errors="replace"), folder)
    except OSError:
        return []


def text_in(found: tree.Found, most: int) -> str | None:
    """The text of a file; None: it is none, or longer than so many bytes."""
    try:
        with tree.open_file(found.at, found.name) as (file, facts):
            return text_of(b"".join(tree.pieces(file, most))) if facts.st_size <= most else None
    except OSError:
        return None


def text_of(content: bytes) -> str | None:
    """The text of a content, whatever its encoding; None: it is none."""
    return None if b"\0" in content[:_BINARY] else content.decode(errors="replace")
