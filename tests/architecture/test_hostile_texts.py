"""Nothing that reads foreign text takes long, whatever the text: every pattern and every reader of the program, each
on texts made to slow it down, at more than any size limit lets in. What is new is found by itself."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import chain, islice
from typing import Final

import pytest

from adapters.telegram.formatting import split
from tests.support.hostile import Pattern, against, patterns, readers, slow, texts, uses

pytestmark = pytest.mark.slow

_OPERATORS: Final = ("gateway.app.", "gateway.cli.")  # rooms that read what the operator wrote
_SHORT: Final = {  # patterns and readers of texts that are known to be short, and why
    "gateway.agent.tools.read_file._COUNTS": "a pattern of the model's has 200 characters at most",
    "gateway.agent.tools.read_file._copies": "the same",
}
_SEARCHES: Final = {"search", "match", "fullmatch", "findall", "finditer", "sub", "subn", "split"}
_SHARES: Final = 4  # a reader may need nearly its second for each of the texts
PATTERNS: Final = {name: each for name, each in patterns().items() if not name.startswith(_OPERATORS)}
READERS: Final = {
    **{name: each for name, each in readers().items() if not name.startswith(_OPERATORS)},
    "adapters.telegram.formatting.split": split,
}


def _carried_out(pattern: Pattern, how: str) -> Callable[[str], object]:
    """A search of the whole text; what the program calls with `sub` finds all there is."""
    search = getattr(pattern, how if how in ("search", "match", "fullmatch") else "findall")
    return (lambda text: search(text.encode())) if isinstance(pattern.pattern, bytes) else search


@pytest.mark.parametrize("name", sorted(PATTERNS.keys() - _SHORT.keys()))
def test_no_text_makes_a_pattern_slow(name: str) -> None:
    pattern = PATTERNS[name]
    for how in uses().get(name, set()) & _SEARCHES or {"search"}:
        assert slow(_carried_out(pattern, how), chain(against(pattern), texts())) is None, how


@pytest.mark.parametrize("share", range(_SHARES))
@pytest.mark.parametrize("name", sorted(READERS.keys() - _SHORT.keys()))
def test_no_text_makes_a_reader_slow(name: str, share: int) -> None:
    def read(text: str) -> None:
        with suppress(Exception):  # whether it refuses a text is not looked at here
            READERS[name](text)

    assert slow(read, islice(texts(), share, None, _SHARES)) is None
