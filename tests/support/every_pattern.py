"""Credentials found by trying every pattern everywhere: what a search at the right places must find, too."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

from gateway.runtime.redaction import Redactor, redactor
from gateway.runtime.redaction.assignments import ASSIGNMENT
from gateway.runtime.redaction.cut_keys import cut_keys
from gateway.runtime.redaction.kinds import KINDS
from gateway.runtime.redaction.named import COMMANDS, NAMED
from gateway.runtime.redaction.places import Span

ALL_KINDS = (*KINDS, *COMMANDS, *NAMED)


def by_patterns(text: str) -> str:
    """`text` without credentials that were not configured."""
    with patch.object(redactor, "_found", _everywhere):
        return Redactor()(text)


def _everywhere(text: str) -> Iterator[Span]:
    for kind in ALL_KINDS:
        yield from redactor._groups(kind, kind.pattern.finditer(text))
    yield from cut_keys(text)
    yield from redactor._values(ASSIGNMENT.finditer(text))
