"""Files that came with a message or were made for one, once they are kept."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

OUTPUT: Final = "output:"  # begins the `ref` of what no person sent or was sent: a tool's result
EXPORT: Final = "export"  # begins the `ref` of a copy of a conversation, before a colon
_FOR_PEOPLE: Final = (".txt", ".md", ".markdown", ".csv", ".tsv", ".log")
WORDS: Final = "words:"  # begins the `ref` of what is said in a recording, before the recording's digest


def encoded(name: str, text: str) -> bytes:
    """A text as the content of a file of this name. What people open on telephones and in spreadsheets is marked as
    UTF-8, or ğ and 中 are rubble there; what programs read is not, for many refuse the mark."""
    is_marked = not text.isascii() and not text.startswith("\ufeff") and name.lower().endswith(_FOR_PEOPLE)
    return text.encode("utf-8-sig" if is_marked else "utf-8", "replace")


class KeptFile(Struct, frozen=True, kw_only=True):
    """A kept file without its content.

    `ref` is unique within its key: how the file's adapter names it, or who made it. `digest` is the
    SHA-256 of the content, in hex; `size` its bytes. `name` is whatever somebody called it.
    """

    ref: str
    digest: str
    name: str
    mime: str
    size: int
    at: float  # when it was kept, in seconds since the epoch
