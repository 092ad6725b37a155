"""Cuts a long Markdown text into messages, plain or laid out: between paragraphs, else lines, else sentences, else
words. Code is closed and opened again, a table continues as a table, and a list at its next number."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from gateway.delivery.markdown.characters import Unit, is_visible, last_boundary, length, reach, sound
from gateway.delivery.markdown.cuts import Cut, Rank, cuts, rough_cut

_SHORT: Final = 0.24  # of the limit: nothing that is laid out becomes four times as long, but by malice
_ROOM: Final = 48  # units kept free for the end of a fence
_SMALLEST: Final = 512  # units of a part that is made smaller because too much is marked in it
_SPARE: Final = 0.95  # a part that was too full by half is not made smaller by exactly that
_FULL: Final = {Rank.BLOCKS: 0.4}  # how full a part has to be for a cut of this rank
_HALF_FULL: Final = 0.5
_HARDLY_FULL: Final = 0.1
_LOOKAHEAD: Final = 1_500  # characters behind the last place to cut, which may end what begins before it
_EMPTY_LINES: Final = re.compile(r"(?:[ \t]*\n)+")


class Splitter(Struct, frozen=True, kw_only=True):
    """Cuts Markdown into messages of at most `limit` units. `load` says how full a part makes a message, plain or laid
    out; 1 is full."""

    limit: int
    unit: Unit
    load: Callable[[str], float]

    def split(self, markdown: str) -> list[str]:
        """Parts of Markdown, each one message; at least one."""
        if self._fits(markdown):
            return [markdown]
        parts: list[str] = []
        rest, limit = _from_its_first_line(sound(markdown)), self.limit
        while not self._fits(rest):
            # Where one part had to be small, the next one has to be, as a rule: trying its full length takes long.
            part, rest, limit = self._first_part(rest, min(2 * limit, self.limit))
            parts.append(part)
        return [part for part in (*parts, rest.rstrip()) if is_visible(part)] or [markdown[: int(_SHORT * self.limit)]]

    def _fits(self, text: str) -> bool:
        return length(text, self.unit) <= _SHORT * self.limit or self.load(text) <= 1

    def _first_part(self, text: str, limit: int) -> tuple[str, str, int]:
        """The first message of `text` with at most `limit` units, the rest, and the limit that it needed."""
        while True:
            part, rest = self._halves(text, limit)
            full = self.load(part)
            if full <= 1 or limit <= _SMALLEST:
                return part, rest, limit
            limit = max(_SMALLEST, int(limit / full * _SPARE))

    def _halves(self, text: str, limit: int) -> tuple[str, str]:
        """`text` cut once, with at most `limit` units before the cut."""
        end = reach(text, limit - _ROOM, self.unit)
        window = text[: end + _LOOKAHEAD]
        last = len(text[:end].encode())
        cut = _best(cuts(window, last), last)
        if cut is None:
            at = last_boundary(text, end)
            cut = rough_cut(window, len(text[:at].encode()))
        else:
            at = len(window.encode()[: cut.at].decode())
        head = text[:at].rstrip() + cut.closing
        tail = text[at:].lstrip(" \t") if cut.midway else text[at:]
        if cut.indent:
            tail = _moved_left(tail, cut.indent, midway=cut.midway)
        return head, cut.opening + (tail if cut.opening else _from_its_first_line(tail))


def _best(found: list[Cut], last: int) -> Cut | None:
    """The last cut of the best rank that leaves neither half nearly empty."""
    for rank in Rank:
        least = last * _FULL.get(rank, _HALF_FULL)
        fitting = [cut for cut in found if cut.rank == rank and cut.at >= least]
        if fitting:
            return max(fitting, key=lambda cut: cut.at)
    return max((cut for cut in found if cut.at >= last * _HARDLY_FULL), key=lambda cut: cut.at, default=None)


def _from_its_first_line(text: str) -> str:
    """`text` without leading empty lines; its first line keeps its indent."""
    match = _EMPTY_LINES.match(text)
    return text[match.end() :] if match is not None else text


def _moved_left(text: str, indent: int, *, midway: bool) -> str:
    """The lines of a cut item, moved left by the item's indent. A line with less indent belongs to an outer item, one
    without indent to none."""
    lines = text.split("\n")
    for number in range(1 if midway else 0, len(lines)):
        line = lines[number]
        if not line.strip():
            continue
        indent = min(indent, len(line) - len(line.lstrip(" ")))
        if not indent:
            break
        lines[number] = line[indent:]
    return "\n".join(lines)
