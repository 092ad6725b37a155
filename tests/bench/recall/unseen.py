"""Questions about talks that nobody had in sight while the search was made (`unseen.yaml`): as `asked`, with the same
measures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import yaml

from tests.bench.recall.asked import Asked, Talk

TALKS: Final = Path(__file__).with_name("unseen.yaml")
KINDS: Final = ("friends", "friends' slips", "friends' lists", "memories", "before a change", "quoted")
_LENGTH: Final = 600  # messages


def talks(seed: int) -> Iterator[Talk]:
    """The talks, with everything in places of their own."""
    for name, given in yaml.safe_load(TALKS.read_text(encoding="utf-8")).items():
        yield _talk(name, given, Random(seed))


def _talk(name: str, given: Mapping[str, Any], rng: Random) -> Talk:
    names = given.get("names", [])
    texts = [_by(names and names[place % 2], _line(given, rng)) for place in range(_LENGTH)]
    questions = list[Asked]()
    needed = sum(len(_all(fact)) for fact in given["facts"])
    free = rng.sample(range(5, _LENGTH - 5), needed)
    for fact in given["facts"]:
        said = _all(fact)
        places = sorted(free.pop() for _ in said)
        for place, text in zip(places, said, strict=True):
            texts[place] = _by(fact.get("who", ""), text)
        kind = "before a change" if fact.get("was") else "friends' lists" if fact.get("with") else name
        evidence = tuple(places[:1]) if fact.get("was") else tuple(places)
        questions.append(Asked(kind, fact["asked"], evidence))
        if fact.get("slips"):
            questions.append(Asked("friends' slips", fact["slips"], evidence))
        if kind == name and (phrase := _phrase(fact["said"][0])):
            mark = "“{}”" if names else "「{}」"
            asked = f"What was that about {mark.format(phrase)}?" if names else f"{mark.format(phrase)}是什么时候说的？"
            questions.append(Asked("quoted", asked, evidence))
    return Talk(_distinct(texts), questions)


def _all(fact: Mapping[str, Any]) -> Sequence[str]:
    return [*fact["said"], *fact.get("with", ()), *fact.get("then", ())]


def _by(who: str, text: str) -> str:
    return f"[{who}] {text}" if who else text


def _line(given: Mapping[str, Any], rng: Random) -> str:
    slots = {name: rng.choice(given[name]) for name in "abn"}
    return str(rng.choice(given["talk"])).format_map(slots)


def _phrase(text: str) -> str:
    """Some words from the middle of a text, as somebody quotes it."""
    words = text.split(" ")
    if len(words) < 8:
        return text[2:8] if len(words) == 1 else ""
    return " ".join(words[len(words) // 2 : len(words) // 2 + 3]).strip(".,!?")


def _distinct(texts: Sequence[str]) -> list[str]:
    """The texts, where one stands twice with its place behind it, for what is found is known again by its text."""
    seen = set[str]()
    made = []
    for place, text in enumerate(texts):
        made.append(f"{text} {place}" if text in seen else text)
        seen.add(text)
    return made
