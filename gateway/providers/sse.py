"""Server-sent events, read from a body as it arrives, whatever the body is labelled as.

Servers label streams in any case or wrongly, answer a streaming call with one JSON object, and send bytes that are no
UTF-8. So the beginning of the body tells its kind, and no byte is lost either way. The format is the one of
https://html.spec.whatwg.org/multipage/server-sent-events.html, without ids and retries, which no model API uses.
"""

from __future__ import annotations

import codecs
from io import IncrementalNewlineDecoder
from typing import Final

_BEGINNINGS: Final = ("data:", "event:", "id:", "retry:", ":")
_LONGEST: Final = max(map(len, _BEGINNINGS))


class EventReader:
    """Takes a body chunk by chunk. Bytes that are no UTF-8 become U+FFFD; a character cut by a chunk stays whole."""

    def __init__(self) -> None:
        characters = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._decode = IncrementalNewlineDecoder(characters, translate=True).decode
        self._is_stream: bool | None = None  # None: too little has come to tell
        self._plain: list[str] = []
        self._pieces: list[str] = []
        self._name = ""
        self._data: list[str] = []
        self._lines = 0  # characters in `_data`, and one for each line
        self._held = 0

    @property
    def held(self) -> int:
        """Characters that wait for the end of their line, of their event or of a body that is no stream."""
        return self._held

    @property
    def body(self) -> str | None:
        """All text of a body that is no stream of events; None for a stream."""
        return None if self._is_stream else "".join(self._plain)

    def feed(self, chunk: bytes) -> list[tuple[str, str]]:
        """The events that this chunk completes, as (name, data)."""
        text = self._decode(chunk)
        self._held += len(text)
        if not self._is_stream:
            self._plain.append(text)
            if self._is_stream is False or not self._tell():
                return []
            text = "".join(self._plain)
            self._plain.clear()
        return self._events(text)

    def _tell(self) -> bool:
        """Whether the body is a stream, as far as its beginning tells."""
        start = "".join(self._plain).lstrip()
        if start.startswith(_BEGINNINGS):
            self._is_stream = True
        elif start and (len(start) >= _LONGEST or not any(each.startswith(start) for each in _BEGINNINGS)):
            self._is_stream = False
        return self._is_stream is True

    def _events(self, text: str) -> list[tuple[str, str]]:
        *lines, rest = text.split("\n")
        if lines:  # a long line comes in pieces, which are joined once, when it ends
            lines[0] = "".join((*self._pieces, lines[0]))
            self._pieces.clear()
        self._pieces.append(rest)
        if not lines:
            return []
        events = [event for line in lines if (event := self._line(line)) is not None]
        self._held = sum(map(len, self._pieces)) + self._lines
        return events

    def _line(self, line: str) -> tuple[str, str] | None:
        if not line:
            if not self._data:
                self._name = ""
                return None
            event = (self._name, self._data[0] if len(self._data) == 1 else "\n".join(self._data))
            self._name, self._data, self._lines = "", [], 0
            return event
        if line.startswith("data:"):
            self._data.append(line[6:] if line.startswith("data: ") else line[5:])
            self._lines += 1 + len(self._data[-1])
        elif line.startswith("event:"):
            self._name = line[6:].strip()
        return None
