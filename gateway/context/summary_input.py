"""The summariser's reading material: the middle before any pruning, because nobody can summarise unread text.

Only single long tool results are cut, and the whole is capped. Where not everything fits, the newest messages come
first; then, of the older ones, those that hold identifiers, a person's before the rest. The messages are shown in
their order, with a line for every gap. A middle that is too long for one request is divided into consecutive parts.
Everything is redacted here, and before any cut, so that no credential is cut in half.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from gateway.context import identifiers
from gateway.context.prompts import CUT, ENCODED, GAP, OLDER, neutralise
from gateway.context.pruning import cut
from gateway.context.readable import Call, calls_of, result_id
from gateway.domain.message import HOST, Message, text_of
from gateway.runtime.redaction import Redact
from gateway.runtime.tokens import TokenCounter

INPUT_CHARS: Final = 160_000  # the whole input
RESULT_CHARS: Final = 2_000  # a tool result beyond this is cut
RESULT_EDGE: Final = 800  # to its first and last so many
_MOST_CHARS: Final = 40_000  # of one message: nobody alone fills the room
_REDACTED_EDGE: Final = 4_000  # redacted before the cut
_NEWEST: Final = 0.6  # of the room, for the newest messages with or without identifiers
_LEAST_ROOM: Final = 80  # characters; less room is not worth a search
_PACKED: Final = 0.9  # of the room of several parts: a message that does not end with one leaves a gap
_OPENING: Final = 300  # characters that tell a message from others
_LABEL: Final = 12  # tokens; "[assistant calls search_history] " takes fewer
_MARKED: Final = 32  # bytes that the mark of a cut adds to a text in ASCII beyond its characters
_GAP_CHARS: Final = len(GAP) + 6
_BLOB: Final = re.compile(r"[A-Za-z0-9+/=_-]{600,}+")  # encoded data, which no model can summarise
_FORGED: Final = re.compile(r"^\[(?=(?:user|assistant|system|tool|result of|\d+ (?:older |)messages)\b)", re.MULTILINE)


class Part(Struct, frozen=True, kw_only=True):
    """What one request covers of the middle: from the end of the part before up to the `end`th message."""

    text: str
    end: int


def parts(
    middle: Sequence[Message],
    calls: Mapping[str, Call],
    redact: Redact,
    *,
    chars: int,
    tokens: int,
    each: int,
    most: int,
    counter: TokenCounter,
) -> list[Part]:
    """Return the middle as the summariser reads it, oldest part first: at most about `chars` characters, in one part of
    about `tokens` tokens or in two to `most` parts of about `each` tokens."""
    room = _Room(chars, max(tokens, int(most * each * _PACKED)) if most > 1 else tokens)
    blocks: dict[int, str] = {}
    sizes: dict[int, int] = {}
    for index in _order(middle, room, blocks):
        block, size = _sized(middle[index], calls, redact, counter, ample=tokens >= chars)
        if room.takes(block, size):
            blocks[index], sizes[index] = block, size
        elif not blocks:
            blocks[index], sizes[index] = _within(block, size, tokens, redact, chars), tokens
            break
    if sum(sizes.values()) <= tokens:
        return [Part(text=_cleaned(_in_order(blocks, 0, len(middle)), redact), end=len(middle))]
    for index in (place for place, size in sizes.items() if size > each):
        blocks[index], sizes[index] = _within(blocks[index], sizes[index], each, redact, chars), each
    made: list[Part] = []
    runs = _packed(sizes, each, most)
    for run in runs:
        start, end = made[-1].end if made else 0, len(middle) if run is runs[-1] else run[-1] + 1
        text = _cleaned(_in_order({index: blocks[index] for index in run}, start, end), redact)
        made.append(Part(text=text, end=end))
    return made


def render(
    middle: Sequence[Message],
    calls: Mapping[str, Call],
    redact: Redact,
    *,
    chars: int,
    tokens: int,
    counter: TokenCounter,
) -> str:
    """Return the middle in a single part."""
    return parts(middle, calls, redact, chars=chars, tokens=tokens, each=tokens, most=1, counter=counter)[0].text


def opening(message: Message, calls: Mapping[str, Call], redact: Redact) -> str:
    """The beginning of a message on one line, redacted, so that a reader of the conversation can find it."""
    block, _ = _block(message, calls, redact)
    line = " ".join(redact(block).split())
    return line if len(line) <= _OPENING else f"{line[:_OPENING]}…"


def _within(block: str, size: int, tokens: int, redact: Redact, chars: int) -> str:
    """Return about `tokens` tokens of a block of `size` tokens: its two ends, redacted before the cut."""
    return cut(redact(block), max(400, min(chars, len(block) * tokens // max(1, size))))


def _packed(sizes: Mapping[int, int], tokens: int, most: int) -> list[list[int]]:
    """Return places in at most `most` runs of at most `tokens` tokens, oldest run first. The runs are filled from the
    newest place on, so the oldest places are left out."""
    runs: list[list[int]] = [[]]
    free = tokens
    for index in sorted(sizes, reverse=True):
        if sizes[index] > free and runs[-1]:
            if len(runs) == most:
                break
            runs.append([])
            free = tokens
        runs[-1].append(index)
        free -= sizes[index]
    return [run[::-1] for run in reversed(runs)]


class _Room:
    """The characters and tokens that are left."""

    def __init__(self, chars: int, tokens: int) -> None:
        self._low_chars, self._low_tokens = chars * (1 - _NEWEST), tokens * (1 - _NEWEST)
        self.chars, self.tokens = chars, tokens
        self.refused = 0
        self.each = 1  # characters that a block costs beside its own

    def takes(self, block: str, tokens: int) -> bool:
        """Take the room for a block, if there is enough; whether there was."""
        chars, tokens = self.chars - len(block) - self.each, self.tokens - tokens - self.each // 2
        if chars < 0 or tokens < 0:
            self.refused += 1
            self.each = _GAP_CHARS  # any later block may stand behind a gap
            return False
        self.chars, self.tokens = chars, tokens
        return True

    @property
    def low(self) -> bool:
        """Whether the newest messages have had their share."""
        return self.chars < self._low_chars or self.tokens < self._low_tokens

    @property
    def full(self) -> bool:
        """Whether it is useless to search on."""
        return self.chars < _LEAST_ROOM or self.tokens < _LEAST_ROOM // 4 or self.refused > 8


def _order(middle: Sequence[Message], room: _Room, blocks: Mapping[int, str]) -> Iterator[int]:
    """Indices in the order of their worth, each once. The order depends on which blocks are taken meanwhile."""
    index = len(middle)
    while index > 0 and not room.low:
        index -= 1
        yield index
    for telling in (_is_telling_request, _is_telling, bool):
        room.refused, room.each = 0, _GAP_CHARS
        if room.full:
            break
        for place in range(index - 1, -1, -1):
            if place not in blocks and telling(middle[place]):
                yield place
                if room.full:
                    break


def _is_telling_request(message: Message) -> bool:
    return message.get("role") == "user" and _is_telling(message)


def _is_telling(message: Message) -> bool:
    note: Any = message.get(HOST)
    noted = note.get("identifiers") if type(note) is dict else None
    return bool(noted) if type(noted) is list else bool(identifiers.of(message))


def _sized(
    message: Message, calls: Mapping[str, Call], redact: Redact, counter: TokenCounter, *, ample: bool
) -> tuple[str, int]:
    """(a message as the summariser reads it, the most tokens that it takes).

    Counting a block takes longer than rendering it. So if the message is shown whole, its stored count is used, plus
    the tokens of labels; if it is cut and tokens are `ample`, its number of bytes.
    """
    note: Any = message.get(HOST)
    stored = note.get("tokens") if type(note) is dict else None
    if type(stored) is not int or stored <= 0:
        return (block := _block(message, calls, redact)[0]), counter.text(block)
    text, role = message.get("content"), message.get("role")
    # Nearly every message of a long transcript is shown whole behind its label.
    bare = type(text) is str and 0 < len(text) <= RESULT_CHARS and "[" not in text
    if bare and "tool_calls" not in message:
        return f"[{role if role != 'tool' else _label(message, calls)}] {text}", stored + _LABEL
    block, whole = _block(message, calls, redact)
    if not whole:
        size = len(block.encode("utf-8", "replace"))
        return block, size if ample and size <= len(block) + _MARKED else counter.text(block)
    return block, stored + _LABEL * (1 + block.count("\n["))


def _label(message: Message, calls: Mapping[str, Call]) -> str:
    if message.get("role") != "tool":
        return f"{message.get('role')}"
    call = calls.get(result_id(message) or "")
    return f"result of {call.name if call else 'a tool'}"


def _block(message: Message, calls: Mapping[str, Call], redact: Redact) -> tuple[str, bool]:
    """Return (a message as the summariser reads it, whether it is whole). A message that was cut is redacted."""
    role = message.get("role")
    text = text_of(message)
    if role == "tool":
        shown = _edges(text, redact)
        return f"[{_label(message, calls)}] {_unforged(shown)}", shown is text
    label = _label(message, calls)
    shown = _said(text, redact)
    lines = [f"[{label}] {_unforged(shown)}"] if text else []
    whole = shown is text
    for call in calls_of(message):
        arguments = _edges(call.arguments, redact)
        whole = whole and arguments is call.arguments
        lines.append(f"[{role} calls {call.name}] {_unforged(arguments)}")
    return "\n".join(lines) or f"[{label}] (no text)", whole


def _said(text: str, redact: Redact) -> str:
    """Return the words of a person or the model without encoded data; only enormous texts are cut."""
    if len(text) <= RESULT_CHARS:
        return text
    shorter = _BLOB.sub(lambda found: ENCODED.format(count=len(found[0])), text)
    if len(shorter) == len(text):
        shorter = text
    return shorter if len(shorter) <= _MOST_CHARS else cut(redact(cut(shorter, INPUT_CHARS)), _MOST_CHARS)


def _edges(text: str, redact: Redact) -> str:
    """Return the first and last characters of a long result."""
    if len(text) <= RESULT_CHARS:
        return text
    if len(text) <= 2 * _REDACTED_EDGE:
        return cut(redact(text), 2 * RESULT_EDGE)
    start, end = redact(text[:_REDACTED_EDGE])[:RESULT_EDGE], redact(text[-_REDACTED_EDGE:])[-RESULT_EDGE:]
    return f"{start}\n{CUT.format(count=len(text) - 2 * RESULT_EDGE)}\n{end}"


def _unforged(text: str) -> str:
    """Text in which no line imitates one of our labels."""
    return _FORGED.sub("(", text) if "[" in text else text


def _in_order(blocks: Mapping[int, str], start: int, end: int) -> list[str]:
    lines: list[str] = []
    expected = start
    for index in sorted(blocks):
        if index > expected:
            lines.append((GAP if lines else OLDER).format(count=index - expected))
        lines.append(blocks[index])
        expected = index + 1
    if end > expected:
        lines.append(GAP.format(count=end - expected))
    return lines


def _cleaned(blocks: Sequence[str], redact: Redact) -> str:
    """Return the blocks as one text without credentials or our markers. They are redacted all at once, because most of
    the cost of redaction is the search; only a private key of several lines could seem to reach into another block."""
    joined = "\n".join(blocks)
    if "PRIVATE KEY" in joined:
        joined = "\n".join(redact(block) for block in blocks)
    return neutralise(redact(joined)).replace("\x00", "\N{REPLACEMENT CHARACTER}")
