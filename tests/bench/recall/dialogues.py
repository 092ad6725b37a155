"""Dialogues of two people over months, and questions about them in other words than the answers.

Each life has people, places, plans and things of its own; what is said once is asked for long after, by somebody who
remembers the matter and not the wording. The kinds of questions are those of LoCoMo (Maharana and others, 2024): one
message answers (single-hop), a time is asked for (temporal), two messages answer together (multi-hop). A question in
other words shares with its answer the name of a person, whom many messages name, and no other word.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["single-hop", "temporal", "multi-hop", "other words"]
DAY: Final = 86_400.0


def _words(line: str) -> list[str]:
    return line.split()


_PEOPLE: Final = _words("Ana Boris Clara Dmitri Elena Farid Greta Hiro Ines Jonas Kemal Lucia Marta Nils Olga Pavel")
_KIN: Final = ("sister", "brother", "cousin", "neighbour", "colleague", "aunt", "old friend", "landlord")
_TOWNS: Final = _words("Porto Lisbon Graz Lyon Bergen Turin Gdansk Riga Basel Ghent Cork Malmö Split Zadar Leeds Pisa")
_PETS: Final = ("a grey cat", "two parrots", "an old dog", "a tortoise", "a rescued greyhound", "three rabbits")
_HOBBIES: Final = ("pottery", "rowing", "chess", "beekeeping", "climbing", "choir", "woodcarving", "salsa")
_TROUBLES: Final = ("a broken wrist", "a leaking roof", "a stolen bicycle", "a flat tyre", "a lost passport", "the flu")
_GIFTS: Final = ("a telescope", "a sewing machine", "a record player", "a kayak", "a fountain pen", "a hammock")
_JOBS: Final = ("a bakery", "a shipyard", "a library", "a vineyard", "a radio station", "a veterinary clinic")
_TALK: Final = (
    "The weather was {a} again, so we stayed in and cooked {b}.",
    "I watched a film about {b}, it was rather {a}.",
    "Work was {a} today, we talked about {b} for hours.",
    "Do you still like {b}? I find it a bit {a} these days.",
    "The train was {a} and somebody next to me talked about {b}.",
    "I keep reading about {b}. How {a}!",
    "Sounds {a}! Tell me more about {b} some day.",
    "Yes, I remember when we went to {town}; {b} and all that.",
    "{who} says hello, by the way. They asked about {b}.",
    "Did you hear from {who}? Last time it was all {a}.",
)
_MOODS: Final = _words("lovely dull strange loud busy quiet long funny tiring slow")
_TOPICS: Final = _words(
    "soup football elections gardens trains maps jazz neighbours holidays gifts roofs clinics pets weddings harbours "
    "bread bicycles music lessons houses rivers shoes libraries"
)
_OTHER_WORDS: Final = (
    ("{who} was made redundant after nine years at the mill.", "Why is {who} looking for work?"),
    ("{who} cannot eat anything with gluten in it.", "What must I bear in mind when {who} comes to dinner?"),
    ("They found a lump, and {who} has to go in for surgery.", "What is wrong with {who}'s health?"),
    ("{who} totalled the van on the ring road.", "Which accident did {who} have?"),
    ("The twins of {who} were born on a Sunday, both girls.", "How many children does {who} have?"),
    ("{who} sold the boat to pay back the loan.", "How did {who} get rid of the debts?"),
    ("{who} grew up by the sea and dreams of going back.", "Where did {who} spend the childhood?"),
    ("A letter came: the university takes {who} for medicine.", "What is {who} going to study?"),
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the places of the messages that answer together."""

    kind: Kind
    text: str
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Dialogue:
    """(speaker, time, text) of each message, and questions about them."""

    messages: list[tuple[Literal["user", "assistant"], float, str]]
    questions: list[Question]


@dataclass(frozen=True, slots=True)
class _Fact:
    kind: Kind
    said: tuple[str, ...]
    asked: str


def dialogue(seed: int, length: int = 600) -> Dialogue:
    """A life of `length` messages over about a year."""
    rng = random.Random(seed)
    facts = list(_facts(rng))
    places = sorted(rng.sample(range(10, length - 10), sum(len(fact.said) for fact in facts)))
    rng.shuffle(places)
    texts = {}
    questions = []
    for fact in facts:
        own = tuple(places.pop() for _ in fact.said)
        texts |= dict(zip(own, fact.said, strict=True))
        questions.append(Question(fact.kind, fact.asked, own))
    start = 1_750_000_000.0
    step = 365 * DAY / length
    messages = [
        ("user" if place % 2 == 0 else "assistant", start + place * step, texts.get(place) or _small_talk(rng))
        for place in range(length)
    ]
    return Dialogue(messages, questions)


def _small_talk(rng: random.Random) -> str:
    line = " ".join(rng.sample(_TALK, rng.randint(1, 2)))
    return line.format(a=rng.choice(_MOODS), b=rng.choice(_TOPICS), town=rng.choice(_TOWNS), who=rng.choice(_PEOPLE))


def _facts(rng: random.Random) -> Iterator[_Fact]:
    people, towns = rng.sample(_PEOPLE, len(_PEOPLE)), rng.sample(_TOWNS, len(_TOWNS))
    for who, town, number in zip(people, towns, range(len(people)), strict=False):
        kin, pet, hobby = rng.choice(_KIN), rng.choice(_PETS), rng.choice(_HOBBIES)
        trouble, gift, job = rng.choice(_TROUBLES), rng.choice(_GIFTS), rng.choice(_JOBS)
        hour, price = rng.randint(7, 19), rng.randint(20, 900)
        yield from (
            _Fact("single-hop", (f"My {kin} {who} adopted {pet} last weekend.",), f"What animals does {who} keep?"),
            _Fact("single-hop", (f"{who} has taken up {hobby} and loves it.",), f"Which hobby did {who} start?"),
            _Fact("single-hop", (f"We gave {who} {gift} for the birthday.",), f"What present did {who} get?"),
            _Fact(
                "single-hop",
                (f"The flat in {town} costs {price} a night, breakfast included.",),
                f"How much did we pay for the apartment at {town}?",
            ),
            _Fact("temporal", (f"{who} is moving to {town} next month.",), f"When did {who} move to {town}?"),
            _Fact("temporal", (f"Yesterday {who} had to deal with {trouble}.",), f"When did {who} have {trouble}?"),
        )
        said, asked = rng.choice(_OTHER_WORDS)
        yield _Fact("other words", (said.format(who=who),), asked.format(who=who))
        if number % 2 == 0:
            yield _Fact(
                "multi-hop",
                (f"{who} found a job at {job} in {town}.", f"That place in {town} opens at {hour} on weekdays."),
                f"At what time does {who}'s workplace in {town} open?",
            )
