"""Nothing that reads foreign text takes long, whatever the text: every pattern and every reader of the program, each
on texts made to slow it down, at more than any size limit lets in. What is new is found by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC
from functools import cache
from itertools import chain
from typing import Final

import pytest

from adapters.discord import formatting as discord
from adapters.matrix import formatting as matrix
from adapters.slack import formatting as slack
from adapters.telegram import formatting as telegram
from adapters.whatsapp import formatting as whatsapp
from gateway.delivery.markdown.characters import split_text
from gateway.domain import when
from gateway.runtime.redaction import Redactor
from tests.support.hostile import LONGEST, Pattern, against, patterns, readers, slow, texts, uses

pytestmark = pytest.mark.slow

Work = Callable[[str], object]
Candidates = Callable[[int], Iterable[str]]

_OPERATORS: Final = ("gateway.app.", "gateway.cli.")  # rooms that read what the operator wrote
_PART: Final = 6_000  # characters of Markdown that are read at once
_CUTS: Final = {  # what is given shorter texts, the longest of them in characters, and why
    **dict.fromkeys(
        (
            "adapters.telegram.formatting.",
            "adapters.discord.formatting.",
            "adapters.matrix.formatting.",
            "adapters.slack.formatting.",
            "adapters.whatsapp.formatting.",
            "gateway.delivery.markdown.",
        ),
        (_PART, "Markdown is read in parts of one message, and beyond its end by what is looked at for a cut"),
    ),
    **dict.fromkeys(
        (
            "adapters.telegram.formatting.split",
            "adapters.discord.formatting.split",
            "adapters.matrix.formatting.split",
            "adapters.slack.formatting.split",
            "adapters.whatsapp.formatting.split",
        ),
        (5_000, "a longer answer may take longer: this is done aside, and given up after a second (`Outbox.written`)"),
    ),
    **dict.fromkeys(
        ("gateway.providers.errors.", "gateway.providers.features.", "gateway.providers.overflow."),
        (20_000, "so much of a refusal's body is looked at"),
    ),
    "gateway.providers.errors._read": (LONGEST, "here it is cut"),
    "gateway.providers.offline.replies.": (2_000, "in so much of a request a rule is looked for"),
    **dict.fromkeys(
        ("gateway.agent.tools.read_file._COUNTS", "gateway.agent.tools.read_file._copies"),
        (200, "a pattern of the model's has 200 characters at most"),
    ),
    "gateway.domain.when.": (120, "a time is looked for in so much of each end of a text"),
    **dict.fromkeys(
        ("gateway.domain.when.reading.read", "gateway.domain.when.reading._at", "gateway.domain.when.reading._marked"),
        (LONGEST, "here the two ends are taken"),
    ),
}
_REDACT: Final = Redactor(("a configured secret",))
_DOORS: Final[dict[str, Work]] = {  # readers that need more than a text, or are no functions
    "adapters.telegram.formatting.split": telegram.split,
    "adapters.discord.formatting.split": discord.split,
    "adapters.matrix.formatting.split": matrix.split,
    "adapters.slack.formatting.split": slack.split,
    "adapters.whatsapp.formatting.split": whatsapp.split,
    "gateway.delivery.markdown.characters.split_text": lambda text: split_text(text, 4_096, "utf16"),
    "gateway.runtime.redaction.Redactor": _REDACT,
    "gateway.runtime.redaction.Redactor, Turkish": lambda text: _REDACT(f"ı{text}"),  # a letter of many cases
    "gateway.domain.when.reading.read": lambda text: when.read(text, 0.0, UTC),
}
_SEARCHES: Final = {"search", "match", "fullmatch", "findall", "finditer", "sub", "subn", "split"}
_PATTERN_SHARES: Final = 40  # of the patterns, each a test: so two processes share the work
_READER_SHARES: Final = 40


@cache
def _works_of_patterns() -> dict[str, tuple[Work, Candidates]]:
    """Return each search that the program does with a pattern, by its name."""
    found = {}
    for name, pattern in patterns().items():

        def candidates(size: int, pattern: Pattern = pattern) -> Iterator[str]:
            return chain(against(pattern, size), texts(size))

        for how in uses().get(name, set()) & _SEARCHES or {"search"}:
            found[f"{name} {how}"] = (_carried_out(pattern, how), candidates)
    return found


def _carried_out(pattern: Pattern, how: str) -> Work:
    """A search of the whole text; what the program calls with `sub` finds all there is."""
    search = getattr(pattern, how if how in ("search", "match", "fullmatch") else "findall")
    return (lambda text: search(text.encode())) if isinstance(pattern.pattern, bytes) else search


@cache
def _works_of_readers() -> dict[str, tuple[Work, Candidates]]:
    """Return each function that reads a text, by its name."""
    found: dict[str, tuple[Work, Candidates]] = {}
    for name, reader in {**readers(), **_DOORS}.items():

        def read(text: str, reader: Work = reader) -> None:
            with suppress(Exception):  # whether it refuses a text is not looked at here
                reader(text)

        found[name] = read, texts
    return found


def _slow_ones(works: dict[str, tuple[Work, Candidates]], number: int, shares: int) -> dict[str, str]:
    """Return what is slow of a share, and on which text."""
    share = sorted(name for name in works if not name.startswith(_OPERATORS))[number::shares]
    assert share
    found = ((name, slow(*works[name], size=_longest(name))) for name in share)
    return {name: text for name, text in found if text is not None}


def _longest(name: str) -> int:
    """Return the length of the longest text for a pattern or a reader. The longest name of the table decides."""
    fitting = [begin for begin in _CUTS if name.startswith(begin)]
    return _CUTS[max(fitting, key=len)][0] if fitting else LONGEST


@pytest.mark.parametrize("share", range(_PATTERN_SHARES))
def test_no_text_makes_a_pattern_slow(share: int) -> None:
    assert _slow_ones(_works_of_patterns(), share, _PATTERN_SHARES) == {}


@pytest.mark.parametrize("share", range(_READER_SHARES))
def test_no_text_makes_a_reader_slow(share: int) -> None:
    assert _slow_ones(_works_of_readers(), share, _READER_SHARES) == {}


def test_each_cut_is_of_something_that_reads() -> None:
    named = {*_works_of_patterns(), *_works_of_readers()}
    assert [begin for begin in _CUTS if not any(name.startswith(begin) for name in named)] == []
