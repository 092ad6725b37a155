"""The secrets of the configuration, in every spelling in which a text may quote them."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from urllib.parse import quote

from gateway.runtime.redaction.places import MARK, Span, cut, places_of

SHORTEST_SECRET: Final = 6  # characters; replacing shorter ones would riddle ordinary text with marks
_SHORTEST_PIECE: Final = 12  # characters of a secret that give a piece of it away


class Configured:
    """Finds secrets exactly: plain, as JSON, in an address, in HTML, in base64 and in hexadecimal.

    A long piece of a secret, at least half of it, is found as well: providers quote a key and cut the quotation.
    """

    def __init__(self, secrets: Sequence[str]) -> None:
        kept = [secret for secret in secrets if len(secret) >= SHORTEST_SECRET]
        spellings = {spelling for secret in kept for spelling in _spellings(secret)}
        # Longest first: a secret may be the beginning of another.
        self._exact = tuple(sorted((s for s in spellings if s and s not in MARK), key=lambda s: (-len(s), s)))
        self._long = tuple(secret for secret in kept if len(secret) >= 2 * _SHORTEST_PIECE)

    def removed(self, text: str) -> str:
        """`text` with a mark in place of each secret."""
        for secret in self._exact:
            text = text.replace(secret, MARK)
        for secret in self._long:
            text = cut(text, _pieces(text, secret))
        return text

    def found(self, text: str) -> Iterator[Span]:
        """Yield the spans of secrets in a text."""
        for secret in self._exact:
            for place in places_of(secret, text):
                yield place, place + len(secret)


def _pieces(text: str, secret: str) -> Iterator[Span]:
    """Yield the spans of a secret's first or last half, with as much more of the secret as stands beside it."""
    half = len(secret) // 2
    for place in places_of(secret[:half], text):
        yield place, place + _alike(secret, text[place : place + len(secret)])
    for place in places_of(secret[-half:], text):
        end = place + half
        yield end - _alike(secret[::-1], text[max(0, end - len(secret)) : end][::-1]), end


def _alike(one: str, other: str) -> int:
    """The number of characters with which both texts begin."""
    differ = (at for at, (here, there) in enumerate(zip(one, other, strict=False)) if here != there)
    return next(differ, min(len(one), len(other)))


def _spellings(secret: str) -> Iterable[str]:
    held = secret.encode("utf-8", "replace")
    quoted = quote(held, safe="")
    yield from (secret, quoted, quoted.lower(), quote(held, safe="/"), quoted.replace("%20", "+"))
    yield from (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    yield from (html.escape(secret), html.escape(secret, quote=False))
    if len(held) < _SHORTEST_PIECE:
        return
    yield from (held.hex(), held.hex().upper())
    for offset in range(3):  # in base64, the place within a longer text changes every sign
        whole = base64.b64encode(bytes(offset) + held)
        inner = whole[(0, 2, 3)[offset] : len(whole) - (0, 3, 2)[(offset + len(held)) % 3]]
        yield from (inner.decode(), inner.decode().replace("+", "-").replace("/", "_"))
