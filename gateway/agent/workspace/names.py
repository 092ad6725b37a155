"""The names of files in a workspace, as models write them. Pure."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from gateway.runtime.errors import ToolError

SEEN_AT: Final = "/workspace"  # where commands in a sandbox see the folder
_LONGEST: Final = 255  # bytes of a name: file systems take no more
_DEEPEST: Final = 40  # folders in one another
_MISLEADING: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\\\\\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]"
)  # unseen, turning the direction of reading, or half a character; joiners are letters' own


def names_in(path: str) -> tuple[str, ...]:
    """The folders and the file that a path leads through, from the workspace on; () is the workspace itself. Raises
    ToolError for a path that leads out of it, or whose name no person would read as it is."""
    path = path.strip()
    if path == SEEN_AT or path.startswith(f"{SEEN_AT}/"):
        path = path[len(SEEN_AT) :].lstrip("/")
    if path.startswith("/"):
        raise ToolError("Paths begin in the workspace: leave out the / at the beginning.")
    found = tuple(name for name in path.split("/") if name not in ("", "."))
    if ".." in found:
        raise ToolError("A path cannot hold `..`: nothing outside the workspace can be reached.")
    if _MISLEADING.search(path):
        raise ToolError("A path cannot hold backslashes, control characters or other invisible characters.")
    if len(found) > _DEEPEST or any(len(name.encode()) > _LONGEST for name in found):
        raise ToolError(f"A name has at most {_LONGEST} bytes, and a path at most {_DEEPEST} names.")
    return found


def composed(name: str) -> str:
    """A name in the form in which people type it: é is one character there, and two in the names of some systems."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def shown(path: str) -> str:
    """A path as it can stand on a line, whatever a command called its files."""
    return _MISLEADING.sub("\ufffd", path)
