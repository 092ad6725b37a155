"""The list of identifiers at the end of notes, written and read back.

- The best stand on a line each, with the sentence around them.
- All others share a line, and those of one word a cell: `- 512 MB | QWXZKP #W8841`.

The list is written from the best identifier on, as long as there is room, so the rest costs nothing.
Since a piece of a credential may look like an identifier outside its line, every identifier is checked in its line.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from gateway.context.ledger import Ledger
from gateway.context.mentions import Named
from gateway.context.readable import calls_of
from gateway.context.statements import CONTEXT, SIDE, around, context_in
from gateway.domain.message import Message, text_of
from gateway.domain.notes import IDENTIFIERS, section
from gateway.runtime.redaction import Redact
from gateway.runtime.tokens import TokenCounter

HEADING: Final = section(IDENTIFIERS, "").rstrip()
# Of the room, for bare values: the days and what changed say more than the words around a value.
_BARE_SHARE: Final = 0.97
_SAID: Final = 32  # of the best, for whose sentences the messages are read
_AT_ONCE: Final = 64  # identifiers that are checked together
_NEAR: Final = 300  # characters around an identifier in which redaction looks for a credential
_NEAR_KEY: Final = 16_384  # the same beside a private key of many lines
_LEAST_CONTEXT: Final = 6  # tokens; a shorter context says nothing
_APART: Final = "\n\n\x1e\n\n"


class Room(Struct):
    """How much room is left for a list. `chars`: the same in characters, where they are limited, too."""

    tokens: int
    counter: TokenCounter
    chars: float = math.inf

    def share(self, share: float) -> Room:
        """A room of its own, which is a part of this one."""
        return Room(int(self.tokens * share), self.counter, self.chars * share)

    def below(self, opening: str) -> Room:
        """What an `opening` that never changes leaves of this one."""
        return Room(self.tokens - self.counter.constant(opening) - 2, self.counter, self.chars - len(opening))

    def takes(self, text: str, end: int = 0, least: int = 0) -> bool:
        """Take the room for a line, whose `end` counts as so many tokens and characters, if that leaves at `least` so
        many tokens. Returns whether it does."""
        if len(text.split()) > self.tokens:  # no token holds two words of a line, and to count takes ten times as long
            return False
        tokens, chars = self.tokens - self.counter.text(text) - end, self.chars - len(text) - end
        if fits := tokens >= least and chars >= 0:
            self.tokens, self.chars = tokens, chars
        return fits


def lines_of(
    notes: str, ledger: Ledger, room: Room, redact: Redact, previous: str, gone: Mapping[str, str]
) -> list[str]:
    """Lines for as many of the ledger's identifiers as there is room for, without those that `notes` mention.
    `previous`: the notes so far, which say where older ones came from. `gone`: outdated values, which no sentence
    around another value may say, and what holds now."""
    listed: list[str] = []
    near: dict[str, str] = {}
    bare = room.share(_BARE_SHARE)
    spare = room.tokens - bare.tokens
    named = Named(notes)
    for some in _batched(unsuspected(filter(named.takes, ledger), ledger, redact, near)):
        if bare.takes("".join(map(_cell, some))):  # to count values one by one takes most of the time
            listed += some
        else:
            listed += itertools.takewhile(lambda value: bare.takes(_cell(value)), some)
            break
    room.tokens = spare + bare.tokens

    def context(value: str) -> str:
        """Return the sentence around a value, "" for none."""
        entry = ledger[value]
        if not entry.lasting:
            return ""
        said = context_in(previous, value) if entry.source is None else around(value, near[value])
        return "" if any(former in said and present != value for former, present in gone.items()) else said

    said = _contexts(listed[:_SAID], context, room)
    others = _cells([value for value in listed if value not in said])
    lines = [f"- {value}{CONTEXT}{sentence}" for value, sentence in said.items()]
    return [*lines, f"- {SIDE.join(others)}"] if others else lines


def _cell(value: str) -> str:
    """A value in a line with others."""
    return f"{SIDE if ' ' in value else ' '}{value}"


def _contexts(values: Sequence[str], context: Callable[[str], str], room: Room) -> dict[str, str]:
    """Return the sentences around values, of as many as the room takes."""
    said: dict[str, str] = {}
    for value in values:
        if room.tokens <= _LEAST_CONTEXT:
            break
        sentence = context(value)
        if sentence and room.takes(f"\n- {CONTEXT}{sentence}"):
            said[value] = sentence
    return said


def _cells(values: Sequence[str]) -> list[str]:
    """Return the cells of a line: each value of several words, and all of one word together."""
    words = " ".join(value for value in values if " " not in value)
    return [*(value for value in values if " " in value), *filter(None, [words])]


def unsuspected(
    values: Iterable[str], ledger: Ledger, redact: Redact, around_them: dict[str, str] | None = None
) -> Iterator[str]:
    """The values that redaction leaves alone in their lines. `around_them` gets the redacted text of each."""
    for some in _batched(values):
        candidates = [(value, near) for value in some if (near := _near(value, ledger[value].source)) is not None]
        texts = list(dict.fromkeys(near for _, near in candidates))  # values of a short message have the same
        cleaned = redact(_APART.join(texts)).split(_APART)
        if len(cleaned) != len(texts):  # a credential seemed to reach over two of them
            cleaned = [redact(near) for near in texts]
        looked_at = dict(zip(texts, cleaned, strict=True))
        for value, near in candidates:
            if value in looked_at[near]:
                if around_them is not None:
                    around_them[value] = looked_at[near]
                yield value


def _batched(values: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(values)
    while some := list(itertools.islice(rest, _AT_ONCE)):
        yield some


def _near(value: str, message: Message | None) -> str | None:
    """Return the text around an identifier in its message; None if the message does not hold it."""
    if message is None:
        return value
    for text in itertools.chain((text_of(message),), (call.arguments for call in calls_of(message))):
        place = text.find(value)
        if place >= 0:
            near = _NEAR_KEY if "PRIVATE KEY" in text else _NEAR
            return text[max(0, place - near) : place + len(value) + near]
    return None
