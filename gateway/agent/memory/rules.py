"""The rules of memory: pure steps from a memory to a memory, each with a sentence for the model.

A fact is named by words of it, or by its number: #3. Two facts are one if they say the same words, however spelled and
whichever filler words stand between. A fact that is replaced stays, dated, and is never shown as if it held.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct

from gateway.domain.chat import SessionKey
from gateway.domain.memory import LONGEST_FACT, MOST_FACTS, MOST_REPLACED, About, Fact, Memory, MemoryChange, in_order
from gateway.runtime.clock import lasting_id
from gateway.runtime.errors import ToolError
from gateway.runtime.structs import replace
from gateway.store.shared.documents import storable
from gateway.words.text import normalised, question, terms

_LOOKED_AT: Final = 20_000  # characters of a message
_NAMED: Final = 5  # facts that a sentence to the model names
_NUMBER: Final = re.compile(r"#(\d{1,6})")
_FILLERS: Final = frozenset({"a", "an", "the", "is", "are", "be", "that", "user", "person", "they", "their", "them"})

NOT_OWN: Final = (
    "The person did not say that in their own words: it was forwarded, quoted or written by someone else. It cannot "
    "be kept as a fact about them; ask them, or keep a note of your own."
)
CREDENTIAL: Final = "That seems to hold a credential, and memory goes to the model: leave the credential out."


class Source(Struct, frozen=True, kw_only=True):
    """The message that says something. `own`: the words that its sender said; `others`: the other words in it."""

    message_id: str
    session_id: str
    said_by: str
    said_by_name: str = ""
    said_at: float
    own: str = ""
    others: str = ""


class Edit(Struct, frozen=True, kw_only=True):
    """One step, and when it is made. `alone`: the scope is one person's, so facts may be about them. `origin`: whose
    words a new text is, as in a Fact."""

    scope: SessionKey
    source: Source
    now: float
    alone: bool
    redact: Callable[[str], str]
    origin: str = ""

    def add(self, memory: Memory, about: About, text: str) -> tuple[Memory, str]:
        """Remember a text. A fact that says the same is brought up to date. Raises ToolError."""
        text, about = self._checked(text, about), self._about(about)
        known = _same(memory.current(about), text)
        if known is not None:
            return self._again(memory, known, text), f"That was known already; it is up to date now: {text}"
        if len(memory.current(about)) >= MOST_FACTS:
            raise ToolError(_full(memory, about))
        return _with(memory, self._fact(about, text)), f"Remembered: {text}"

    def replace(self, memory: Memory, words: str, text: str) -> tuple[Memory, str]:
        """Replace the fact that has these words. Raises ToolError."""
        text = self._checked(text)
        try:
            old = _named(memory, words)
        except ToolError:
            if any(each.id == self._id(text) for each in memory.current()):
                return memory, f"That is remembered already: {text}"  # a crash let the call run again
            raise
        if _gist(old.text) == _gist(text):
            return self._again(memory, old, text), f"Remembered: {text}"
        self._check_own(old.about, text)
        new = _same(memory.current(old.about), text)
        if new is None:
            new = self._fact(old.about, text)
            memory = _with(memory, new)
        else:
            memory = self._again(memory, new, text)
        gone = replace(old, superseded_by=new.id, superseded_at=self.now)
        return _with(memory, gone), f"Remembered: {text}\nNo longer true: {old.text}"

    def remove(self, memory: Memory, words: str) -> tuple[Memory, str]:
        """Forget the fact that has these words. Raises ToolError."""
        old = _named(memory, words)
        return without(memory, [old]), f"Forgotten: {old.text}"

    def _about(self, about: About) -> About:
        return about if self.alone else "notes"

    def _checked(self, text: str, about: About | None = None) -> str:
        text = " ".join(storable(text).split())
        if not text:
            raise ToolError("`text` is empty: say what is to be remembered.")
        if len(text) > LONGEST_FACT:
            raise ToolError(
                f"A fact has at most {LONGEST_FACT} characters, and this has {len(text):,}: shorten it, or split it."
            )
        if self.redact(text) != text:
            raise ToolError(CREDENTIAL)
        if about is not None:
            self._check_own(self._about(about), text)
        return text

    def _check_own(self, about: About, text: str) -> None:
        """Check that a fact about a person is in that person's own words (decision 57)."""
        if about == "person" and self.source.others:
            own, others = (frozenset(terms(each[:_LOOKED_AT])) for each in (self.source.own, self.source.others))
            said = set(question(text).terms)
            if not self.source.own.strip() or len(said & (others - own)) > len(said & own):
                raise ToolError(NOT_OWN)

    def _again(self, memory: Memory, known: Fact, text: str) -> Memory:
        """A fact that is said again, in the words and by the message of now."""
        source = self.source
        if known.message_id == source.message_id and known.text == text:
            return memory
        said = self._fact(known.about, text)
        said = replace(said, id=known.id, number=known.number, made_at=known.made_at, uses=known.uses + 1)
        said = said if known.origin else replace(said, origin="")  # the person said it before
        return _with(memory, said)

    def _fact(self, about: About, text: str) -> Fact:
        source = self.source
        return Fact(
            scope=self.scope,
            id=self._id(text),
            about=about,
            text=text,
            message_id=source.message_id,
            session_id=source.session_id,
            said_by=source.said_by,
            said_by_name=source.said_by_name,
            said_at=source.said_at,
            made_at=self.now,
            origin=self.origin,
        )

    def _id(self, text: str) -> str:
        """The same whenever the same message says the same, so that a step that a crash repeats doubles nothing."""
        return lasting_id("f", self.scope, self.source.message_id, " ".join(_gist(text)))


