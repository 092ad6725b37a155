"""Facts that outlive sessions, each with the message that said it.

A scope is the owner of facts, written as a key: a direct chat, one person in a group, or a conversation that several
people share. No fact is ever seen in another scope."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from msgspec import Struct

from gateway.domain.chat import ChatType, SessionKey
from gateway.runtime.structs import replace

About = Literal["person", "notes"]

MOST_FACTS: Final = 200  # of a kind in a scope, without those that were replaced
MOST_REPLACED: Final = 200  # of a scope; the oldest go first
LONGEST_FACT: Final = 300  # characters


class Fact(Struct, frozen=True, kw_only=True):
    """One thing that is remembered.

    `about`: the person, or anything else, which is the bot's own note. `message_id`, `session_id`, `said_by` (the
    platform's id of a person, "" if unknown) and `said_at` describe the message that said it. `used_at`: when a search
    last found the fact, `uses`: how often it was found or said again. A fact that no longer holds names its successor
    (`superseded_by`) and the time. Times are seconds since the epoch. `number`: by which people name the fact, unique
    in the scope for good; 0: none yet. `origin`: whose words it is, in a few words, if the bot read it somewhere; "" if
    the person said it. A fact with `forgotten` has no text: a person had its message forgotten, so nothing must be
    learned from that message again.
    """

    scope: SessionKey
    id: str
    about: About
    text: str
    message_id: str
    session_id: str
    said_by: str
    said_by_name: str = ""
    said_at: float
    made_at: float
    used_at: float = 0.0
    uses: int = 0
    superseded_by: str | None = None
    superseded_at: float | None = None
    forgotten: bool = False
    number: int = 0
    origin: str = ""

    @property
    def is_current(self) -> bool:
        """Whether the fact holds now."""
        return self.superseded_by is None and not self.forgotten

    @property
    def last(self) -> float:
        """Return the moment when the fact was last said or used."""
        return max(self.said_at, self.used_at)


class Memory(Struct, frozen=True, kw_only=True):
    """The facts of a scope, oldest first. `version` rises with every change. `last_number`: the highest number that a
    fact ever had, as far as the store knows."""

    facts: tuple[Fact, ...] = ()
    version: int = 0
    last_number: int = 0

    def current(self, about: About | None = None) -> list[Fact]:
        """The facts that hold, of one kind or of both."""
        return [each for each in self.facts if each.is_current and about in (None, each.about)]

    def listed(self) -> list[Fact]:
        """The facts that hold, as people are shown them."""
        return self.current("person") + self.current("notes")

    def numbered(self) -> Memory:
        """The same, with a new number for each fact that holds and has none."""
        last = max((self.last_number, *(each.number for each in self.facts)))
        bare = [each.id for each in self.listed() if not each.number]
        given = {fact_id: number for number, fact_id in enumerate(bare, last + 1)}
        facts = tuple(replace(each, number=given[each.id]) if each.id in given else each for each in self.facts)
        return replace(self, facts=facts, last_number=last + len(given))

    @property
    def barred(self) -> frozenset[str]:
        """The messages of which nothing may be remembered any more."""
        return frozenset(each.message_id for each in self.facts if each.forgotten)


class MemoryChange(Struct, frozen=True, kw_only=True):
    """A change of the memory of `scope`, if it still has this `version`: the facts to write, the ids of those to
    remove, and the highest number given away so far."""

    scope: SessionKey
    version: int
    last_number: int = 0
    kept: tuple[Fact, ...] = ()
    gone: tuple[str, ...] = ()


def is_alone(key: SessionKey, chat_type: ChatType) -> bool:
    """Whether only one person talks to the bot under this key."""
    return chat_type == "direct" or key.user is not None


def scope_of(key: SessionKey, chat_type: ChatType) -> SessionKey:
    """Return the owner of a conversation's memory. Threads of a direct chat, and those of one person in a group, have
    one memory; a conversation that several people share has its own."""
    alone = is_alone(key, chat_type)
    return SessionKey(platform=key.platform, chat=key.chat, user=key.user) if alone else key


def in_order(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Facts as they came to be remembered."""
    return tuple(sorted(facts, key=lambda each: (each.made_at, each.id)))
