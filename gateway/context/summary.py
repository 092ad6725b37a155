"""Phase 3, its input: earlier summaries are found in a transcript and taken out of it.

A transcript may have thousands of messages, and to go to each of them takes longer than what is done there. So
everything that the host noted with them is read in the same walk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from gateway.context import identifiers, ledger
from gateway.context.archive import Archive, without_line
from gateway.context.prompts import END_MARKER, unframed
from gateway.context.shapes import rewritten, sources
from gateway.context.standing import Instruction, earlier
from gateway.domain.message import HOST, Message, is_summary, note_of, text_of
from gateway.runtime.tokens import TokenCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """A transcript without its summaries.

    `tokens` and `rows` (row ids, "" for none) are those of each turn. `telling`: the turns in which a person may give
    standing instructions. `notes`: the text of the summaries. `head_limit`: the turns before the first summary (all
    turns, if there is none). `ids`: the row ids that the summaries stand for. `identifiers`: those that the summaries
    hold letter for letter, and their weights. `archive`: the messages that they stand for. `standing`: the standing
    instructions that they hold. `found`: the number of summaries.
    """

    turns: list[Message]
    tokens: list[int]
    rows: list[str]
    telling: list[int]
    notes: str
    identifiers: Mapping[str, float]
    head_limit: int
    ids: tuple[str, ...]
    archive: Archive
    standing: Sequence[Instruction]
    found: int


def extract(messages: Sequence[Message], counter: TokenCounter) -> Extracted:
    """Take every earlier summary out of `messages`, and out of messages that summaries were merged into.

    The host's note tells a summary. A message without any note (restored, imported) is a summary if it reads like
    one from opener to end marker and a person spoke after it; a summary that somebody pastes as their request is a
    request.
    """
    turns: list[Message] = []
    tokens: list[int] = []
    rows: list[str] = []
    telling: list[int] = []
    notes: list[str] = []
    names: dict[str, float] = {}
    ids: list[str] = []
    archive = Archive()
    standing: list[Instruction] = []
    head_limit: int | None = None
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
                head_limit = len(turns) if head_limit is None else head_limit
                notes.append(without_line(parts[0]).strip())
                names |= _identifiers(message, parts[0])
                archive += Archive.of(message)
                standing += earlier(note_of(message))
                ids.extend(sources(message))
                if parts[1] is None:
                    continue
                message = _restored(message, parts[1], counter)
            note = note_of(message)
            counted, row = note.get("tokens"), note.get("id")
        if message["role"] == "user" and note.get("instructions", True):
            telling.append(len(turns))
        turns.append(message)
        tokens.append(counted if type(counted) is int and counted > 0 else counter.message(message))
        rows.append(row if type(row) is str else "")
    return Extracted(
        turns=turns,
        tokens=tokens,
        rows=rows,
        telling=telling,
        notes="\n\n".join(note for note in notes if note),
        identifiers=names,
        head_limit=len(turns) if head_limit is None else head_limit,
        ids=tuple(ids),
        archive=archive,
        standing=standing,
        found=len(notes),
    )


def _split(message: Message, *, by_text: bool) -> tuple[str, Any] | None:
    """Return (notes, content of the message that the summary was merged into or None); None for no summary."""
    known = is_summary(message)
    if not known and (not by_text or note_of(message) or message.get("role") not in ("user", "assistant")):
        return None
    content: Any = message.get("content")
    listed = isinstance(content, list) and bool(content) and isinstance(content[0], dict)
    first = content[0].get("text") if listed else content
    framed = unframed(first) if isinstance(first, str) and (known or END_MARKER in first) else None
    if framed is None:
        return (text_of(message), None) if known else None
    notes, rest = framed
    if listed and len(content) > 1:
        return notes, content[1:]
    return notes, rest if rest or message.get("tool_calls") else None


def _identifiers(message: Message, notes: str) -> dict[str, float]:
    note = note_of(message) if is_summary(message) else {}
    noted, weights = note.get("identifiers"), note.get("weights")
    values = noted if isinstance(noted, list) else identifiers.find(notes)
    if values is not noted or not isinstance(weights, list) or len(weights) != len(values):  # an earlier version's
        weights = [ledger.UNKNOWN] * len(values)
    paired = zip(values, weights, strict=True)
    return {value: _weight(weight) for value, weight in paired if isinstance(value, str)}


def _weight(noted: Any) -> float:
    known = type(noted) in (int, float) and 0 <= noted <= ledger.CORRECTION
    return float(noted) if known else ledger.UNKNOWN


def _restored(message: Message, content: Any, counter: TokenCounter) -> Message:
    restored = rewritten(message, counter, content=content if content != "" else None)
    gone = ("summary", "fallback", "merged", "identifiers", "weights", "archive", "standing")
    return cast(
        Message, {**restored, HOST: {key: value for key, value in note_of(restored).items() if key not in gone}}
    )
