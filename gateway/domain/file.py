"""Files that came with a message or were made for one, once they are kept."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

OUTPUT: Final = "output:"  # begins the `ref` of what no person sent or was sent: a tool's result
EXPORT: Final = "export"  # begins the `ref` of a copy of a conversation, before a colon
WORDS: Final = "words:"  # begins the `ref` of what is said in a recording, before the recording's digest


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
