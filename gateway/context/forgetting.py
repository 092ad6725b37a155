"""Forgetting: what the transcripts of a key are without some exchanges, and without what was made of them. Pure.

A message that a compaction rewrote goes with its original. If a summary was made of a forgotten message, directly or
through an earlier summary, it is made anew by rule from the originals that stay. Nothing of it is reused, because no
part of a text tells what it was made of. A result of a tool that only repeats earlier words (`recalled`) names the
messages that it quotes; with a forgotten one its whole exchange goes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, cast

from msgspec import Struct

from gateway.context import archive, facts, fallback
from gateway.context.archive import Archive
from gateway.context.assembly import Noted, counted, merged, summary_message
from gateway.context.dating import Days
from gateway.context.listing import Room
from gateway.context.prompts import CONTINUED, RESULT_MISSING
from gateway.context.readable import calls_by_id
from gateway.context.standing import carried, listed
from gateway.context.verification import Lists
from gateway.domain.message import HOST, Message, handle, is_request, is_summary, named_in, note_of, text_of
from gateway.runtime.patterns import late
from gateway.runtime.redaction import Redact
from gateway.runtime.structs import replace
from gateway.runtime.tokens import TokenCounter

_LEAST_CHARS: Final = 1_500  # of a summary made anew
_LEAST_TOKENS: Final = 400
_WORD: Final = late(r"[^\W_]{4,}|\d{2,}|[^\x00-\x7f\W]{2,}")
# Scripts without spaces: Thai, Lao, Myanmar, Khmer; kana, Han, Hangul.
_DENSE: Final = late(
    r"[\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff\u3005-\u318f\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff]"
)
_QUOTED: Final = range(12, 121)  # characters at the beginning of a message by which a quotation of it is known
_OURS: Final = (CONTINUED, RESULT_MISSING)  # texts that were made of nothing


class Exchange(Struct, frozen=True, kw_only=True):
    """One request of a person, and the answer to it with its tool calls. `ids`: of these messages, the person's
    first."""

    request: Message
    ids: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class History:
    """Everything stored of a key's conversations: the transcript of each session, oldest session first, and each
    session's parent, if it has one."""

    transcripts: Mapping[str, Sequence[Message]]
    parents: Mapping[str, str]

    @cached_property
    def messages(self) -> Mapping[str, Message]:
        """Every message by its id, in the order in which they were stored."""
        found: dict[str, Message] = {}
        for messages in self.transcripts.values():
            for message in messages:
                found.setdefault(note_of(message)["id"], message)
        return found

    @cached_property
    def order(self) -> Mapping[str, int]:
        """The place of every message among them."""
        return {name: place for place, name in enumerate(self.messages)}

    @cached_property
    def originals(self) -> Mapping[str, Message]:
        """The messages among them that somebody said or a tool returned."""
        return {name: each for name, each in self.messages.items() if "derived_from" not in note_of(each)}

    def origin(self, message: Message) -> str | None:
        """The original that a message is, was rewritten from, or has after a summary; None if it is only a summary, or
        nobody knows."""
        seen: set[str] = set()
        while True:
            note = note_of(message)
            derived = note.get("derived_from")
            if derived is None:
                return note.get("id")
            if not derived or (note.get("summary") and not note.get("merged")):
                return None
            name = derived[-1]
            if name in seen or name not in self.messages:
                return name
            seen.add(name)
            message = self.messages[name]

    @cached_property
    def exchanges(self) -> Sequence[Exchange]:
        """All exchanges, oldest first. An exchange that a compaction cut in two is one."""
        found: dict[str, dict[str, None]] = {}
        for messages in self.transcripts.values():
            for request, ids in self._exchanges(messages):
                found.setdefault(request, {}).update(dict.fromkeys(ids))
        return [
            Exchange(request=self.originals[request], ids=tuple(each for each in ids if each in self.originals))
            for request, ids in found.items()
            if request in self.originals
        ]

    @cached_property
    def holders(self) -> Mapping[str, Sequence[Exchange]]:
        """The exchanges that each message belongs to; several, if several requests share their answer."""
        found: dict[str, list[Exchange]] = {}
        for exchange in self.exchanges:
            for name in exchange.ids:
                found.setdefault(name, []).append(exchange)
        return found

    def exchange_of(self, message_id: str) -> Exchange | None:
        """The exchange that a message belongs to: its own, if it is a request."""
        held = self.holders.get(message_id, ())
        return next((each for each in held if each.ids[0] == message_id), held[0] if held else None)

    def _exchanges(self, messages: Sequence[Message]) -> Iterable[tuple[str, list[str]]]:
        """Each request of a transcript, with its own id and those of the answers that come next."""
        asked: list[list[str]] = []
        answered = False
        for message in messages:
            name = self.origin(message)
            if name is None:
                continue
            if is_request(message):
                if answered:
                    yield from ((ids[0], ids) for ids in asked)
                    asked, answered = [], False
                asked.append([name])
            else:
                answered = True
                for ids in asked:
                    ids.append(name)
        yield from ((ids[0], ids) for ids in asked)


