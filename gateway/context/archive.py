"""The line that leads back: how many messages a summary stands for, from when to when, and the way to find them.

The facts are the host's and never a model's. They are kept in the note of the summary, and each compaction adds the
messages that it takes out of view. A summary without a note, from an import or an earlier version, is read: its line,
or else the number of the rows that it was made from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from gateway.context.prompts import END_MARKER
from gateway.context.shapes import well_formed
from gateway.domain.message import Message, note_of, text_of

# The first words identify the line; the rest of it may be reworded.
_SPAN: Final = r"(?: \(said from ([\d-]{10} [\d:]{5}) to ([\d-]{10} [\d:]{5}) UTC\))?"
_LINE: Final = re.compile(rf"^([\d,]{{1,15}}) older messages?{_SPAN} left view\..*$", re.MULTILINE)
_MOST: Final = 10**12  # messages; a higher number in a note is none of ours
_Minute = Annotated[str, Meta(pattern=r"\A(?:.{16})?\Z")]
_EDGE: Final = 128  # messages at either end whose times are read: they stand in the order of the conversation


class Archive(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The messages out of view: their number, the first and last time ("" if unknown).

    Times are UTC to the minute and order as text.
    """

    count: Annotated[int, Meta(ge=0, le=_MOST)] = 0
    first: _Minute = ""
    last: _Minute = ""

    @classmethod
    def of(cls, summary: Mapping[str, Any]) -> Archive:
        """Return the messages that a summary stands for."""
        note = note_of(summary)
        if noted := well_formed([note.get("archive")], cls):
            return noted[0]
        told = cls.read(text_of(summary).partition(END_MARKER)[0])
        derived: Any = note.get("derived_from")
        return told if told.count or not isinstance(derived, list) else cls(count=len(derived))

    @classmethod
    def read(cls, text: str) -> Archive:
        """Return the sum of the lines in a text."""
        found = [
            cls(count=int(each[1].replace(",", "") or 0), first=each[2] or "", last=each[3] or "")
            for each in _LINE.finditer(text)
        ]
        return sum(found, cls())

    def __add__(self, other: Archive) -> Archive:
        return Archive(
            count=self.count + other.count,
            first=min(filter(None, (self.first, other.first)), default=""),
            last=max(self.last, other.last),
        )

    def grown(self, messages: Sequence[Message]) -> Archive:
        """Return the archive with `messages` in it, too."""
        edges = messages if len(messages) <= 2 * _EDGE else (*messages[:_EDGE], *messages[-_EDGE:])
        times = [at for message in edges if isinstance(at := note_of(message).get("at"), int | float)]
        told = sorted(filter(None, (_minute(min(times)), _minute(max(times))))) if times else []
        return self + Archive(count=len(messages), first=told[0] if told else "", last=told[-1] if told else "")

    def line(self) -> str:
        """Return the line for the model, as far as it can be read back."""
        span = f" (said from {self.first} to {self.last} UTC)" if self.first else ""
        return f"{self.count:,} older {'message' if self.count == 1 else 'messages'}{span} left view."


def without_line(notes: str) -> str:
    """Return notes without any line of this form; the next summary has its own."""
    return _LINE.sub("", notes) if "left view" in notes else notes


def _minute(at: float) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(sep=" ")[:16]
    except (ValueError, OverflowError, OSError):
        return ""  # a transcript from anywhere may say anything
