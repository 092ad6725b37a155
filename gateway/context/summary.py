"""Phase 3: earlier summaries found in a transcript, and how the summariser is asked for the next one.

What it reads is made in `material`, what is taken from its answer in `verification`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from gateway.context import identifiers
from gateway.context.material import Redact
from gateway.context.prompts import END_MARKER, INSTRUCTIONS, aligned_task, summary_task, unframed
from gateway.context.shapes import rewritten, sources
from gateway.domain.message import HOST, Message, is_summary, note_of, text_of, user
from gateway.runtime.tokens import TokenCounter

_REQUESTS: Final = 3  # the newest ones, on which a summary dwells by itself
_REQUEST_CHARS: Final = 400


class ModelText(str):
    """What `call_model` returns when it can say more than text; to any engine it is a plain str.

    `stop`: why the model stopped, as in `providers.base.StopReason`. `failed_model`: the auxiliary
    model that failed before another one answered.
    """

    __slots__ = ("failed_model", "stop")

    def __new__(cls, text: str, *, stop: str = "stop", failed_model: str | None = None) -> ModelText:
        """Text with its circumstances."""
        made = super().__new__(cls, text)
        made.stop = stop
        made.failed_model = failed_model
        return made

    stop: str
    failed_model: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """A transcript without its summaries. `notes`: what they said. `head_limit`: how many turns
    stand before the first of them (all, where there is none). `ids`: row ids they stand for.
    `identifiers`: what they held letter for letter, and its weight."""

    turns: list[Message]
    notes: str
    identifiers: Mapping[str, float]
    head_limit: int
    ids: tuple[str, ...]
    found: int


def extract(messages: Sequence[Message], counter: TokenCounter) -> Extracted:
    """Take every earlier summary out; a message one was merged into is itself again.

    A summary is known by the host's note. A message without any note (restored, imported) is one
    if it reads like one from opener to end marker and a person spoke after it: what somebody pastes
    as their request is no summary.
    """
    if all(type(note := m.get(HOST)) is dict and note and not note.get("summary") for m in messages):
        return Extracted(turns=[*messages], notes="", identifiers={}, head_limit=len(messages), ids=(), found=0)
    turns: list[Message] = []
    notes: list[str] = []
    names: dict[str, float] = {}
    ids: list[str] = []
    head_limit: int | None = None
    last = max((index for index, m in enumerate(messages) if m.get("role") == "user"), default=-1)
    for index, message in enumerate(messages):
        note = message.get(HOST)
        noted = type(note) is dict and bool(note)
        parts = None if noted and not note.get("summary") else _split(message, by_text=index < last)  # type: ignore[union-attr]
        if parts is None:
            turns.append(message)
            continue
        head_limit = len(turns) if head_limit is None else head_limit
        notes.append(parts[0])
        names |= _identifiers(message, parts[0])
        ids.extend(sources(message))
        if parts[1] is not None:
            turns.append(_restored(message, parts[1], counter))
    return Extracted(
        turns=turns,
        notes="\n\n".join(note for note in notes if note),
        identifiers=names,
        head_limit=len(turns) if head_limit is None else head_limit,
        ids=tuple(ids),
        found=len(notes),
    )


def _split(message: Message, *, by_text: bool) -> tuple[str, Any] | None:
    """(notes, content of the message it was merged into or None), None if it is no summary."""
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
    if values is not noted or not isinstance(weights, list) or len(weights) != len(values):  # of a version without
        weights = [identifiers.UNKNOWN] * len(values)
    paired = zip(values, weights, strict=True)
    return {value: _weight(weight) for value, weight in paired if isinstance(value, str)}


def _weight(noted: Any) -> float:
    known = type(noted) in (int, float) and 0 <= noted <= identifiers.CORRECTION
    return float(noted) if known else identifiers.UNKNOWN


def _restored(message: Message, content: Any, counter: TokenCounter) -> Message:
    restored = rewritten(message, counter, content=content if content != "" else None)
    note: dict[str, Any] = dict(note_of(restored))
    for name in ("summary", "fallback", "merged", "identifiers", "weights"):
        note.pop(name, None)
    return cast(Message, {**restored, HOST: note})


def newest_requests(requests: Sequence[str], redact: Redact) -> list[str]:
    """The newest things that people asked for, oldest first, each on one line; redacted before it is cut."""
    lines = [" ".join(redact(text[: 10 * _REQUEST_CHARS]).split()) for text in requests[-_REQUESTS:]]
    return [line if len(line) <= _REQUEST_CHARS else f"{line[:_REQUEST_CHARS]}…" for line in lines if line]


def request(
    turns: str,
    redact: Redact,
    *,
    tokens: int,
    previous: str,
    memory: str,
    focus: str,
    recent: Sequence[str] = (),
    refused: str = "",
) -> list[Message]:
    """The two messages of a summary request; `turns` is `material.render`'s and `recent` is
    `newest_requests`', redacted already."""
    task = summary_task(
        turns,
        tokens=tokens,
        previous=redact(previous),
        memory=redact(memory),
        focus=redact(focus),
        recent=recent,
        refused=refused,
    )
    return [{"role": "system", "content": INSTRUCTIONS}, user(task)]


def instruction(
    opening: str,
    redact: Redact,
    *,
    tokens: int,
    previous: bool,
    memory: str,
    focus: str,
    recent: Sequence[str] = (),
) -> str:
    """What follows a conversation to ask its own model for the notes; `opening` is `material.opening`'s
    and `recent` is `newest_requests`', redacted already."""
    return aligned_task(
        opening, tokens=tokens, previous=previous, memory=redact(memory), focus=redact(focus), recent=recent
    )
