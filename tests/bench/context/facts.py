"""Facts for a conversation, each unlike everything else in it.

A fact is a value under a subject ("the Kestrel export folder" is "/srv/kestrel/out-4181"). Both are
unlike any other of the conversation, so that a value that stands in a request can only have come from
where it was said, and the words of its subject find it in the store.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Final, Literal

from tests.bench.context.wording import CHANGES, CODENAMES, DECISIONS, RULES, STATEMENTS, THINGS, UNITS

Kind = Literal[
    "path",
    "url",
    "id",
    "measure",
    "code",
    "name",
    "decision",
    "rule",
    "letters",
    "order",
    "item",
    "short",
    "person",
    "day",
    "price",
]
Speaker = Literal["user", "assistant", "result", "dump"]

IDENTIFIERS: Final[tuple[Kind, ...]] = ("path", "url", "id", "measure", "code", "name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something said that matters later.

    `value` is what must stand in a request letter for letter; of a decision or a rule it is the clause
    that says it. `speaker`: a person, the model, a tool's short result or a long one full of others.
    `former`: the value that this one took the place of.
    """

    number: int
    kind: Kind
    language: str
    subject: str
    value: str
    statement: str
    speaker: Speaker
    former: str = ""


class Facts:
    """Makes facts, no two of which share a subject or a value."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._made = 0
        self._values: set[str] = set()
        self._subjects = {language: self._shuffled(language) for language in CODENAMES}

    def identifier(self, language: str, speaker: Speaker) -> Fact:
        """A value that nobody could guess."""
        kind = self._rng.choice(IDENTIFIERS)
        codename, things = next(self._subjects[language])
        subject = f"{codename} {things[kind]}"
        value = self._value(kind, language, codename)
        said = self._rng.choice(STATEMENTS[language]).format(subject=subject, value=value)
        return self._fact(kind, language, subject, value, said, speaker)

    def changed(self, old: Fact) -> Fact:
        """The value that takes the place of `old`'s, in words that a person would use for it."""
        value = self._value(old.kind, old.language, old.subject.split()[0])
        said = self._rng.choice(CHANGES[old.language]).format(subject=old.subject, value=value, former=old.value)
        return self._fact(old.kind, old.language, old.subject, value, said, "user", former=old.value)

    def decision(self, language: str) -> Fact:
        """Return a decision and the words that made it."""
        return self._clause("decision", language, DECISIONS[language])

    def rule(self, language: str) -> Fact:
        """Return a rule: an order or a prohibition of a person."""
        return self._clause("rule", language, RULES[language])

    def _clause(self, kind: Kind, language: str, forms: tuple[tuple[str, str], ...]) -> Fact:
        codename, _ = next(self._subjects[language])
        sentence, clause = self._rng.choice(forms)
        clause = clause.format(name=codename)
        return self._fact(kind, language, codename, clause, sentence.format(clause=clause), "user")

    def _fact(
        self, kind: Kind, language: str, subject: str, value: str, said: str, speaker: Speaker, former: str = ""
    ) -> Fact:
        self._made += 1
        return Fact(
            number=self._made,
            kind=kind,
            language=language,
            subject=subject,
            value=value,
            statement=said,
            speaker=speaker,
            former=former,
        )

    def _value(self, kind: Kind, language: str, codename: str) -> str:
        while True:
            value = _VALUES[kind](self._rng, _latin(codename), language)
            if value not in self._values:
                self._values.add(value)
                return value

    def _shuffled(self, language: str) -> Iterator[tuple[str, dict[str, str]]]:
        """Every name with every thing of each kind, in an order of the seed's."""
        rounds = [
            (name, {kind: things[turn] for kind, things in THINGS[language].items()})
            for turn in range(min(map(len, THINGS[language].values())))
            for name in CODENAMES[language]
        ]
        self._rng.shuffle(rounds)
        yield from rounds


def _latin(codename: str) -> str:
    """A code name as it stands in paths and addresses."""
    return codename.lower() if codename.isascii() else f"p{sum(map(ord, codename)) % 89 + 10}"


def _path(rng: Random, name: str, language: str) -> str:
    folder, ending = rng.choice(("srv", "opt", "data", "home/ops")), rng.choice(("csv", "yaml", "log", "sql", "toml"))
    return f"/{folder}/{name}/{rng.choice(('out', 'stage', 'jobs', 'old'))}-{rng.randrange(1000, 9999)}.{ending}"


def _url(rng: Random, name: str, language: str) -> str:
    page = f"{rng.choice(('v2', 'board', 'jobs'))}/{rng.randrange(100, 999)}"
    return f"https://{name}-{rng.randrange(10, 99)}.example.com/{page}"


def _id(rng: Random, name: str, language: str) -> str:
    form = rng.randrange(3)
    if form == 0:
        return f"{name[:3].upper()}-{rng.randrange(10_000, 99_999)}"
    if form == 1:
        return f"{rng.choice(('inv', 'ord', 'bld'))}_{rng.getrandbits(32):08x}"
    return f"#{rng.randrange(10_000, 99_999)}"


def _measure(rng: Random, name: str, language: str) -> str:
    return f"{rng.randrange(101, 9_990)} {rng.choice(UNITS[language])}"


def _code(rng: Random, name: str, language: str) -> str:
    return rng.choice((f"E{rng.randrange(4_000, 9_999)}", f"ERR_{name.upper()}_{rng.randrange(100, 999)}"))


def _name(rng: Random, name: str, language: str) -> str:
    return f"{rng.choice(('enable', 'use', 'retry', 'fast'))}_{name}_{rng.randrange(100, 999)}"


_VALUES: Final = {"path": _path, "url": _url, "id": _id, "measure": _measure, "code": _code, "name": _name}


def stands(text: str, value: str) -> bool:
    """Say whether `value` stands alone in `text`: not as part of a longer word or number."""
    start = text.find(value)
    while start >= 0:
        around = (text[start - 1 : start] + value[0], value[-1] + text[start + len(value) : start + len(value) + 1])
        if not any(len(pair) == 2 and pair.isascii() and pair.isalnum() for pair in around):
            return True
        start = text.find(value, start + 1)
    return False
