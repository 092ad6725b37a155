"""Open pages: each is kept equal to what a reload would show, by server-sent events.

    entry   {id, place, html}   an entry, new or changed           gone    the id of one that is there no more
    draft   {id, place, html}   a reply as far as it is written    keep    the ids of those that still stand, in a list
    work    what a turn is at, "" for nothing                      side    the list of sessions and the bar

    drafts  the ids of the replies that are being written; a page drops others, which it kept from before a cut

Each event's `id` is the digest of the entries that the page has by then (`log`); drafts and work are not stored, so
they are sent again to a page that comes back.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, Generic, TypeVar

from msgspec import Struct, field

from adapters.web.log import Entry, State
from adapters.web.markup import Html
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreUnavailable

_LOOK: Final = 4.0  # seconds after which a quiet page looks whether somebody still reads
_BEAT: Final = 5  # such looks, after which a comment shows that the connection lives
_AT_MOST_EVERY: Final = 0.05  # seconds between two looks for one page
_BYTES_A_SECOND: Final = 500_000  # a long reply that grows is sent whole each time, so less often
MOST_OF_PERSON: Final = 24
MOST: Final = 2_000

T = TypeVar("T")
Write = Callable[[bytes], Awaitable[None]]


class Bell(Struct, eq=False):
    """Rings when something may have changed for a page; `stored`: in the store."""

    rung: asyncio.Event = field(default_factory=asyncio.Event)
    stored: bool = True

    def ring(self, *, stored: bool) -> None:
        """Have the page look."""
        self.stored = self.stored or stored
        self.rung.set()


class Bells(Struct):
    """The bells of all open pages, by person. `ended` is set when the server closes."""

    ended: bool = False
    _bells: dict[str, set[Bell]] = field(default_factory=dict)
    _rung: Counter[str] = field(default_factory=Counter)

    def has_room(self, person: str) -> bool:
        """Say whether this person may open another page."""
        return len(self._bells.get(person, ())) < MOST_OF_PERSON and sum(map(len, self._bells.values())) < MOST

    @contextmanager
    def heard(self, person: str) -> Iterator[Bell]:
        """A bell for a page, while the block runs."""
        bell = Bell()
        self._bells.setdefault(person, set()).add(bell)
        try:
            yield bell
        finally:
            left = self._bells[person]
            left.discard(bell)
            if not left:
                del self._bells[person]

    def ring(self, person: str, *, stored: bool = True) -> None:
        """Something may have changed for a person."""
        self._rung[person] += stored
        for bell in self._bells.get(person, ()):
            bell.ring(stored=stored)

    def rung(self, person: str) -> int:
        """How often the store may have changed for a person: what was made of it since is still so."""
        return self._rung[person]

    def end(self) -> None:
        """End all pages."""
        self.ended = True
        for bells in self._bells.values():
            for bell in bells:
                bell.rung.set()


class Shared(Struct, Generic[T]):
    """What all open pages of a person show alike: made once after each ring, however many they are."""

    _rung: int = -1
    _made: list[T] = field(default_factory=list)
    _making: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def of(self, rung: int, make: Callable[[], Awaitable[T]]) -> T:
        """What was made after so many rings, or what `make` makes now."""
        async with self._making:
            if self._rung != rung:
                self._made = [await make()]
                self._rung = rung
            return self._made[0]


class Page(Struct, kw_only=True):
    """One open page. `state`, `drafts`, `work` and `side` give what it should show now; `write` sends bytes. `digest`
    is that of the entries that it shows already."""

    state: Callable[[], Awaitable[State]]
    drafts: Callable[[], Awaitable[list[Entry]]]
    work: Callable[[], str]
    side: Callable[[], Awaitable[Html]]
    write: Write
    clock: Clock
    digest: str = "0"
    _begun: bool = False
    _has: list[Entry] = field(default_factory=list)
    _drafted: dict[str, str] = field(default_factory=dict)
    _written: int = 0
    _work: str | None = None
    _side: str | None = None

    async def follow(self, bell: Bell, bells: Bells, alive: Callable[[], bool]) -> None:
        """Send events until the server closes, or it is over (`alive`): the login has ended, or nobody reads."""
        await self.write(b"retry: 1000\n\n")
        while not bells.ended and alive():
            bell.rung.clear()
            stored, bell.stored = bell.stored, False
            try:
                await self.look(stored=stored)
            except StoreUnavailable:
                bell.stored = True  # it comes back, and then a look finds what is missing
                await self.clock.sleep(1.0)
                continue
            await self.clock.sleep(_AT_MOST_EVERY + self._written / _BYTES_A_SECOND)
            await self._quiet(bell, bells, alive)

    async def _quiet(self, bell: Bell, bells: Bells, alive: Callable[[], bool]) -> None:
        """Wait for the bell."""
        looks = 0
        while not (bell.rung.is_set() or bells.ended) and alive():
            with suppress(TimeoutError):
                async with self.clock.limit(_LOOK):
                    await bell.rung.wait()
                    return
            looks += 1
            if looks % _BEAT == 0:
                await self.write(b": beat\n\n")

    async def look(self, *, stored: bool) -> None:
        """Send what the page lacks; `stored`: also of what lies in the store. Raises StoreUnavailable."""
        self._written = 0
        if stored:
            await self._sync(await self.state())
        drafts = await self.drafts()
        if not self._begun:
            await self._send("drafts", [entry.id for entry in drafts])
        self._begun = True
        await self._draft(drafts)
        if (work := self.work()) != self._work:
            self._work = work
            await self._send("work", work)
        if stored and not work and (side := await self.side()) != self._side:
            self._side = side
            await self._send("side", side)

    async def _sync(self, state: State) -> None:
        """Bring the page to this state."""
        now, names = state.entries, state.digests
        events: list[tuple[str, object]] = []
        if not self._begun and self.digest in names:
            self._has = now[: names.index(self.digest)]
        elif not self._begun:
            events.append(("keep", [entry.id for entry in now]))
        had, left = {entry.id: entry for entry in self._has}, {entry.id for entry in now}
        events += [("gone", entry.id) for entry in self._has if entry.id not in left]
        only_more = not events and now[: len(self._has)] == self._has
        news = [entry for entry in now if had.get(entry.id) != entry]
        events += [("entry", _facts(entry)) for entry in news]
        for number, (kind, data) in enumerate(events, 1 - len(events)):
            self.digest = names[number - 1] if only_more or number == 0 else "-"  # a state that is half of another
            await self._send(kind, data)
        for entry in news:
            self._drafted.pop(entry.id, None)
        self.digest, self._has = names[-1], now

    async def _draft(self, now: Sequence[Entry]) -> None:
        shown = {entry.id for entry in self._has}
        for entry in now:
            if entry.id not in shown and self._drafted.get(entry.id) != entry.version:
                self._drafted[entry.id] = entry.version
                await self._send("draft", _facts(entry))
        left = {entry.id for entry in now}
        for id_ in [each for each in self._drafted if each not in left]:
            del self._drafted[id_]
            if id_ not in shown:
                await self._send("gone", id_)

    async def _send(self, kind: str, facts: object) -> None:
        text = json.dumps(facts, ensure_ascii=False)
        data = f"event: {kind}\nid: {self.digest}\ndata: {text}\n\n".encode(errors="replace")
        self._written += len(data)
        await self.write(data)


def _facts(entry: Entry) -> dict[str, str]:
    return {"id": entry.id, "place": entry.place, "html": entry.html}
