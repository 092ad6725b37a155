"""References to kept files in stored messages, where OpenAI's format has the content itself.

A picture is `{"type": "image_url", "image_url": {"url": "legato-file:<digest>"}}`, a sound is `{"type": "input_audio",
"input_audio": {"data": "legato-file:<digest>", "format": "mp3"}}`. So a transcript stays small, and a message is the
same bytes whenever it is stored, loaded or compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.domain.message import Message
from gateway.domain.session import SessionRef

_SCHEME: Final = "legato-file:"


def picture_part(digest: str) -> dict[str, Any]:
    """A picture as a part of a message's content."""
    return {"type": "image_url", "image_url": {"url": _SCHEME + digest}}


def sound_part(digest: str, form: str) -> dict[str, Any]:
    """A sound as a part of a message's content; `form` as providers call it."""
    return {"type": "input_audio", "input_audio": {"data": _SCHEME + digest, "format": form}}


def digest_in(part: Any) -> str | None:
    """The kept file that a part of a content refers to."""
    if not isinstance(part, Mapping):
        return None
    for kind, name in (("image_url", "url"), ("input_audio", "data")):
        inner = part.get(kind)
        value = inner.get(name) if isinstance(inner, Mapping) else None
        if isinstance(value, str) and value.startswith(_SCHEME):
            return value.removeprefix(_SCHEME)
    return None


def references_in(messages: Sequence[Message], start: int = 0) -> list[int]:
    """The positions, from `start` on, of the messages that refer to kept files."""
    found: list[int] = []
    for position in range(start, len(messages)):
        content = messages[position].get("content")
        if type(content) is list and any(map(digest_in, content)):
            found.append(position)
    return found


class References:
    """The places at which a session's transcript refers to kept files, remembered between turns. Within an epoch a
    transcript only grows, so each message is looked at once."""

    def __init__(self) -> None:
        self._session: SessionRef | None = None
        self._looked_at = 0
        self._found: list[int] = []

    def among(self, session: SessionRef, stored: Sequence[Message]) -> Sequence[int]:
        """The positions of the messages that refer to files, in the session's stored transcript."""
        if session != self._session or len(stored) < self._looked_at:
            self._session, self._looked_at, self._found = session, 0, []
        self._found += references_in(stored, self._looked_at)
        self._looked_at = len(stored)
        return self._found


def filled(part: Mapping[str, Any], mime: str, encoded: str) -> dict[str, Any]:
    """A copy of the part, with the base64 content in place of the reference."""
    if part.get("type") == "image_url":
        return {**part, "image_url": {**part["image_url"], "url": f"data:{mime};base64,{encoded}"}}
    return {**part, "input_audio": {**part["input_audio"], "data": encoded}}