class Remainder(Struct, frozen=True, kw_only=True):
    """What is left of a history. `gone`: ids of originals that go; `removed`: of all messages that go, including these;
    `replaced`: for each message that is made again, its replacement."""

    gone: frozenset[str]
    removed: frozenset[str]
    replaced: Mapping[str, Message]
    freed: Mapping[str, int]  # tokens, of each session that held any of them

    @property
    def summaries(self) -> int:
        """How many summaries are made again, or go because all of their sources are gone."""
        return len(self.replaced) + len(self.removed - self.gone)


def without(history: History, chosen: Collection[str], *, counter: TokenCounter, redact: Redact) -> Remainder:
    """The history without the originals in `chosen`, and without what was made from them. A chosen summary is made
    again."""
    gone = _with_quotations(history, frozenset(chosen) & history.originals.keys())
    tainted = _tainted(history, gone) | (frozenset(chosen) & history.messages.keys() - history.originals.keys())
    removed, replaced = set(gone), dict[str, Message]()
    for name, message in history.messages.items():
        if name in tainted:
            made = _anew(history, message, gone, counter, redact)
            if made is None:
                removed.add(name)
            else:
                replaced[name] = made
        elif name not in gone and "derived_from" in note_of(message) and history.origin(message) in gone:
            removed.add(name)
    freed = {
        session: sum(_freed(message, removed, replaced) for message in messages)
        for session, messages in history.transcripts.items()
        if any(note_of(message)["id"] in removed or note_of(message)["id"] in replaced for message in messages)
    }
    return Remainder(gone=gone, removed=frozenset(removed), replaced=replaced, freed=freed)


def _with_quotations(history: History, chosen: frozenset[str]) -> frozenset[str]:
    """These originals, and every exchange in which a tool quoted one of them or one of those."""
    quotes = [(name, each) for name, each in history.originals.items() if note_of(each).get("recalled")]
    gone = set(chosen)
    before = -1
    while len(gone) != before:
        before = len(gone)
        names = {handle(name) for name in gone}
        words = [text for name in gone if len(text := text_of(history.originals[name])[: _QUOTED.stop - 1]) in _QUOTED]
        for name, message in quotes:
            if name not in gone and _quotes(text_of(message), names, words):
                for exchange in history.holders.get(name, ()):
                    gone.update(exchange.ids)
    return frozenset(gone)


def _quotes(text: str, names: Collection[str], words: Collection[str]) -> bool:
    return not set(names).isdisjoint(named_in(text)) or any(each in text for each in words)


