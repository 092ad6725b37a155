"""Files that came with a message or were made for one, once they are kept."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFile:
    """What is known of a kept file but its content.

    `ref` is unique within its key: how the file's adapter names it, or who made it. `digest` is the
    SHA-256 of the content, in hex; `size` its bytes. `name` is whatever somebody called it.
    """

    ref: str
    digest: str
    name: str
    mime: str
    size: int
    at: float  # when it was kept, in seconds since the epoch
