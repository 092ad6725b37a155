"""Automatic recall: a message that names something out of view brings the earlier words about it along.

A person comes back to an old code, file or address. The model sees it for the first time in weeks, and does not know
that it should look it up. So identifiers of the new message that are not in view are looked for in the archive of the
same key. At most `MOST` originals are quoted in front of the message, with their speakers and times.

A quote stands in the request alone: it is never stored, and no search or count takes it for something said. It stays
the same in all steps of its turn, so that the provider's cache holds. A message without such identifiers, by far most
of them, costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

import structlog
from msgspec import Struct

from gateway.agent.conversation import Conversation, Quotes
from gateway.agent.tools.history import speaker_of
from gateway.context.mentions import mentions
from gateway.context.prompts import neutralise
from gateway.context.readable import calls_of
from gateway.domain.message import Message, is_of, is_request, note_of, text_of
from gateway.domain.notes import QUOTES, QUOTES_END, TALK
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreError
from gateway.runtime.tokens import TokenCounter
from gateway.store.records import Found

log = structlog.get_logger(__name__)

MOST: Final = 4  # originals beside one message
MOST_TOKENS: Final = 600
MOST_TALK: Final = 6_000  # tokens of what was said in the group around a message
QUOTED: Final = "quoted:"  # in a session's `announced`: how many the newest message brought, and their tokens

_NAMED: Final = 3  # identifiers of a message that are looked for
_FINDS: Final = 8  # of the newest originals that are looked at for each
_QUOTE: Final = 360  # characters of an original
_READ: Final = 20_000  # characters of an original that are redacted before the cut
_SECONDS: Final = 2.0  # that a turn waits for a slow store
_ROOM: Final = 0.95  # of the window: a fuller one is given no quotes
_SHORTEST: Final = 3  # characters of an identifier
_MEASURE: Final = re.compile(r"[$€£¥]?\s?\d[\d.,:]{0,15}\s?[^\W\d_]{0,12}[%‰°]?")  # an amount or a time names nothing
_LONG_NUMBER: Final = re.compile(r"\d{5,}")  # which does
_FORGEABLE: Final = re.compile(r"\[(?=(?:Added by the program|End of the quotes))", re.IGNORECASE)
_SPEAKERS: Final = {"user": "the person", "assistant": "you"}


Holding = Callable[[Sequence[str], int], Awaitable[Sequence[Sequence[Found]]]]
"""For each value the originals of the caller's conversations that hold it, oldest first: the oldest and up to so many
of the newest."""


class Quoting(Struct, frozen=True, kw_only=True):
    """Finds the quotes for a turn."""

    counter: TokenCounter
    clock: Clock
    redact: Callable[[str], str]

    async def find(self, conversation: Conversation, holding: Holding) -> Quotes | None:
        """The quotes for the newest message of a person; None where nothing is missing or nothing was found. A store
        that does not answer costs the quotes and not the turn."""
        newest = next(filter(is_request, conversation.newest_first()), None)
        if newest is None or not note_of(newest).get("identifiers"):  # by far most of them
            return None
        named = _named(newest)
        missing = _missing(named, conversation, newest) if named else []
        if not missing:
            return None
        try:
            async with self.clock.limit(_SECONDS):
                found = await holding(missing, _FINDS)
        except (StoreError, TimeoutError) as error:
            log.warning("nothing_recalled", error=type(error).__name__)
            return None
        ranked = [_ranked(value, each, newest) for value, each in zip(missing, found, strict=True)]
        return self._quoted(_chosen(ranked), conversation, newest)

    def _quoted(self, said: Sequence[tuple[str, Found]], conversation: Conversation, newest: Message) -> Quotes | None:
        """The best of them that fit."""
        while said:
            lines = [self._line(value, each) for value, each in sorted(said, key=lambda pair: pair[1].at)]
            text = "\n".join([QUOTES, *lines, QUOTES_END])
            tokens = self.counter.text(text)
            if tokens <= min(MOST_TOKENS, _room(conversation)):
                return Quotes(message=newest, text=text, count=len(said), tokens=tokens)
            said = said[:-1]
        return None

    def _line(self, value: str, found: Found) -> str:
        text = " ".join(self.redact(text_of(found.message)[:_READ]).split())
        speaker = speaker_of(found, _SPEAKERS)
        day = datetime.fromtimestamp(found.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
        bent = _FORGEABLE.sub("(", neutralise(_around(text, value))).replace("”", '"')  # no imitation of our own marks
        return f"- {day}, {speaker}: “{bent}”"


def with_talk(lines: Sequence[str], conversation: Conversation) -> Quotes | None:
    """The quotes with what was said in the group around the newest message in front of them, of that as much as fits:
    the newest lines."""
    quotes, counter = conversation.quotes, conversation.counter
    newest = next(filter(is_request, conversation.newest_first()), None)
    room = min(MOST_TALK, _room(conversation))
    while lines and newest is not None:
        text = "\n".join([TALK, *lines])
        if (tokens := counter.text(text)) <= room:
            behind, more, count = (quotes.text, quotes.tokens, quotes.count) if quotes else (QUOTES_END, 0, 0)
            return Quotes(message=newest, text=f"{text}\n{behind}", count=count, tokens=tokens + more)
        lines = lines[1 + len(lines) // 4 :]
    return quotes


def _room(conversation: Conversation) -> int:
    spec = conversation.spec
    return int(_ROOM * (spec.context_length - spec.reserved_output)) - conversation.prompt_tokens()


def _named(message: Message) -> list[str]:
    """The identifiers of a message that name something. The name of a file that comes with it only names that file."""
    note = note_of(message)
    values = [value for value in note.get("identifiers", ()) if _names(value)]
    if not values or "files" not in note:
        return values
    words = "\n".join([note.get("said", ""), *(str(file.get("words") or "") for file in note["files"])])
    return [value for value in values if mentions(words, value)]


def _names(value: str) -> bool:
    if len(value) < _SHORTEST or '"' in value:
        return False
    return bool(_LONG_NUMBER.fullmatch(value)) or not _MEASURE.fullmatch(value)


def _missing(values: Sequence[str], conversation: Conversation, newest: Message) -> list[str]:
    """Return the values that the model does not see anywhere else."""
    seen = [conversation.stored.session.system_prompt]
    for message in conversation.newest_first():
        if message is not newest:
            content = message.get("content")
            seen.append(content if isinstance(content, str) else text_of(message))
            if "tool_calls" in message:
                seen += (call.arguments for call in calls_of(message))
    view = "\n".join(seen)
    return [value for value in values if not mentions(view, value)][:_NAMED]


def _ranked(value: str, found: Iterable[Found], newest: Message) -> list[tuple[str, Found]]:
    """The originals that hold a value: first the oldest and the newest that somebody said, then the others, last the
    results of tools. Answers that were taken back when this message was asked again are left out."""
    own, before = text_of(newest), newest
    holding = [turn for turn in found if mentions(text_of(turn.message), value)]
    said: list[Found] = []
    for turn in holding:
        if turn.message["role"] == "user":
            before = turn.message
        taken_back = turn.message["role"] == "assistant" and text_of(before) == own and _asked_anew(before, newest)
        if turn.message["role"] != "tool" and text_of(turn.message) != own and not taken_back:
            said.append(turn)
    said.sort(key=lambda turn: turn.at)
    returned = sorted((turn for turn in holding if turn.message["role"] == "tool"), key=lambda turn: -turn.at)
    return [(value, turn) for turn in (*said[:1], *said[:0:-1], *returned)]


def _asked_anew(before: Message, newest: Message) -> bool:
    """Whether the same place of a client's history has both: its answer to the first was taken back."""
    name = note_of(before).get("event", "").partition("-")[0]
    return bool(name) and before is not newest and is_of(note_of(newest).get("event", ""), name)