def found(memory: Memory, words: str, limit: int) -> list[Fact]:
    """The facts that have most of these words, best first; those that hold before those that were replaced."""
    wanted = question(words)
    if not wanted.terms:
        return sorted(memory.current(), key=lambda each: -each.last)[:limit]
    scored = []
    for fact in memory.facts:
        held = _terms(fact.text)
        hits = sum(any(_holds(held, term) for term in alternatives) for alternatives in wanted.wanted)
        if hits and not fact.forgotten:
            scored.append((not fact.is_current, -hits, -fact.last, fact))
    scored.sort(key=lambda each: each[:3])
    return [fact for *_, fact in scored[:limit]]


def used(memory: Memory, facts: Iterable[Fact], now: float) -> Memory:
    """Note that these were found."""
    for fact in facts:
        memory = _with(memory, replace(fact, used_at=now, uses=fact.uses + 1))
    return memory


def without(memory: Memory, facts: Sequence[Fact]) -> Memory:
    """The memory without these facts, and without whatever they took the place of."""
    gone = {fact.id for fact in facts}
    while more := {each.id for each in memory.facts if each.superseded_by in gone} - gone:
        gone |= more
    return replace(memory, facts=tuple(each for each in memory.facts if each.id not in gone))


def barring(memory: Memory, facts: Sequence[Fact], messages: Iterable[Source], now: float) -> Memory:
    """The same, and nothing more is learned from the messages that said them, nor from `messages`."""
    if not facts:
        return memory
    scope, left = facts[0].scope, without(memory, facts)
    stays = {fact.id for fact in left.facts}
    said = [*(_source_of(fact) for fact in memory.facts if fact.id not in stays), *messages]
    for source in {source.message_id: source for source in said}.values():
        mark = Fact(
            scope=scope,
            id=lasting_id("x", scope, source.message_id),
            about="notes",
            text="",
            message_id=source.message_id,
            session_id=source.session_id,
            said_by=source.said_by,
            said_at=source.said_at,
            made_at=now,
            forgotten=True,
        )
        left = _with(left, mark)
    return left


