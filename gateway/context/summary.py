"""Phase 3, its input: earlier summaries are found in a transcript and taken out of it.

A transcript may have thousands of messages, and visiting each takes longer than what is done there. So everything that
the host noted with them is read in the same walk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, cast

from msgspec import Meta, Struct, field

from gateway.context import facts, identifiers, ledger, timelines
from gateway.context.archive import Archive, Chapter, without_line
from gateway.context.archive import earlier as earlier_chapters
from gateway.context.prompts import END_MARKER, foreign, framed, unframed
from gateway.context.readable import rewritten, sources, well_formed
from gateway.context.standing import Instruction, earlier
from gateway.domain.message import HOST, SUMMARY_NOTES, Message, is_summary, note_of, noted, text_of
from gateway.runtime.tokens import TokenCounter

_Weight = Annotated[float, Meta(ge=0, le=ledger.CORRECTION)]


class Extracted(Struct, kw_only=True):
    """A transcript without its summaries."""

    turns: list[Message] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)  # of each turn
    rows: list[str] = field(default_factory=list)  # the row id of each turn, "" for none
    telling: list[int] = field(default_factory=list)  # turns in which a person may give standing instructions
    head_limit: int = 0  # the turns before the first summary; all turns, if there is none
    # Of the summaries:
    found: int = 0  # their number
    notes: str = ""  # their text
    ids: list[str] = field(default_factory=list)  # of the rows that they stand for
    identifiers: dict[str, float] = field(default_factory=dict)  # that they hold letter for letter, and their weights
    owned: dict[str, float] = field(default_factory=dict)  # those of them that people said, and their weights
    archive: Archive = field(default_factory=Archive)  # the messages that they stand for
    chapters: list[Chapter] = field(default_factory=list)  # of these messages
    standing: list[Instruction] = field(default_factory=list)  # instructions that they hold
    facts: list[facts.PersonalFact] = field(default_factory=list)  # that they hold
    sayings: list[timelines.Saying] = field(default_factory=list)  # of things over time


def extract(messages: Sequence[Message], counter: TokenCounter) -> Extracted:
    """Take every earlier summary out of `messages`, and out of messages that summaries were merged into.

    The host's note tells a summary. A message without any note (restored, imported) is a summary if it reads like one,
    from opener to end marker, and a person spoke after it. A summary that somebody pastes as their request is a
    request."""
    result = Extracted()
    turns, tokens, rows, telling = result.turns, result.tokens, result.rows, result.telling
    told: list[str] = []  # the notes of each summary
    last = next((index for index in range(len(messages) - 1, -1, -1) if messages[index].get("role") == "user"), -1)
    for index, message in enumerate(messages):
        note: Any
        try:
            note = message[HOST]
            counted, row, plain = note["tokens"], note["id"], "summary" not in note
        except (KeyError, TypeError):
            plain = False
        if not plain:
            parts = _split(message, by_text=index < last)
            if parts is not None:
                notes, content = parts
                told.append(without_line(notes).strip())
                _add(result, message, notes)
                if content is None:
                    continue
                message = _restored(message, content, counter)
            note = note_of(message)
            counted, row = note.get("tokens"), note.get("id")
        if message["role"] == "user" and note.get("instructions", True):
            telling.append(len(turns))
        turns.append(message)
        tokens.append(counted if type(counted) is int and counted > 0 else counter.message(message))
        rows.append(row if type(row) is str else "")
    if not result.found:
        result.head_limit = len(turns)
    result.notes = "\n\n".join(filter(None, told))
    return result


def _add(result: Extracted, summary: Message, notes: str) -> None:
    """Add what a summary with these notes stands for, except the notes."""
    if not result.found:
        result.head_limit = len(result.turns)
    result.found += 1
    result.ids += sources(summary)
    known, owned = _identifiers(summary, notes)
    result.identifiers |= known
    result.owned |= owned
    result.archive += Archive.of(summary)
    note = note_of(summary)
    result.chapters += earlier_chapters(note)
    result.standing += earlier(note)
    result.facts += well_formed(note.get("facts"), facts.PersonalFact)
    result.sayings += well_formed(note.get("timelines"), timelines.Saying)


def _split(message: Message, *, by_text: bool) -> tuple[str, Any] | None:
    """(notes, content of the message that the summary was merged into or None); None if it is not a summary."""
    known = is_summary(message)
    if not known and (not by_text or note_of(message) or message.get("role") not in ("user", "assistant")):
        return None
    content: Any = message.get("content")
    listed = isinstance(content, list) and bool(content) and isinstance(content[0], dict)
    first = content[0].get("text") if listed else content
    told = isinstance(first, str) and (known or END_MARKER in first or foreign(first) is not None)
    framed = unframed(first) if told else None
    if framed is None:
        return (text_of(message), None) if known else None
    notes, rest = framed
    if listed and len(content) > 1:
        return notes, content[1:]
    return notes, rest if rest or message.get("tool_calls") else None


class _Weighed(Struct, frozen=True):
    """The part of a summary's note about identifiers. `owned`: which of them people said."""

    identifiers: list[str]
    weights: list[_Weight]
    owned: list[Annotated[int, Meta(ge=0)]] = []
    own_weights: list[_Weight] = []


def _identifiers(message: Message, notes: str) -> tuple[dict[str, float], dict[str, float]]:
    """Return the identifiers of a summary, and those of them that people said, with their weights."""
    noted = well_formed([note_of(message)], _Weighed) if is_summary(message) else []
    if not noted or len(noted[0].weights) != len(noted[0].identifiers):  # an import's, or an earlier version's
        return dict.fromkeys(identifiers.find(notes), ledger.UNKNOWN), {}
    values, own = noted[0].identifiers, zip(noted[0].owned, noted[0].own_weights, strict=False)
    known = dict(zip(values, noted[0].weights, strict=True))
    return known, {values[place]: weight for place, weight in own if place < len(values)}


def as_ours(messages: Sequence[Message], roles: Sequence[str] = ("user", "assistant")) -> list[Message]:
    """A transcript from elsewhere in which other programs' notes, in messages with these roles, look like ours:
    background that gives no orders. If a text begins like that but is the last message and a person's, it is what they
    ask."""
    asked = len(messages) - 1 if messages and messages[-1]["role"] == "user" else -1
    return [_framed(each) if place != asked and each["role"] in roles else each for place, each in enumerate(messages)]


def _framed(message: Message) -> Message:
    content = message.get("content")
    if not isinstance(content, str) or message.get("tool_calls") or is_summary(message):
        return message
    found = foreign(content)
    if found is None:
        return message
    notes, rest = found
    text = framed(notes, "Another program took older turns out of view.")
    ours: Any = {**message, "content": f"{text}\n\n{rest}" if rest else text}
    return noted(ours, summary=True, merged=bool(rest))


def _restored(message: Message, content: Any, counter: TokenCounter) -> Message:
    restored = rewritten(message, counter, content=content if content != "" else None)
    note = {key: value for key, value in note_of(restored).items() if key not in SUMMARY_NOTES}
    return cast(Message, {**restored, HOST: note})