def _chosen(by_value: Sequence[Sequence[tuple[str, Found]]]) -> list[tuple[str, Found]]:
    """The best of each value, then the second of each, up to `MOST` different ones."""
    chosen: dict[str, tuple[str, Found]] = {}
    for place in range(MOST):
        for each in by_value:
            if place < len(each) and len(chosen) < MOST:
                chosen.setdefault(note_of(each[place][1].message).get("id", ""), each[place])
    return list(chosen.values())


def _around(text: str, value: str) -> str:
    """The part of a text that holds a value."""
    if len(text) <= _QUOTE:
        return text
    start = min(max(0, text.find(value) - _QUOTE // 2), len(text) - _QUOTE)
    part = text[start : start + _QUOTE]
    return f"{'… ' if start else ''}{part}{' …' if start + _QUOTE < len(text) else ''}"


def marked(announced: Sequence[str], quotes: Quotes | None) -> tuple[str, ...]:
    """A session's `announced` after a message that brought these quotes."""
    others = tuple([mark for mark in announced if not mark.startswith(QUOTED)]) if announced else ()
    return others if quotes is None else (*others, f"{QUOTED}{quotes.count}:{quotes.tokens}")


def quoted(announced: Iterable[str]) -> tuple[int, int] | None:
    """(number, tokens) of the quotes that a session's newest message brought; None: it brought none."""
    mark = next((mark for mark in announced if mark.startswith(QUOTED)), "")
    count, _, tokens = mark.removeprefix(QUOTED).partition(":")
    return (int(count), int(tokens)) if count.isdigit() and tokens.isdigit() else None