def saying(sources: Iterable[Source], facts: Iterable[Fact]) -> list[Source]:
    """The sources whose own words are most of a fact's. Some take long to read: it is for a thread."""
    wanted = [asked for fact in facts if (asked := question(fact.text).terms)]
    found = []
    for source in sources:
        held = frozenset(terms(source.own[:_LOOKED_AT]))
        if any(sum(_holds(held, term) for term in each) > len(each) / 2 for each in wanted):
            found.append(source)
    return found


def change(scope: SessionKey, before: Memory, after: Memory) -> MemoryChange:
    """The difference between two memories of a scope. Of replaced and forgotten facts the newest are kept."""
    left = _bounded(after)
    held = {fact.id: fact for fact in before.facts}
    now = {fact.id for fact in left}
    return MemoryChange(
        scope=scope,
        version=before.version,
        last_number=after.last_number,
        kept=tuple(fact for fact in left if held.get(fact.id) != fact),
        gone=tuple(fact_id for fact_id in held if fact_id not in now),
    )


def _bounded(memory: Memory) -> list[Fact]:
    past = [fact for fact in memory.facts if not fact.is_current]
    dropped = {fact.id for fact in sorted(past, key=lambda each: each.superseded_at or each.made_at)[:-MOST_REPLACED]}
    return [fact for fact in memory.facts if fact.id not in dropped]


def _with(memory: Memory, fact: Fact) -> Memory:
    others = (each for each in memory.facts if each.id != fact.id)
    return replace(memory, facts=in_order([*others, fact]))


def _source_of(fact: Fact) -> Source:
    return Source(message_id=fact.message_id, session_id=fact.session_id, said_by=fact.said_by, said_at=fact.said_at)


def _same(facts: Iterable[Fact], text: str) -> Fact | None:
    wanted = _gist(text)
    return next((each for each in facts if _gist(each.text) == wanted), None)


@lru_cache(maxsize=4_096)  # a change compares its text with every fact of its scope
def _gist(text: str) -> tuple[str, ...]:
    """A text's words in their order, without fillers."""
    words = tuple(term for term in terms(text) if term not in _FILLERS)
    return words or (normalised(text),)


@lru_cache(maxsize=4_096)
def _terms(text: str) -> frozenset[str]:
    return frozenset(terms(text))


def _named(memory: Memory, words: str) -> Fact:
    """The only fact with these words, or with this number. Raises ToolError."""
    plain = " ".join(normalised(words).split())
    facts = memory.current()
    if number := _NUMBER.fullmatch(words.strip()):
        of_number = [each for each in facts if each.number == int(number[1])]
        if not of_number:
            raise ToolError(f"There is no fact number {number[1]} now; `search` finds what there is.")
        return of_number[0]
    if not plain:
        raise ToolError("`fact` is empty: name words of the fact that is meant.")
    exact = [each for each in facts if normalised(each.text) == plain]
    wanted = set(_gist(words))
    fitting = exact or [each for each in facts if plain in normalised(each.text)]
    fitting = fitting or [each for each in facts if wanted <= _terms(each.text)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise ToolError(f"Several facts have these words; name more of the one that is meant.{_listed(fitting)}")
    near = found(memory, words, _NAMED)
    nearest = [each for each in near if each.is_current]
    raise ToolError(f"No fact has these words.{_listed(nearest) if nearest else ' `search` finds what there is.'}")


def _full(memory: Memory, about: About) -> str:
    seldom = sorted(memory.current(about), key=lambda each: (each.uses, each.last))[:_NAMED]
    what = "facts about the person" if about == "person" else "notes"
    return (
        f"Memory is full: it holds {MOST_FACTS} {what}. Merge some with `replace`, or `remove` what matters no more, "
        f"then add this. Used least:{_listed(seldom)}"
    )


def _listed(facts: Sequence[Fact]) -> str:
    return "".join(f"\n- {fact.text}" for fact in facts[:_NAMED])


def _holds(held: frozenset[str], term: str) -> bool:
    return any(each.startswith(term[1:]) for each in held) if term.startswith("^") else term in held
