"""Words that people say where others ask: "what do I drive" is answered by "my car is a Volvo".

The tables beside this module are our own, about people's lives, since most of what is asked without a shared word is
about one's home, work, family, health, food, money, journeys and things. Each line is a field, "heads: members". In a
question, a head stands for all words of its line, and a member for the heads alone: tomatoes answer a question about
vegetables, but carrots do not answer one about tomatoes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from typing import Final

from gateway.words.languages import ENGLISH, is_stop, stems

_KNOWN: Final = (ENGLISH, "german")


@lru_cache(maxsize=8)
def _fields(language: str) -> dict[str, tuple[str, ...]]:
    """For each term the terms that may stand for it."""
    found: dict[str, dict[str, None]] = {}
    if language not in _KNOWN:
        return {}
    table = (files("gateway.words") / f"related_{language}.txt").read_text(encoding="utf-8")
    for line in table.splitlines():
        heads, _, members = line.partition(":")
        main, rest = (_terms(part.replace("-", " ").replace("'", " ").split(), language) for part in (heads, members))
        for term in main:
            found.setdefault(term, {}).update(dict.fromkeys([*main, *rest]))
        for term in rest:
            found.setdefault(term, {}).update(dict.fromkeys(main))
    return {term: tuple(each for each in others if each != term) for term, others in found.items()}


def _terms(words: Iterable[str], language: str) -> list[str]:
    return [term for word in words if len(word) > 1 and not is_stop(word) for term in stems(word, language)]


def kin(terms: Iterable[str], language: str) -> tuple[str, ...]:
    """The terms that may stand for a word, which is given by its terms."""
    fields = _fields(language)
    return tuple(dict.fromkeys(other for term in terms for other in fields.get(term, ())))
