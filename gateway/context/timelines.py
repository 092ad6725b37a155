"""Timelines: what was said of one thing at different times, so that its last state stands in the notes with its day.

A thing is whatever has a name with a digit in it: an order, a ticket, a server. A tool's result tells the fields of
things, as JSON or as a table; a sentence tells something of the first thing that it names. What nobody changed is kept
out of sight until the same thing is spoken of again. Then the last saying stands in the notes with its day, behind it
the one before. Nobody decides whether they contradict each other: both are shown, in their own words.

What people tell of things without such a name is kept elsewhere (`facts`)."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from gateway.context.dating import Days, Told, subject, telling
from gateway.context.instructions import parted, stands
from gateway.context.listing import Room
from gateway.context.personal import asserts
from gateway.context.readable import said_at
from gateway.context.statements import DENSE, sentences
from gateway.domain.chat import in_a_line
from gateway.domain.message import Message, note_of, own_words, text_of
from gateway.domain.notes import CHANGED, section
from gateway.runtime.patterns import late
from gateway.runtime.redaction import Redact
from gateway.runtime.structs import replace

HEADING: Final = section(CHANGED, "").rstrip()
MOST: Final = 128  # sentences that are kept, and twice as many fields
SHARE: Final = 0.1  # of a summary's room: the most that the list takes
_SAID: Final = "The last that was said of each, its day, and what was said before, perhaps of another."
_READ: Final = 400  # newest messages of a middle that are read
_LONGEST: Final = 160  # characters of a sentence; a longer one tells of more than a state
_SHORT: Final = 60  # characters of a sentence that tells of a state and of nothing else
_VALUE: Final = 48  # characters of a field's name or value
_RESULT: Final = 20_000  # characters of a result; a longer one is a dump
_ROWS: Final = 40  # things of one result
_FEW: Final = 3  # things of a result that is no list
_EACH: Final = 3  # sayings of one kind that are kept
_LEAST: Final = 4  # tokens; no line is shorter
# A name with a digit in it, or a number that names something: no amount, time, date or version.
_THING: Final = re.compile(
    r"(?<![A-Za-z0-9_.,:/@$€£¥%#+~-])(?!\d{1,2}(?:st|nd|rd|th|h|er|am|pm)\b)(?!(?:19|20)\d\d(?![A-Za-z0-9_-]))"
    r"#?(?=[A-Za-z_-]*\d)(?:\d{3,}|[A-Za-z0-9_]*(?:[A-Za-z_]\d|\d[A-Za-z_]|-)[A-Za-z0-9_-]*)"
    r"(?![A-Za-z0-9_-]|[.,:/@]\w|\s?[€$£¥%°元円]|\s?(?:euros?|dollars?|usd|eur)\b)"
)
_NAME: Final = re.compile(r"(?<=[^\W\d_,]\s)[A-ZÀ-Þ][\w’'-]+ [A-ZÀ-Þ][\w’'-]+")
# What is called by a word alone: "the server lima …", and a field of that name with a value such as "app-osaka".
_SERVER: Final = r"(?:server|servidor|serveur|sunucu|cluster|сервер|узел|الخادم|サーバー|服务器|主机|实例)"
_CALLED: Final = re.compile(rf"\A(?:\w{{1,4}} )?({_SERVER} [^\W\d_]{{3,}}) \w", re.IGNORECASE)
_LABELLED: Final = re.compile(rf"{_SERVER}: \w+[-_.][\w.-]+", re.IGNORECASE)
_DATE: Final = re.compile(r"\d{1,4}-\d{1,2}-\d{1,4}")
_NAMES: Final = re.compile(
    r"(?:^|_|(?<=[a-z]))(?:id|iid|key|number|code|no|nr|ref)$|^(?:host|user)?name$", re.IGNORECASE
)
_NUMBER: Final = re.compile(r"[\W\d_]+")
_SAYS: Final = re.compile(r"[^\W\d_]{3}|[^\W\d_]{2}\W+[^\W\d_]{2}|[\u3400-\u9fff]{2}")  # beside the name
_ANEW: Final = 600.0  # seconds after which a sentence does not just repeat a result
_WHICH: Final = re.compile(r"\s(?:#?[A-Za-z-]{0,4}\d[\w-]*|[A-ZÀ-Þ][\w’'-]+)")  # behind the word for a thing: which one
_ASKS: Final = re.compile(r"[?？؟]\W*\Z")
# Of a sentence: a word with what is behind it.
_PIECE: Final = late(rf"{DENSE.pattern}|(?:(?!{DENSE.pattern})\S)+\s*|\s+")
_ROW: Final = re.compile(r"[|,;\t]")
_HEAD: Final = re.compile(r"[^\W\d][\w .%/-]{0,24}")  # of a column
_RULE: Final = re.compile(r"[\s|:-]+")


class Saying(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was said of a thing. `field`: of a result, the field whose value `text` is; "" for a sentence. `at`: when,
    in seconds since the epoch."""

    of: Annotated[str, Meta(min_length=1)]
    text: Annotated[str, Meta(min_length=1)]
    at: Annotated[float, Meta(gt=0)]
    field: str = ""

    @property
    def told(self) -> Told:
        """The words that a line which repeats this has, and when it was said."""
        return Told.of(f"{self.of} {self.text}" if self.field else self.text, self.at)


