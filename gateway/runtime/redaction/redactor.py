"""`Redactor`: what was configured, then every kind, then assignments.

Most texts hold no credential, and looking is most of what redaction costs. So a few literals are looked
for at memory's speed, and a pattern is tried only at the places where one of its own stands. What is
found is what the patterns alone would find: a test compares the two.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import quote

from gateway.runtime.redaction.assignments import ASSIGNMENT, KEY, NAMES, assigned, replace_value
from gateway.runtime.redaction.kinds import IN_RUN, KINDS, SHORTEST_RUN, Kind
from gateway.runtime.redaction.places import MARK, folded, places_of, replaced, spliced

Redact = Callable[[str], str]
"""Replaces every credential of a text: a `Redactor`, or a stand-in."""

SHORTEST_SECRET: Final = 6  # characters; replacing shorter ones would riddle ordinary text with marks

# A private key whose beginning was cut off, read backwards from its last line: that line is of any
# length if the one before it is long.
_KEY_END = re.compile(r"-----END[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_LONGEST_KEY: Final = 16_384  # characters; RSA with 16,384 bits takes about 13,000
_BREAK = r"(?:\s|[nr]\\)"
_BODY = rf"(?:(?!{_BREAK})[A-Za-z0-9+/=])"
_BREAKS = re.compile(r"\A(?:\s|\\[nr])++")
_REVERSED_KEY = re.compile(rf"{_BREAK}*+(?:{_BODY}++{_BREAK}++(?={_BODY}{{16}}))?+(?:{_BODY}{{16,}}+{_BREAK}*+)*+")


_AT: Final = "@"
_NEEDED: Final = (*NAMES, KEY, _AT)
_WITHOUT_RUN: Final = tuple(kind for kind in KINDS if not kind.run)
_WITHOUT_NEED: Final = tuple(kind for kind in _WITHOUT_RUN if not kind.needs)
_RUNS: Final = bytes(ord("x") if IN_RUN.match(chr(code)) else ord(" ") for code in range(256))
_RUN: Final = b"x" * SHORTEST_RUN
# Signs that a pattern which takes any case takes for one of our letters, though they are neither of its two.
_ODD: Final = "\u0130\u0131\u017f\u1c82\u212a"
# One letter of each literal beyond ASCII: a single sign is found a hundred times as fast as two.
_CASED: Final = "ñÑпП"
_UNCASED: Final = "码口प"


class Redactor:
    """Replaces credentials in a text by `[REDACTED]`.

    `secrets` are the configured ones; those shorter than six characters are left to the patterns.
    Its own marks stay as they are. It never raises, and takes time linear in the text.
    """

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        spellings = {
            spelling
            for secret in secrets
            if len(secret) >= SHORTEST_SECRET
            for spelling in (
                secret,
                _url_quoted(secret),
                json.dumps(secret)[1:-1],
                json.dumps(secret, ensure_ascii=False)[1:-1],
            )
        }
        # Longest first: a secret may be the beginning of another.
        self._exact = tuple(sorted((s for s in spellings if s not in MARK), key=lambda s: (-len(s), s)))

    def __call__(self, text: str) -> str:
        """`text` without credentials; everything else stays as it was."""
        for secret in self._exact:
            text = text.replace(secret, MARK)
        if not text.isascii() and any(sign in text for sign in _ODD):
            return by_patterns(text)
        given, lower = text, folded(text)
        present = [literal for literal in _NEEDED if literal in lower]
        runs, longest = _runs(text)
        # Plain loops: this is asked for every text there is.
        for kind in KINDS if longest else _WITHOUT_RUN if present else _WITHOUT_NEED:
            if kind.run > longest or (kind.needs and kind.needs not in present):
                continue
            searched = runs if kind.within else _lowered(given) if kind.foreign else lower if kind.folded else given
            for start in kind.starts:
                if start in searched:
                    text = replaced(text, _places(kind, text), kind.pattern, _replace_group)
                    break
            if kind.probe is not None and kind.probe.search(text):
                text = kind.pattern.sub(_replace_group, text)
        if KEY in present:
            text = _without_cut_keys(text)
        if present and present != [_AT]:
            text = replaced(text, assigned(folded(text)), ASSIGNMENT, replace_value)
        return text


def by_patterns(text: str) -> str:
    """`text` without credentials that were not configured, by trying every pattern everywhere."""
    for kind in KINDS:
        text = kind.pattern.sub(_replace_group, text)
    return ASSIGNMENT.sub(replace_value, _without_cut_keys(text))


def _lowered(text: str) -> str:
    """`text` in lower case as far as literals beyond ASCII need it; "" if it holds none of them."""
    if not text.isascii():
        if any(letter in text for letter in _CASED):
            return text.lower()
        if any(letter in text for letter in _UNCASED):
            return text
    return ""


def _runs(text: str) -> tuple[str, int]:
    """(the runs of a text, apart from each other, the length of the longest; 0 if there is none)."""
    marked = text.encode("ascii", "replace").translate(_RUNS)
    found: list[str] = []
    longest = end = 0
    while (start := marked.find(_RUN, end)) >= 0:
        end = marked.find(b" ", start)
        end = len(marked) if end < 0 else end
        found.append(text[start:end])
        longest = max(longest, end - start)
    return " ".join(found), longest


def _places(kind: Kind, text: str) -> list[int]:
    """Where a match of `kind` may begin, in order."""
    searched = _lowered(text) if kind.foreign else folded(text) if kind.folded else text
    return sorted(place for start in kind.starts for place in places_of(start, searched))


def _url_quoted(secret: str) -> str:
    return quote(secret.encode("utf-8", "replace"), safe="")


def _without_cut_keys(text: str) -> str:
    """Redact what stands before the end of a private key whose beginning is missing."""
    pieces: list[str] = []
    done = 0
    for end in _KEY_END.finditer(text):
        before = text[max(done, end.start() - _LONGEST_KEY) : end.start()]
        found = _REVERSED_KEY.match(before[::-1])
        key = _BREAKS.sub("", before[len(before) - found.end() :]) if found is not None else ""
        pieces += [text[done : end.start() - len(key)], MARK if key else "", end[0]]
        done = end.end()
    return "".join([*pieces, text[done:]])


def _replace_group(match: re.Match[str]) -> str:
    return spliced(match, match.start(1), match.end(1)) if match[1] else match[0]
