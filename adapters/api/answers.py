"""Requests that wait for an answer, and the pieces of it as they come. A row is shown to everybody who waits for its
event. If nobody waits, it stays in the store, and a request that asks again gets it from there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field

from adapters.api.missed import Missed
from gateway.domain.chat import ChatAddress, Outbound

MOST_OF_PERSON: Final = 100  # answers that one person waits for
MOST: Final = 2_000
_GAP: Final = "\n\n"


class Piece(Struct, frozen=True):
    """A part of an answer. `thought`: it is about the work, and no part of the answer's text."""

    text: str
    thought: bool = False


class Answer(Struct, kw_only=True, eq=False):
    """The answer to the message of one `event`, as far as it came. `over`: it is whole, or was `cut` by the end of the
    program; `last`: the row that ended it, which may be a question. `then`: the answer of the turn that goes on because
    of this message. `works`: a turn runs there; `rests`: one has run, or waits for its person. `note`: what was told
    since then, which may be all that there is of it. `said`: some of its words came. `quiet`: nobody looks before it is
    over. `missed`: the ids of the rows that it begins with, and `before` their texts."""

    event: str
    to: ChatAddress
    over: bool = False
    cut: bool = False
    last: Outbound | None = None
    then: Answer | None = None
    works: bool = False
    rests: bool = False
    note: str = ""
    said: bool = False
    quiet: bool = False
    missed: Sequence[str] = ()
    before: str = ""
    _pieces: list[Piece] = field(default_factory=list)
    _row: str = ""  # the id of the row that grows
    _shown: str = ""  # as far as it was shown
    _seen: set[str] = field(default_factory=set)
    _rung: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def final(self) -> Answer:
        """Return the one that has the end of what is told."""
        return self.then.final if self.then is not None and self.over else self

    def show(self, row: Outbound) -> None:
        """Show a row that is whole, once."""
        if row.id in self._seen or self.over:
            return
        self._seen.add(row.id)
        if (is_note := row.kind == "notice") and self.rests:
            self.note = row.text
            self._rung.set()
            return
        if is_note or (self.then is not None and row.kind == "command"):
            self.think(row.text)
        else:
            self.then = None  # nothing was decided
            self.grow(row.id, row.text)
        is_begun = row.kind == "reply" and row.returns is None  # why it was broken off follows, or the rest of it
        if not (is_note or is_begun or row.kind == "remark"):
            self.last = row
            self.end()

    def grow(self, row_id: str, text: str) -> None:
        """Show a row as far as it is written."""
        gap = ""
        if row_id != self._row or not text.startswith(self._shown):
            self._row, self._shown, gap = row_id, "", _GAP if self.said else ""
        if more := text[len(self._shown) :]:
            self._add(Piece(gap + more))
            self.said, self._shown = True, text

    def begin(self, texts: Sequence[str]) -> None:
        """Begin with what its person has missed. A code block that a text leaves open would swallow the answer."""
        self.before = _GAP.join(f"{text}\n```" if text.count("```") % 2 else text for text in texts)
        self.grow("missed", self.before)

    def think(self, text: str) -> None:
        """Show what is done on the way."""
        self._add(Piece(text, thought=True))

    def end(self) -> None:
        """There is no more of it."""
        self.over = True
        self._rung.set()

    def _add(self, piece: Piece) -> None:
        self._pieces.append(piece)
        if not self.quiet:
            self._rung.set()

    def beat(self) -> None:
        """Have its request look at it."""
        self._rung.set()

    async def news(self) -> list[Piece]:
        """Wait for more of it, its end, or a beat."""
        await self._rung.wait()
        if not self.over:
            self._rung.clear()
        return self.left()

    def left(self) -> list[Piece]:
        """Take what of it came."""
        found, self._pieces = self._pieces, []
        return found


class Answers(Struct):
    """The answers that requests wait for, and what waits for the next ones."""

    missed: Missed = field(default_factory=Missed)
    _open: dict[ChatAddress, list[Answer]] = field(default_factory=dict)

    def has_room(self, person: str) -> bool:
        """Whether this person may wait for another answer: nobody's requests may take all turns."""
        theirs = sum(len(each) for to, each in self._open.items() if to.chat == person)
        return theirs < MOST_OF_PERSON and sum(map(len, self._open.values())) < MOST

    def begin(self, to: ChatAddress, event: str) -> Answer:
        """Wait for the answer to the message of this event."""
        answer = Answer(event=event, to=to)
        self._open.setdefault(to, []).append(answer)
        return answer

    def forget(self, answer: Answer) -> None:
        """Nobody waits for it any more."""
        self.missed.put_back(answer.missed)
        left = [each for each in self._open.get(answer.to, ()) if each is not answer]
        if left:
            self._open[answer.to] = left
        else:
            self._open.pop(answer.to, None)
        if answer.then is not None:
            self.forget(answer.then)

    def at(self, to: ChatAddress, event: str | None = None) -> list[Answer]:
        """Those that wait there, or for this event."""
        return [each for each in self._open.get(to, ()) if event is None or each.event == event]

    def beat(self) -> None:
        """Have all requests look: nothing may have come for a while."""
        for answer in [each for there in self._open.values() for each in there]:
            answer.beat()

    def close(self) -> None:
        """End all of them."""
        for answer in [each for there in self._open.values() for each in there]:
            answer.cut = not answer.over
            answer.end()
