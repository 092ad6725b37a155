"""Handles: the names of stored messages for people and models, as in a search's results: #57."""

from __future__ import annotations

import re
from typing import Final

_HANDLE: Final = re.compile(r"(?<![\w#&/])#(\d{1,20}(?:p\d\d)?)\b")


def handle(message_id: str) -> str:
    """The handle of a message."""
    return f"#{message_id}"


def named_in(text: str) -> list[str]:
    """The handles in a text."""
    return [f"#{found}" for found in _HANDLE.findall(text)]


def message_named(text: str) -> str | None:
    """The id of the message that a text names by its handle, with or without the mark; None: it names none."""
    found = _HANDLE.fullmatch(text if text.startswith("#") else f"#{text}")
    return found[1] if found else None
