"""Walks through the files of a workspace that somebody may look for: without what .gitignore names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from gateway.agent.workspace import tree
from gateway.agent.workspace.ignored import FILE, LARGEST, Rule, is_ignored, rules_in

_BINARY: Final = 8_192  # bytes at the beginning of a file: a NUL there is of no text


def visible(root: Path, names: Sequence[str]) -> Iterator[tuple[tree.Found, bool]]:
    """What is in a folder of the workspace, and whether it is left out: of a folder that is, nothing inside comes. Who
    names a folder wants to see it. Raises ToolError if there is no such folder."""
    rules, above = list[Rule](), ""
    for number in range(len(names) + 1):
        above = "".join(f"{name}/" for name in names[:number])
        with tree.entered(root, names[:number]) as at:
            rules += _rules(at, above)
    holding = {above: rules}  # in each folder

    def is_out(found: tree.Found) -> bool:
        return is_ignored(found.path, holding[found.path.removesuffix(found.name)], is_folder=found.is_folder)

    def enters(found: tree.Found, inside: int) -> bool:
        path = f"{found.path}/"
        holding[path] = [*holding[found.path.removesuffix(found.name)], *_rules(inside, path)]
        return not is_out(found)

    for found in tree.walk(root, names, enters):
        yield found, is_out(found)


def _rules(at: int, folder: str) -> list[Rule]:
    with suppress(OSError), tree.open_file(at, FILE) as (file, _):
        return rules_in(tree.content(file, LARGEST).decode(errors="replace"), folder)
    return []


def text_in(found: tree.Found, most: int) -> str:
    """The text of a file; "" if it is none, or longer than so many bytes."""
    with suppress(OSError), tree.open_file(found.at, found.name) as (file, facts):
        return text_of(tree.content(file, most)) if facts.st_size <= most else ""
    return ""


def text_of(content: bytes) -> str:
    """The text of a content, whatever its encoding; "" if it is none."""
    return "" if b"\0" in content[:_BINARY] else content.decode(errors="replace")
