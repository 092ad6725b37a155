"""Everything under a key that contains some words. No index is used: every message, file, rule, fact and reminder is
read, because forgetting must miss nothing. People seldom ask for it, and it runs in a thread."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from msgspec import Struct

from gateway.context.forgetting import Exchange, History
from gateway.domain.memory import Fact
from gateway.domain.message import HOST, Message
from gateway.domain.reminder import Reminder
from gateway.domain.rule import Pin
from gateway.words.text import Holds

T = TypeVar("T")

Note = tuple[str, str]  # its folder in the store, and its name there

SHELF: Final = "shelf"  # a folder: what people made of the list of their conversations

_UNSAID: Final = frozenset(
    {
        *("role", "type", "id", "tool_call_id", "event", "parts", "place", "person", "reminded"),
        *("derived_from", "kind", "ref", "preview", "words_ref", "frames", "digest", "mime", "api", "model"),
    }
)  # values of a message that nobody said


class Copies(Struct, frozen=True, kw_only=True):
    """What exists besides a key's messages and may repeat them. `files`: by ref, which words of the question each
    holds, by place. `notes`: texts by folder and name."""

    files: Mapping[str, frozenset[int]]
    reminders: Sequence[Reminder] = ()
    facts: Sequence[Fact] = ()
    rules: Sequence[Pin] = ()
    notes: Mapping[Note, str]


class Holding(Struct, frozen=True, kw_only=True):
    """What holds all of some words or, if nothing does, some of them (`whole` False). `exchanges` whose requests hold
    them come first, newer before older; `messages` belong to no exchange, or were made from others."""

    words: Holds
    whole: bool
    exchanges: Sequence[Exchange]
    messages: frozenset[str]
    files: frozenset[str]  # their refs
    reminders: Sequence[Reminder]
    facts: Sequence[Fact]
    rules: Sequence[Pin]
    notes: Sequence[Note]
    others: int = 0  # exchanges that someone else began, which are not among these

    def holds(self, text: str) -> bool:
        """Whether a text holds all the words."""
        return self.words.held(text) == self.words.every

    @property
    def copies(self) -> Mapping[str, int]:
        """Return the number of things beside messages, by kind."""
        counts = {
            "rules": len(self.rules),
            "files": len(self.files),
            "facts": sum(each.is_current for each in self.facts),
            "reminders": len(self.reminders),
            **counted_notes(self.notes),
        }
        return {what: count for what, count in counts.items() if count}

    def __bool__(self) -> bool:
        return bool(self.exchanges or self.messages or self.copies)


def counted_notes(notes: Sequence[Note]) -> dict[str, int]:
    """How many of these are personas, names and folders that people gave to conversations, and others."""
    personas = sum(name == "persona" for _, name in notes)
    names = sum(folder.startswith(f"{SHELF} ") for folder, _ in notes)
    return {"personas": personas, "names": names, "notes": len(notes) - personas - names}


def holding(words: Holds, history: History, copies: Copies, refs: Callable[[Message], Iterable[str]]) -> Holding:
    """Find what holds these words. `refs`: the files that a message came with, by their refs."""
    files = copies.files
    shown = {name: [*refs(each)] for name, each in history.messages.items()}
    nothing = frozenset[int]()
    messages = {
        name: nothing.union(*map(words.held, said_anywhere(each)), *(files.get(ref, nothing) for ref in shown[name]))
        for name, each in history.messages.items()
    }
    ordered = sorted(history.exchanges, key=lambda each: len(messages[each.ids[0]]))[::-1]
    exchanges = [(each, nothing.union(*map(messages.__getitem__, each.ids))) for each in ordered]
    alone = [(name, held) for name, held in messages.items() if name not in history.holders]
    loose = {ref: held for ref, held in files.items() if not any(ref in some for some in shown.values())}
    reminders = [(each, words.held(f"{each.text}\n{each.said}")) for each in copies.reminders]
    facts = [(each, words.held(each.text)) for each in copies.facts]
    rules = [(each, words.held(each.text)) for each in copies.rules]
    notes = [(note, words.held(text)) for note, text in copies.notes.items()]
    units = (exchanges, alone, loose.items(), reminders, facts, rules, notes)
    whole = any(held == words.every for unit in units for _, held in unit)
    least = len(words.every) if whole else 1

    def holders(unit: Iterable[tuple[T, frozenset[int]]]) -> list[T]:
        found = [(each, len(held)) for each, held in unit if held and len(held) >= least]
        return [each for each, _ in sorted(found, key=lambda pair: -pair[1])]  # of equal ones the order stays

    return Holding(
        words=words,
        whole=whole,
        exchanges=holders(exchanges),
        messages=frozenset(holders(alone)),
        files=frozenset(holders(files.items())),
        reminders=holders(reminders),
        facts=holders(facts),
        rules=holders(rules),
        notes=holders(notes),
    )


def said_anywhere(message: Message) -> Iterator[str]:
    """Every text in a message: content, thoughts, the arguments of calls, the host's note."""
    note = message.get(HOST, {})
    yield from _texts({**message, HOST: {}, "tool_calls": [], "name": ""})
    yield from _texts(note)
    for call in message.get("tool_calls", ()):
        arguments = call["function"]["arguments"]
        try:
            yield from _texts(json.loads(arguments))
        except ValueError:
            yield arguments


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, part in value.items():
            if name not in _UNSAID:
                yield from _texts(part)
    elif isinstance(value, Sequence):
        for part in value:
            yield from _texts(part)
