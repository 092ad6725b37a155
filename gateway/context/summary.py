"""Phase 3: what the summariser reads, how it is asked, and what is taken from its answer.

The summariser sees the middle as it was, not pruned: what was never read cannot be summarised.
Only single long tool results are cut, and the whole is capped, newest turns first. Everything
that goes in and everything that comes out is redacted here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from gateway.context.prompts import END_MARKER, INSTRUCTIONS, neutralise, summary_task, unframed
from gateway.context.pruning import Call, calls_of, result_id, rewritten, sources
from gateway.domain.message import HOST, Message, is_summary, note_of, text_of, user
from gateway.errors import SummaryRefused
from gateway.tokens import TokenCounter

INPUT_CHARS: Final = 160_000  # SPEC 5: the whole input
RESULT_CHARS: Final = 2_000  # a tool result beyond this is cut
RESULT_EDGE: Final = 800  # to its first and last so many
_REDACTED_EDGE: Final = 4_000  # redacted before the cut, so that no credential is cut in half
_LABEL: Final = 12  # tokens: more than "[assistant calls search_history] " takes
_THINKING: Final = re.compile(r"^\s*<(think|thinking|reasoning)>.*?</\1>\s*", re.DOTALL | re.IGNORECASE)
_FENCE: Final = re.compile(r"^```[a-z]*\n(.*)\n```\s*$", re.DOTALL)

Redact = Callable[[str], str]


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
    stand before the first of them (all, where there is none). `ids`: row ids they stand for."""

    turns: list[Message]
    notes: str
    head_limit: int
    ids: tuple[str, ...]
    found: int


def extract(messages: Sequence[Message], counter: TokenCounter) -> Extracted:
    """Take every earlier summary out; a message one was merged into is itself again.

    A summary is known by the host's note. A message without any note (restored, imported) is one
    if it reads like one from opener to end marker and a person spoke after it: what somebody pastes
    as their request is no summary.
    """
    turns: list[Message] = []
    notes: list[str] = []
    ids: list[str] = []
    head_limit: int | None = None
    last = max((index for index, m in enumerate(messages) if m.get("role") == "user"), default=-1)
    for index, message in enumerate(messages):
        parts = _split(message, by_text=index < last)
        if parts is None:
            turns.append(message)
            continue
        head_limit = len(turns) if head_limit is None else head_limit
        notes.append(parts[0])
        ids.extend(sources(message))
        if parts[1] is not None:
            turns.append(_restored(message, parts[1], counter))
    return Extracted(
        turns=turns,
        notes="\n\n".join(note for note in notes if note),
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


def _restored(message: Message, content: Any, counter: TokenCounter) -> Message:
    restored = rewritten(message, counter, content=content if content != "" else None)
    note: dict[str, Any] = dict(note_of(restored))
    for name in ("summary", "fallback", "merged"):
        note.pop(name, None)
    return cast(Message, {**restored, HOST: note})


def render(
    middle: Sequence[Message],
    calls: Mapping[str, Call],
    redact: Redact,
    *,
    chars: int,
    tokens: int,
    counter: TokenCounter,
) -> str:
    """The middle as the summariser reads it, at most `chars` characters and `tokens` tokens.

    Newest turns come first into the room there is; a line says how many older ones did not fit.
    """
    blocks: list[str] = []
    fits = _surely_fits(middle, tokens)
    for message in reversed(middle):
        block = _block(message, calls, redact)
        chars -= len(block) + 1
        tokens -= 0 if fits else counter.text(block) + 1
        if blocks and (chars < 0 or tokens < 0):
            break
        blocks.append(
            block if chars >= 0 and tokens >= 0 else _cut(block, max(400, len(block) + min(chars, tokens * 2)))
        )
    missing = len(middle) - len(blocks)
    if missing:
        blocks.append(f"[{missing} older messages did not fit here]")
    return "\n".join(reversed(blocks))


def _surely_fits(middle: Sequence[Message], tokens: int) -> bool:
    """Whether the counts stored with the messages already say that all of them fit: counting what is
    rendered takes longer than rendering it."""
    for message in middle:
        note = note_of(message)
        stored = note.get("tokens")
        if not isinstance(stored, int) or stored <= 0:
            return False
        calls: Any = message.get("tool_calls")
        labels = 1 + (len(calls) if isinstance(calls, list | tuple) else 0)
        tokens -= stored + _LABEL * labels + 3 * len(str(note.get("speaker", "")))
        if tokens < 0:
            return False
    return True


def _block(message: Message, calls: Mapping[str, Call], redact: Redact) -> str:
    role = message.get("role")
    text = text_of(message)
    if role == "tool":
        call = calls.get(result_id(message) or "")
        return f"[result of {call.name if call else 'a tool'}] {_clean(_edges(text, redact))}"
    speaker = note_of(message).get("speaker")
    label = f"{role} {speaker}" if isinstance(speaker, str) and speaker else f"{role}"
    lines = [f"[{label}] {_clean(_redacted(text, redact))}"] if text else []
    lines += [f"[{role} calls {c.name}] {_clean(_edges(c.arguments, redact))}" for c in calls_of(message)]
    return "\n".join(lines) or f"[{label}] (no text)"


def _redacted(text: str, redact: Redact) -> str:
    return redact(text if len(text) <= INPUT_CHARS else _cut(text, INPUT_CHARS))


def _edges(text: str, redact: Redact) -> str:
    """A long result's first and last characters, redacted before they are cut."""
    if len(text) <= RESULT_CHARS:
        return redact(text)
    if len(text) <= 2 * _REDACTED_EDGE:
        return _cut(redact(text), 2 * RESULT_EDGE)
    start, end = redact(text[:_REDACTED_EDGE])[:RESULT_EDGE], redact(text[-_REDACTED_EDGE:])[-RESULT_EDGE:]
    return f"{start}\n[… {len(text) - 2 * RESULT_EDGE:,} characters left out …]\n{end}"


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    edge = max(1, limit // 2)
    return f"{text[:edge]}\n[… {len(text) - 2 * edge:,} characters left out …]\n{text[-edge:]}"


def _clean(text: str) -> str:
    return neutralise(text).replace("\x00", "\N{REPLACEMENT CHARACTER}")


def request(
    turns: str, redact: Redact, *, tokens: int, previous: str, memory: str, focus: str, refused: str = ""
) -> list[Message]:
    """The two messages of a summary request; `turns` is `render`'s, redacted already."""
    task = summary_task(
        turns, tokens=tokens, previous=redact(previous), memory=redact(memory), focus=redact(focus), refused=refused
    )
    return [{"role": "system", "content": INSTRUCTIONS}, user(task)]


def accept(answer: Any, redact: Redact, *, limit: int, room: int, counter: TokenCounter) -> str:
    """The notes in a summariser's answer. Raises SummaryRefused, whose text completes "because".

    `limit`: the output cap the answer was asked under; reaching it means it was cut off. `room`:
    the most it may take, so that the transcript really becomes shorter.
    """
    text = str(answer).replace("\x00", "") if isinstance(answer, str) else ""
    text = _THINKING.sub("", text).strip()
    fenced = _FENCE.match(text)
    text = fenced[1].strip() if fenced else text
    framed = unframed(text)
    text = framed[0] if framed else text
    if not text:
        raise SummaryRefused("it was empty")
    size = counter.text(text)
    if getattr(answer, "stop", None) == "length" or size >= limit:
        raise SummaryRefused("it was cut off before its end")
    if size > room:
        raise SummaryRefused(f"it was too long ({size:,} tokens where {room:,} fit)")
    return redact(text)
