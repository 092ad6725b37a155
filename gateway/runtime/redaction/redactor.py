"""`Redactor`: configured secrets first, then every kind, and assignments.

Most texts hold no credential, and looking is most of what redaction costs. So a few literals are looked for at
memory's speed, and a pattern is tried only at the places where one of its own stands. The finds are those of the
patterns alone: a test compares the two."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from gateway.runtime.redaction.assignments import ASSIGNMENT, KEY, NAMES, assigned, value_of
from gateway.runtime.redaction.configured import SHORTEST_SECRET, Configured
from gateway.runtime.redaction.cut_keys import cut_keys
from gateway.runtime.redaction.encodings import decoded, original
from gateway.runtime.redaction.kinds import KINDS
from gateway.runtime.redaction.named import COMMANDS, DASH, NAMED, OPTION, PASS
from gateway.runtime.redaction.places import IN_RUN, MARK, SHORTEST_RUN, Kind, Span, cut, folded, matches, places_of

Redact = Callable[[str], str]
"""Replaces every credential of a text: a `Redactor`, or a stand-in."""

__all__ = ["SHORTEST_SECRET", "Redact", "Redactor"]

_PASSES: Final = 4  # two are enough for nearly every text that has credentials, and one for any other
# A sign takes a fiftieth of the time of a word. The rarer ones come first, because a literal needs the first it holds.
_NEEDED: Final = ("", "~", "$", "&", "@", *NAMES, KEY, "hook", "?", "=", "/", ":", "_", "-")
_ASSIGNED: Final = (*NAMES, KEY)
_PROBED: Final = tuple(kind for kind in KINDS if kind.probe is not None)
_RUNS: Final = bytes(ord("x") if IN_RUN.match(chr(code)) else ord(" ") for code in range(256))
_RUN: Final = b"x" * SHORTEST_RUN
_COMMON: Final = string.ascii_lowercase.encode() + string.whitespace.encode()
# Signs that a pattern which takes any case takes for one of our letters, though they are neither of its two.
_ODD: Final = "\u0130\u0131\u017f\u1c82\u212a"
_PLAIN: Final = str.maketrans(_ODD, "iis\u043ek")  # the letters that such a pattern takes them for
# One letter of each literal beyond ASCII: a single sign is found a hundred times as fast as two.
_CASED: Final = "ñÑпПşŞłŁöÖóÓậẬκΚ"
_UNCASED: Final = "码碼口पパ비كסร"


class _Literal(Struct, frozen=True):
    """`text`, with which the `kinds` begin, and their shortest run. `rest`: the literal without small letters."""

    text: str
    rest: str
    run: int
    kinds: tuple[Kind, ...]


_Literals = tuple[tuple[str, tuple[_Literal, ...]], ...]
"""Literals by what a text with one of them holds, too: one of `_NEEDED`."""


def _literals(kinds: Iterable[Kind], wanted: Callable[[Kind], bool] = bool) -> _Literals:
    found: dict[tuple[str, str], list[Kind]] = {}
    for kind in filter(wanted, kinds):
        for start in kind.starts:
            needs = kind.needs or next((each for each in _NEEDED[1:] if each in start), "")
            found.setdefault((needs, start), []).append(kind)
    grouped: dict[str, list[_Literal]] = {}
    for (needs, start), given in found.items():
        literal = _Literal(start, _rest(start), min(kind.run for kind in given), tuple(given))
        grouped.setdefault(needs, []).append(literal)
    return tuple((needs, tuple(given)) for needs, given in grouped.items())


def _rest(text: str) -> str:
    """What is left of a text without blanks and small letters: not much of most texts, so it is quickly searched. What
    stands in the text side by side does so in the rest."""
    return text.encode("ascii", "replace").translate(None, _COMMON).decode("ascii")


# Which literals are looked for where: in the runs, in the text, in the text in lower case, in that of any letters.
_IN_RUNS: Final = _literals(KINDS, lambda kind: kind.within and not kind.heads)
_IN_TEXT: Final = _literals(KINDS, lambda kind: not (kind.within or kind.folded or kind.foreign))
_IN_LOWER: Final = _literals(KINDS, lambda kind: kind.folded and not kind.foreign)
_ABROAD: Final = _literals(KINDS, lambda kind: kind.foreign)
_BY_HEAD: Final = {start[:3]: kind for kind in KINDS if kind.heads for start in kind.starts}
_PREFIXES: Final = tuple(start for kind in KINDS if kind.heads for start in kind.starts)
_OF_COMMANDS: Final = _literals(COMMANDS)


class Redactor:
    """Replaces credentials in a text by `[REDACTED]`.

    `secrets` are the configured ones; those shorter than six characters are left to the patterns.
    Its own marks stay as they are. It never raises, and takes time linear in the text.
    """

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        self._secrets = tuple(secrets)
        self._exact = Configured(secrets)

    def learn(self, secrets: Sequence[str]) -> None:
        """Know these secrets besides the earlier ones, which running work may still name."""
        self._secrets = tuple(dict.fromkeys((*self._secrets, *secrets)))
        self._exact = Configured(self._secrets)

    def __call__(self, text: str) -> str:
        """`text` without credentials; everything else is unchanged. A mark separates its neighbours, so the cut text is
        read again, and a credential right beside another one goes, too."""
        text = self._exact.removed(text)
        for _ in range(_PASSES):
            before, text = text, _cut_once(text, self._exact)
            if text == before:
                break
        return text


def _cut_once(text: str, exact: Configured) -> str:
    """Return `text` without the credentials found in it and in its decoded form."""
    levels = decoded(text)
    spans: list[Span] = []
    for depth in range(len(levels) + 1):
        if depth < len(levels) and levels[depth].strips:
            continue  # the next reading is the same without what nobody sees
        inner = levels[depth - 1].text if depth else text
        found = [*_found(inner)]
        spans += [original(levels[:depth], span) for span in (*found, *exact.found(inner))] if depth else found
    return cut(text, _whole_marks(text, spans)) if spans else text


def _whole_marks(text: str, spans: Iterable[Span]) -> Iterator[Span]:
    """The spans, so that none begins or ends inside an earlier mark."""
    near = len(MARK) - 1
    for start, end in spans:
        first, last = (text.find(MARK, max(0, place - near), place + near) for place in (start, end))
        yield (first if first >= 0 else start), (last + len(MARK) if last >= 0 else end)


def _found(text: str) -> Iterator[Span]:
    """Yield the spans of a text's credentials."""
    # In Turkish, such signs stand in every line.
    plain = text.translate(_PLAIN) if not text.isascii() and any(sign in text for sign in _ODD) else text
    lower = folded(plain)
    held = {needed for needed in _NEEDED if needed in lower}
    spans = _runs(plain)
    longest = max((end - start for start, end in spans), default=0)
    if plain is not text:
        spans = _runs(text)  # no token has such a sign, but it may end at one
    runs = " ".join(dict.fromkeys([text[start:end] for start, end in spans]))
    around = ""
    rest = _rest(plain)
    # Plain lists: this is asked for every text there is.
    seen = [
        each.kinds
        for needs, some in _IN_LOWER
        if needs in held
        for each in some
        if each.run <= longest and each.text in lower
    ]
    seen += [
        each.kinds
        for needs, some in _IN_TEXT
        if needs in held
        for each in some
        if each.run <= longest and each.rest in rest and each.text in plain
    ]
    if longest:
        seen += [each.kinds for needs, some in _IN_RUNS if needs in held for each in some if each.text in runs]
        words = [word.lstrip("_") for word in runs.replace("=", " ").split()]  # Markdown's emphasis
        seen += [(_BY_HEAD[word[:3]],) for word in words if word[:3] in _BY_HEAD and word.startswith(_PREFIXES)]
    if abroad := _lowered(plain):
        seen += [each.kinds for _, some in _ABROAD for each in some if each.text in abroad]
    if DASH in held:
        optional = OPTION.search(plain) is not None
        seen += [
            each.kinds
            for needs, some in _OF_COMMANDS
            if needs in held
            for each in some
            if (optional or each.text == PASS) and each.text in plain
        ]
    for kind in dict.fromkeys(kind for kinds in seen for kind in kinds):
        if kind.run <= longest:
            yield from _groups(kind, matches(text, _places(kind, plain, lower), kind.pattern))
    for kind in _PROBED:
        if kind.run > longest or kind.needs not in held or kind.probe is None:
            continue
        if kind.probe.search(runs if kind.is_run else text):
            if kind.is_run:  # each run, behind the two characters in front of it
                around = around or " ".join([text[max(0, start - 2) : end] for start, end in spans])
            if not kind.is_run or kind.pattern.search(around):
                yield from _groups(kind, kind.pattern.finditer(text))
    if KEY in held:
        yield from cut_keys(text)
    if not held.isdisjoint(_ASSIGNED):
        named = assigned(lower, held.intersection(NAMES))
        for kind in NAMED:
            if kind.needs in lower:
                yield from _groups(kind, matches(text, named, kind.pattern))
        yield from _values(matches(text, named, ASSIGNMENT))


def _groups(kind: Kind, found: Iterable[re.Match[str]]) -> Iterator[Span]:
    for match in found:
        if match[1] and match[1] != MARK and kind.plausible(match):
            yield match.span(1)


def _values(found: Iterable[re.Match[str]]) -> Iterator[Span]:
    for match in found:
        if (span := value_of(match)) is not None:
            yield span


def _lowered(text: str) -> str:
    """`text` in lower case as far as literals beyond ASCII need it; "" if it holds none of them."""
    if not text.isascii():
        if any(letter in text for letter in _CASED):
            return text.lower()
        if any(letter in text for letter in _UNCASED):
            return text
    return ""


def _runs(text: str) -> list[Span]:
    marked = text.encode("ascii", "replace").translate(_RUNS)
    found: list[Span] = []
    end = 0
    while (start := marked.find(_RUN, end)) >= 0:
        end = marked.find(b" ", start)
        end = len(marked) if end < 0 else end
        found.append((start, end))
    return found


def _places(kind: Kind, text: str, lower: str) -> list[int]:
    """Return the places where a match of `kind` may begin, in order."""
    searched = _lowered(text) if kind.foreign else lower if kind.folded else text
    return sorted({place for start in kind.starts for place in places_of(start, searched)})