def carried(before: Iterable[Saying], middle: Sequence[Message], redact: Redact) -> list[Saying]:
    """Return the sayings of the notes `before` and of the `middle`, oldest first: of each thing the last ones, and
    rather those of which several were said."""
    kept: dict[tuple[str, str], list[Saying]] = defaultdict(list)
    fresh = [said for message in middle[-_READ:] for said in _of(message)]
    lines = [f"{said.of} {said.field}: {said.text}" if said.field else said.text for said in fresh]
    clean = redact("\n".join(lines)).split("\n") if fresh else []
    if len(clean) != len(fresh):  # a credential seemed to reach over two of them
        clean = [redact(line) for line in lines]
    fresh = [
        said if line == shown else replace(said, text=shown or said.of)
        for said, line, shown in zip(fresh, lines, clean, strict=True)
        if line == shown or not said.field  # a field with a credential is not kept
    ]
    for said in (*before, *fresh):
        row = kept[said.of, said.field]
        if row and said.at < row[-1].at:  # the clock was set back: what was said last is the last
            said = replace(said, at=row[-1].at)
        if row and _is_same(row[-1], said):
            row.pop()
        row.append(said)
        del row[:-_EACH]
    shown = {id(said) for row in changed(said for row in kept.values() for said in row) for said in row}
    rows = sorted(kept.values(), key=lambda row: (id(row[-1]) in shown, row[-1].at), reverse=True)
    spoken = [said for row in rows for said in row if not said.field][:MOST]
    fields = [said for row in rows for said in row if said.field][: 2 * MOST]
    return sorted([*spoken, *fields], key=lambda said: said.at)


def _is_same(one: Saying, other: Saying) -> bool:
    return one.text == other.text or (not one.field and telling(one.text) == telling(other.text))


def _of(message: Message) -> Iterator[Saying]:
    """What a message says of things."""
    at = said_at(message)
    if at <= 0:
        return
    if message.get("role") == "tool":
        text = text_of(message)
        if len(text) <= _RESULT and not note_of(message).get("recalled"):
            for of, field, value in _told(text.strip()):
                # A result is foreign: what is more than a line would read as lines of the notes.
                of, field, value = (in_a_line(each, _VALUE + 1) for each in (of, field, value))
                if all(0 < len(each) <= _VALUE for each in (of, field, value)):
                    yield Saying(of=of, field=field, text=value, at=at)
        return
    person, by = message.get("role") == "user", ""
    for line in (own_words(message) if person else text_of(message)).splitlines():
        speaker, line = parted(line) if person else ("", line)
        by = speaker or by
        for sentence in sentences(line):
            said = " ".join(sentence.split()).lstrip("-*•– ")
            of = "" if len(said) > _LONGEST else _subject_of(said) if person else _thing_in(said, person=False)
            if of and by:  # what two people call alike may be two things, unless it has a name with a digit
                of, said = of if _THING.search(of) else f"[{by}] {of}", f"[{by}] {said}"
            if of:
                yield Saying(of=of, text=said, at=at)


def _thing_in(said: str, *, person: bool) -> str:
    """The first name with a digit in a sentence that says more than the name, or of two words if no person says it; ""
    for none."""
    named = _THING.search(said)
    if named is None and not person:
        named = _NAME.search(said) or (_CALLED.match(said) if len(said) <= _SHORT else None)
    name = named[named.lastindex or 0] if named else ""
    if not name or _DATE.fullmatch(name) or _ASKS.search(said):
        return ""
    return name if _SAYS.search(said.replace(name, "")) else ""


def _subject_of(said: str) -> str:
    """What a person's sentence is about: a name, or the word with which a short one begins; "" if it states nothing."""
    thing = _thing_in(said, person=True)
    if thing and not thing.isdigit():
        return thing
    word = subject(said) if len(said) <= _SHORT and asserts(said) and not stands(said) else ""
    which = _WHICH.match(said, said.lower().find(word) + len(word)) if word else None
    return f"{word}{which[0]}" if which else word