def _tainted(history: History, gone: frozenset[str]) -> set[str]:
    """Summaries that may contain something of a forgotten message. A summariser sees more than it folds: the latest
    requests, perhaps the whole conversation. So a summary counts as made from everything in the session that it
    continues, and so does what an engine made without saying from what."""
    tainted: set[str] = set()
    seen: set[str] = set()
    exposed: set[str] = set()  # sessions that held something forgotten, or made of it
    for session, messages in history.transcripts.items():
        parent = history.parents.get(session)
        for message in messages:
            note = note_of(message)
            derived, name = note.get("derived_from"), note["id"]
            if name not in seen and derived is not None and (is_summary(message) or not derived):
                unknown = not derived and parent not in history.transcripts and bool(gone)
                made_of = parent in exposed or unknown or any(each in gone or each in tainted for each in derived)
                if made_of and text_of(message) not in _OURS:
                    tainted.add(name)
            seen.add(name)
            if name in tainted or history.origin(message) in gone:
                exposed.add(session)
    return tainted


def _anew(
    history: History, old: Message, gone: frozenset[str], counter: TokenCounter, redact: Redact
) -> Message | None:
    """A summary made again from the originals that stay; None if none stays."""
    own = history.origin(old)
    kept = history.originals.get(own) if own is not None and own not in gone else None
    middle = [history.originals[each] for each in _sources(history, old) if each not in gone and each != own]
    if not middle:
        return kept
    request = next((text_of(each) for each in reversed(middle) if is_request(each)), "")
    notes = fallback.write(
        request,
        "",
        middle,
        calls_by_id(middle),
        redact,
        chars=max(_LEAST_CHARS, len(text_of(old))),
        tokens=max(_LEAST_TOKENS, note_of(old).get("tokens", 0)),
        counter=counter,
    )
    ids = [note_of(each)["id"] for each in middle]
    told_of = [replace(each, text=redact(each.text)) for each in facts.carried((), middle)]
    said = Noted(standing=carried((), middle), facts=told_of)
    room = Room(_LEAST_TOKENS, counter)
    lists = Lists(listed(said.standing, redact, room), facts.listed(said.facts, Days(0.0), room))
    notes = "\n\n".join(filter(None, (notes, lists.text)))
    parts = list(archive.again(note_of(old), middle, history.order, redact))
    summary = summary_message(notes, ids, Archive().grown(middle), parts, fallback=True, kept=said)
    if kept is None:
        summary = counted(summary, counter)
        return summary if own is not None else {**summary, "role": old["role"]}
    made = merged(summary, kept, counter)
    return cast(Message, {**made, HOST: {name: value for name, value in note_of(made).items() if name != "id"}})


def _sources(history: History, summary: Message) -> list[str]:
    """The originals that a summary stands for, through all earlier summaries, in order."""
    found: set[str] = set()
    looked_at: set[str] = set()
    left = list(note_of(summary).get("derived_from", ()))
    while left:
        name = left.pop()
        message = history.messages.get(name)
        if name in looked_at or message is None:
            continue
        looked_at.add(name)
        if name in history.originals:
            found.add(name)
        else:
            left += note_of(message).get("derived_from", ())
    return [name for name in history.originals if name in found]


def _freed(message: Message, removed: Collection[str], replaced: Mapping[str, Message]) -> int:
    note = note_of(message)
    tokens = note.get("tokens", 0)
    if note["id"] in removed:
        return tokens
    made = replaced.get(note["id"])
    return 0 if made is None else tokens - note_of(made).get("tokens", 0)


def telling_words(gone: Iterable[Message], left: Iterable[Message]) -> frozenset[str]:
    """Words that only forgotten messages hold. A title or a to-do item with one of them was made from these
    messages."""
    words = {word for message in gone for word in _words(text_of(message))}
    for message in left:
        words -= _words(text_of(message))
        if not words:
            break
    return frozenset(words)


def tells(text: str, words: frozenset[str]) -> bool:
    """Whether a text has one of these words."""
    return not words.isdisjoint(_words(text))


def runs(text: str) -> list[str]:
    """The words of a text that may mean something, case-folded; in a script without spaces, whole clauses."""
    return _WORD.findall(text.casefold())


def _words(text: str) -> set[str]:
    """Words that mean something; in a script without spaces, pairs of characters."""
    words = set()
    for run in runs(text):
        words |= {run} if not _DENSE.search(run) else {run[first : first + 2] for first in range(len(run) - 1)}
    return words
