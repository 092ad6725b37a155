"""The way back from a summary: a line with the number and the times of the messages that it stands for, and chapters in
which they can be opened.

These facts come from the host, never from a model. They are kept in the note of the summary, and each compaction adds
the messages that it takes out of view. A summary without a note, from an import or an early version, is read instead:
its line, or else the number of rows that it was made from.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise, zip_longest
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from gateway.context.prompts import END_MARKER
from gateway.context.readable import well_formed
from gateway.domain.message import Message, handle, note_of, text_of
from gateway.runtime.patterns import late
from gateway.runtime.redaction import Redact
from gateway.runtime.tokens import TokenCounter

# The first words identify the line; the rest of it may be reworded.
_SPAN: Final = r"(?: \(said from ([\d-]{10} [\d:]{5}) to ([\d-]{10} [\d:]{5}) UTC\))?"
_LINE: Final = re.compile(rf"^([\d,]{{1,15}}) older messages?{_SPAN} left view\..*$", re.MULTILINE)
_MOST: Final = 10**12  # messages; a higher number in a note is none of ours
_Minute = Annotated[str, Meta(pattern=r"\A(?:.{16})?\Z")]
_EDGE: Final = 128  # messages at either end whose times are read: they stand in the order of the conversation


class Archive(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The messages out of view: how many, and the first and last time ("" if unknown). Times are UTC to the minute, and
    sort as text."""

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
        """The sum of the lines in a text."""
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
        """The line for the model, which can be read back as far as possible."""
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


# -- chapters -----------------------------------------------------------------------------------

# Each compaction makes a chapter of the messages that it takes out of view. The table is bounded, so neighbours join as
# they age: the fewer messages two of them have and the older they are, the sooner. A chapter's words are picked by rule
# from redacted text: names before other words, and no words that every message has, or every chapter.

MOST_CHAPTERS: Final = 12
TABLE_SHARE: Final = 0.04  # of the threshold, for the table
TABLE_TOKENS: Final = 400
_LEAST: Final = 2  # chapters; of a single one the line of the archive says as much
_WORDS: Final = 6  # of a line
_NOTED: Final = 12  # of a chapter: those that most chapters have are not shown
_READ: Final = 200  # messages of a chapter whose words are looked at, evenly
_READ_CHARS: Final = 400
_COMMON: Final = 0.12  # of the messages; a word in more of them tells nothing
_NAME: Final = 3  # times as telling as another word
_FOUND: Final = late(r"(?<![.!?:\n])(?<=\s)([A-ZÀ-Þ][^\W\d_]{2,18})\b|\b([^\W\d_]{5,18})\b")
_HEAD: Final = "Chapters of what left view; history_read opens one by its range:"


class Chapter(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Messages that left view one after another. `begin` and `end` are the ids of the first and the last original,
    `first` and `last` their minutes, as in an archive; `words` says what they are about, most telling first."""

    begin: str
    end: str
    count: Annotated[int, Meta(ge=1)]
    first: str = ""
    last: str = ""
    words: list[Annotated[str, Meta(max_length=20)]] = []

    @classmethod
    def made(cls, messages: Sequence[Message], redact: Redact) -> list[Chapter]:
        """The chapter of these messages; None if no original among them is stored."""
        ids = [note["id"] for each in messages if "id" in (note := note_of(each)) and "derived_from" not in note]
        if not ids:
            return []
        span, words = Archive().grown(messages), _words(messages, redact)
        return [cls(begin=ids[0], end=ids[-1], count=len(messages), first=span.first, last=span.last, words=words)]

    def __add__(self, later: Chapter) -> Chapter:
        mixed = [word for pair in zip_longest(self.words, later.words) for word in pair if word]
        return Chapter(
            begin=self.begin,
            end=later.end,
            count=self.count + later.count,
            first=self.first or later.first,
            last=later.last or self.last,
            words=[*dict.fromkeys(mixed)][:_NOTED],
        )


def earlier(note: Mapping[str, Any]) -> list[Chapter]:
    """Return the chapters that a summary was noted with."""
    return well_formed(note.get("chapters"), Chapter)


def again(
    note: Mapping[str, Any], left: Sequence[Message], order: Mapping[str, int], redact: Redact
) -> Iterator[Chapter]:
    """The chapters of a summary's note, made again from the originals that are left. `order`: of all messages."""
    for each in earlier(note):
        begin, end = order.get(each.begin, 0), order.get(each.end, -1)
        yield from Chapter.made([one for one in left if begin <= order[note_of(one)["id"]] <= end], redact)


def bounded(chapters: Sequence[Chapter], tokens: int, counter: TokenCounter) -> list[Chapter]:
    """Chapters, joined until their table fits into these tokens."""
    kept = list(chapters)
    while len(kept) > MOST_CHAPTERS or (len(kept) >= _LEAST and counter.text(table(kept)) > tokens):
        sizes = [(one.count + other.count) * (place + 2) for place, (one, other) in enumerate(pairwise(kept))]
        place = sizes.index(min(sizes))
        kept[place : place + 2] = [kept[place] + kept[place + 1]]
    return kept


def table(chapters: Sequence[Chapter]) -> str:
    """The lines for the model; "" if there are too few chapters."""
    if len(chapters) < _LEAST:
        return ""
    said = Counter(word.casefold() for each in chapters for word in set(each.words))
    lines = [_HEAD]
    for each in chapters:
        own = [word for word in each.words if said[word.casefold()] <= max(2, len(chapters) // 2)] or each.words
        span = " to ".join(dict.fromkeys(filter(None, (each.first[:10], each.last[:10]))))
        lines.append(f"- {handle(each.begin)}-{handle(each.end)} {span}: {', '.join(own[:_WORDS])}".rstrip(": "))
    return "\n".join(lines)


def _words(messages: Sequence[Message], redact: Redact) -> list[str]:
    """The words that distinguish these messages from others, by rule."""
    said = [each for each in messages if each["role"] in ("user", "assistant") and "summary" not in note_of(each)]
    said = said[:: max(1, len(said) // _READ)]
    held, names = Counter[str](), Counter[str]()
    spelled: dict[str, str] = {}
    for text in redact("\n\x1e\n".join(text_of(each)[:_READ_CHARS] for each in said)).split("\n\x1e\n"):
        found = [(name or word, bool(name)) for name, word in _FOUND.findall(text)]
        for word, _ in found:
            spelled.setdefault(word.casefold(), word)
        held.update({word.casefold() for word, _ in found})
        names.update({word.casefold() for word, is_name in found if is_name})
    most = max(2.0, _COMMON * len(said))
    return [spelled[word] for word in _best(held, names, most)]


def _best(held: Counter[str], names: Collection[str], most: float) -> Iterable[str]:
    worth = {
        word: min(count, 4) * (_NAME if word in names else 1) + len(word) / 20
        for word, count in held.items()
        if count <= most or word in names
    }
    return sorted(worth, key=lambda word: -worth[word])[:_NOTED]
