"""Nothing that reads foreign text takes long, whatever the text: every pattern and every reader of the program, each
on texts made to slow it down, at more than any size limit lets in. What is new is found by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain, islice
from typing import Final, TypeVar

import pytest

from adapters.telegram.formatting import split
from tests.support.hostile import Pattern, against, patterns, readers, slow, texts, uses

pytestmark = pytest.mark.slow

T = TypeVar("T")

_OPERATORS: Final = ("gateway.app.", "gateway.cli.")  # rooms that read what the operator wrote
_SHORT: Final = {  # patterns and readers of texts that are known to be short, and why
    "gateway.agent.tools.read_file._COUNTS": "a pattern of the model's has 200 characters at most",
    "gateway.agent.tools.read_file._copies": "the same",
}
_SEARCHES: Final = {"search", "match", "fullmatch", "findall", "finditer", "sub", "subn", "split"}
_SHARES: Final = 200  # of the work, each a test: what is to be read is found only when a test runs


def _of_strangers(found: dict[str, T]) -> dict[str, T]:
    """Return the patterns that read texts of strangers, of any length."""
    return {name: each for name, each in found.items() if not name.startswith(_OPERATORS) and name not in _SHORT}


def _share(all_of_them: Iterable[T], number: int) -> Iterator[T]:
    return islice(all_of_them, number, None, _SHARES)


def _carried_out(pattern: Pattern, how: str) -> Callable[[str], object]:
    """A search of the whole text; what the program calls with `sub` finds all there is."""
    search = getattr(pattern, how if how in ("search", "match", "fullmatch") else "findall")
    return (lambda text: search(text.encode())) if isinstance(pattern.pattern, bytes) else search


@pytest.mark.parametrize("share", range(_SHARES))
def test_no_text_makes_a_pattern_slow(share: int) -> None:
    found = {}
    for name, pattern in _share(sorted(_of_strangers(patterns()).items()), share):

        def candidates(size: int, pattern: Pattern = pattern) -> Iterator[str]:
            return chain(against(pattern, size), texts(size))

        for how in uses().get(name, set()) & _SEARCHES or {"search"}:
            found[name, how] = slow(_carried_out(pattern, how), candidates)
    assert found
    assert {name: text for name, text in found.items() if text is not None} == {}


@pytest.mark.parametrize("share", range(_SHARES))
def test_no_text_makes_a_reader_slow(share: int) -> None:
    found = {}
    for name, reader in {**_of_strangers(readers()), "adapters.telegram.formatting.split": split}.items():

        def read(text: str, reader: Callable[[str], object] = reader) -> None:
            with suppress(Exception):  # whether it refuses a text is not looked at here
                reader(text)

        found[name] = slow(read, lambda size: _share(texts(size), share))
    assert found
    assert {name: text for name, text in found.items() if text is not None} == {}