def _told(text: str) -> Iterator[tuple[str, str, str]]:
    """Thing, field and value of each cell of a result."""
    if text.startswith(("{", "[")):
        with suppress(ValueError, RecursionError):
            things = [*_objects(json.loads(text))][:_ROWS]
            for of, fields in things:
                yield from ((of, name, value) for name, value in fields.items() if len(things) <= _FEW or _says(value))
        return
    lines = [line for line in text.splitlines()[: _ROWS + 2] if not _RULE.fullmatch(line)]
    rows = [[cell.strip() for cell in _ROW.split(line.strip(" |"))] for line in lines]
    head = rows[0] if rows else []
    if len(rows) > 1 and len(head) > 1 and {*map(len, rows)} == {len(head)} and all(map(_HEAD.fullmatch, head)):
        for row in rows[1:]:
            yield from (
                (row[0], name, value) for name, value in zip(head[1:], row[1:], strict=True) if row[0] and value
            )


def _says(value: str) -> bool:
    """Whether the value of a field in a long list is a word: numbers there are seldom looked at."""
    return _NUMBER.fullmatch(value) is None and _THING.fullmatch(value) is None


def _objects(value: Any) -> Iterator[tuple[str, dict[str, str]]]:
    """Each object with a name in a JSON value, and its other plain fields."""
    if isinstance(value, list):
        for each in value:
            yield from _objects(each)
    elif isinstance(value, dict):
        plain = {name: str(each) for name, each in value.items() if isinstance(each, str | int | float)}
        fields = {name: each for name, each in plain.items() if 0 < len(each) <= _VALUE}
        if (named := _named_by(fields)) is not None:
            yield fields[named], {name: each for name, each in fields.items() if name != named}
        for each in value.values():
            if isinstance(each, dict | list):
                yield from _objects(each)


def _named_by(fields: Mapping[str, str]) -> str | None:
    """The field of an object that tells which one it is: one that is called so, one whose value has a digit, or a
    server."""
    names = [name for name, value in fields.items() if not _is_person(name, value)]
    called = (name for name in names if _NAMES.search(name))
    digits = (name for name in fields if _THING.fullmatch(fields[name]))
    servers = (name for name in names if _LABELLED.fullmatch(f"{name}: {fields[name]}"))
    return next(chain(called, digits, servers), None)


def _is_person(field: str, value: str) -> bool:
    """Whether a name may be one of several people's."""
    return field.endswith("name") and value[:1].isupper()


def changed(sayings: Iterable[Saying]) -> list[list[Saying]]:
    """The sayings of each thing, and of each field, of which there are several, oldest first. A single sentence follows
    the fields that were told before it."""
    things: dict[str, dict[str, list[Saying]]] = defaultdict(lambda: defaultdict(list))
    for said in sayings:
        things[said.of][said.field].append(said)
    found: list[list[Saying]] = []
    for rows in things.values():
        spoken = rows.pop("", [])
        if len(spoken) == 1 and len(rows) <= _EACH:
            spoken = [row[-1] for row in rows.values() if row[-1].at < spoken[0].at - _ANEW] + spoken
        found += [row for row in (*rows.values(), spoken) if len(row) > 1 and not _only_repeats(row[-1], row[-2])]
    return found


def _only_repeats(last: Saying, before: Saying) -> bool:
    return not last.field and telling(last.text) <= telling(before.text)


def listed(rows: Iterable[Sequence[Saying]], days: Days, room: Room) -> tuple[str, frozenset[str]]:
    """The section of the notes with what `changed`, the first if not all fit; "" if nothing changed. And the sentences
    that it shows."""
    left = room.below(f"{HEADING}\n{_SAID}")
    lines: list[str] = []
    shown = set[str]()
    for row in rows:
        line = _line(row, days)
        if left.takes(line, end=1):
            lines.append(line)
            shown.update(said.text for said in row[-2:] if not said.field)
        elif left.tokens < _LEAST:
            break
    return "\n".join([HEADING, _SAID, *lines[::-1]]) if lines else "", frozenset(shown)


def _line(row: Sequence[Saying], days: Days) -> str:
    last, before = row[-1], row[-2]
    now, then = days.pair(last.at, before.at)
    if last.field:
        return f"- {last.of} {last.field}: {last.text} ({now}; before: {before.text}, {then})"
    former = f"{before.field}: {before.text}" if before.field else _differing(before.text, last.text)
    return f"- {last.text} ({now}; before: {former}, {then})"


def _differing(text: str, other: str) -> str:
    """What a sentence says that another does not, without what both begin and end with; all of it if that is
    nothing."""
    words, others = (_PIECE.findall(each) for each in (text, other))
    most = min(len(words), len(others))
    first = next((place for place in range(most) if words[place] != others[place]), most)
    end = next((place for place in range(most - first) if words[-1 - place] != others[-1 - place]), most - first)
    return "".join(words[first : len(words) - end]).strip(" .。") or text
