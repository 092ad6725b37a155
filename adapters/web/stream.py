"""Open pages: each is kept equal to what a reload would show, by server-sent events.

    entry   {id, place, html}   an entry, new or changed           gone    the id of one that is there no more
    draft   {id, place, html}   a reply as far as it is written    keep    the ids of those that still stand, in a list
    work    {words, seconds}, what a turn is at                    side    the list of sessions and the bar

    drafts  the ids of the replies that are being written; a page drops others, which it kept from before a cut

Each event's `id` is the digest of the entries that the page has by then (`log`); drafts and work are not stored, so
they are sent again to a page that comes back.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate
from math import inf
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct, field

from adapters.web.log import Entry, News, State, name_of
from adapters.web.markup import Html
from gateway.domain.chat import ChatAddress
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreUnavailable

_LOOK: Final = 4.0  # seconds after which a quiet page looks whether somebody still reads
_BEAT: Final = 20.0  # seconds after which a comment shows that the connection lives
_DRAWN_EVERY: Final = 0.05  # seconds at least between two looks at what is being written
_BYTES_A_SECOND: Final = 500_000  # a long reply that grows is sent whole each time, so less often
_SIDE_AFTER: Final = 0.3  # seconds after a change: then its turn has ended, too
_SIDE_EVERY: Final = 2.0  # seconds at least between two lists of sessions
_SIDE_WAITS: Final = 2.0  # seconds at most for the end of a turn: one may wait for a person
_MOST_NEWS: Final = 64
_KEPT: Final = 30  # seconds for which a reload finds what the closed page showed
MOST_OF_PERSON: Final = 24
MOST: Final = 2_000

DRAFTS: Final = "drafts"  # what is being written, which the store does not hold
SIDE: Final = "side"  # the list of sessions, which all chats of a person show

T = TypeVar("T")
Write = Callable[[bytes], Awaitable[None]]


class Shared(Struct, Generic[T], eq=False):
    """What all open pages of a chat have in common: made once after each ring. `make` is given what it made before,
    and what came since; None: anything may have changed."""

    make: Callable[[T | None, Sequence[News] | None], Awaitable[T]]
    made: T | None = None
    _news: list[News] | None = None
    _making: asyncio.Lock = field(default_factory=asyncio.Lock)

    def ring(self, news: News | None) -> None:
        """This came, or anything may have changed."""
        if news is None or self._news is None or len(self._news) == _MOST_NEWS:
            self._news = None
        else:
            self._news.append(news)

    async def now(self) -> T:
        """What `make` makes now."""
        async with self._making:
            news, self._news = self._news, []
            if self.made is None or news is None or news:
                made, self.made = self.made, None  # if it fails, all is made anew
                self.made = await self.make(made, news)
            return self.made


class Bell(Struct, eq=False):
    """Rings when something may have changed for a page: `rung` always, `stored` for what lies in the store; and at
    `wakes_at` (monotonic)."""

    wakes_at: float = inf
    rung: asyncio.Event = field(default_factory=asyncio.Event)
    stored: asyncio.Event = field(default_factory=asyncio.Event)

    def ring(self, *, stored: bool) -> None:
        """Have the page look."""
        self.rung.set()
        if stored:
            self.stored.set()


class _Chat(Struct, eq=False):
    """The open pages of a chat. Without any it waits for a reload, for `ticks` already."""

    ticks: int = 0
    bells: set[Bell] = field(default_factory=set)
    shared: dict[Hashable, Shared[Any]] = field(default_factory=dict)


class Bells(Struct):
    """The bells of all open pages, by chat. `ended` is set when the server closes."""

    ended: bool = False
    _chats: dict[ChatAddress, _Chat] = field(default_factory=dict)

    def has_room(self, person: str) -> bool:
        """Whether this person may open another page."""
        pages = [len(chat.bells) for chat in self._chats.values()]
        return sum(pages) < MOST and sum(len(chat.bells) for chat in self._of(person).values()) < MOST_OF_PERSON

    def _of(self, person: str) -> dict[ChatAddress, _Chat]:
        return {to: chat for to, chat in self._chats.items() if to.chat == person}

    @contextmanager
    def heard(self, to: ChatAddress) -> Iterator[Bell]:
        """A bell for a page, while the block runs."""
        bell, chat = Bell(), self._chats.setdefault(to, _Chat())
        if not chat.bells:
            for each in chat.shared.values():
                each.ring(None)  # nobody heard what changed meanwhile
        bell.ring(stored=True)
        chat.bells.add(bell)
        try:
            yield bell
        finally:
            chat.bells.discard(bell)
            chat.ticks = 0

    def hears(self, to: ChatAddress) -> bool:
        """Whether a page of this chat is open."""
        return bool(self._chats.get(to, _Chat()).bells)

    def made(self, to: ChatAddress, what: Hashable) -> Any:
        """What was made for the open pages of a chat, or those closed just now; None: nothing."""
        chat = self._chats.get(to, _Chat())
        return chat.shared[what].made if what in chat.shared else None

    def shared(
        self, to: ChatAddress, what: Hashable, make: Callable[[T | None, Sequence[News] | None], Awaitable[T]]
    ) -> Shared[T]:
        """What the open pages of a chat have in common; there is at least one."""
        return self._chats[to].shared.setdefault(what, Shared(make))

    def ring(self, to: ChatAddress, *, stored: bool = True, news: News | None = None) -> None:
        """Something may have changed for a chat; with `news`, nothing but that; if not `stored`, nothing in the
        store. The pages of the person's other chats look for their lists."""
        if stored:
            self.ring_side(to.chat, besides=to)
        if (chat := self._chats.get(to)) is None:
            return
        if stored and not chat.bells:
            del self._chats[to]  # it may have been forgotten
        for what, each in chat.shared.items():
            if stored or what == DRAFTS:
                each.ring(news)
        for bell in chat.bells:
            bell.ring(stored=stored)

    def ring_side(self, person: str, besides: ChatAddress | None = None) -> None:
        """The list of a person's sessions may have changed; the pages of one chat know."""
        for to, chat in self._of(person).items():
            if to != besides:
                if SIDE in chat.shared:
                    chat.shared[SIDE].ring(None)
                for bell in chat.bells:
                    bell.ring(stored=True)

    def tick(self, now: float) -> None:
        """Wake the pages whose time it is; one clock for all is less work than a timer each. Called every second."""
        for to, chat in list(self._chats.items()):
            chat.ticks += 1
            if not chat.bells and chat.ticks > _KEPT:
                del self._chats[to]
            for bell in chat.bells:
                if bell.wakes_at <= now:
                    bell.ring(stored=False)

    def end(self) -> None:
        """End all pages."""
        self.ended = True
        for chat in self._chats.values():
            for bell in chat.bells:
                bell.ring(stored=True)


class Work(Struct, frozen=True):
    """What a turn is at, "" for nothing; and since when (monotonic)."""

    words: str = ""
    since: float = 0.0


IDLE: Final = Work()


class Page(Struct, kw_only=True):
    """One open page. `state`, `drafts`, `work` and `side` give what it should show now, and `writing` whether there are
    drafts; `write` sends bytes. `digest` is that of the entries that it shows already."""

    state: Callable[[], Awaitable[State]]
    drafts: Callable[[], Awaitable[list[Entry]]]
    writing: Callable[[], bool]
    work: Callable[[], Work]
    side: Callable[[], Awaitable[Html]]
    write: Write
    clock: Clock
    digest: str = "0"
    shown_at: float = 0.0  # when it last was as a reload is, while somebody read (seconds since the epoch)
    _begun: bool = False
    _has: list[Entry] = field(default_factory=list)
    _mark: int = 0  # the marks of these together
    _held: bool = False  # what is being written, because it may soon be whole
    _drafted: dict[str, int] = field(default_factory=dict)
    _events: list[bytes] = field(default_factory=list)  # of this look
    _rests_until: float = 0.0  # monotonic, as those below
    _work: Work | None = None
    _side: str | None = None
    _side_at: float = -inf  # the last one
    _side_due: float = -inf

    async def follow(self, bell: Bell, bells: Bells, alive: Callable[[], bool]) -> None:
        """Send events until the server closes, or it is over (`alive`): the login has ended, or nobody reads."""
        await self._send(b"retry: 1000\n\n")
        while not bells.ended and alive():
            stored, now = bell.stored.is_set(), self.clock.now()
            bell.rung.clear()
            bell.stored.clear()
            try:
                await self.look(stored=stored)
                self.shown_at = now
            except StoreUnavailable:
                bell.ring(stored=True)  # it comes back, and then a look finds what is missing
                await self.clock.sleep(1.0)
                continue
            if self.clock.monotonic() > self._rests_until + _BEAT:
                await self._send(b": beat\n\n")
            bell.wakes_at = min(
                self.clock.monotonic() + _LOOK,
                self._side_due + (_SIDE_WAITS if self._work and self._work.words else 0.0),
            )
            if not self._held:
                await bell.rung.wait()
            if (rest := self._rests_until - self.clock.monotonic()) > 0 and not bell.stored.is_set():
                with suppress(TimeoutError):
                    async with self.clock.limit(rest):
                        await bell.stored.wait()

    async def look(self, *, stored: bool) -> None:
        """Send what the page lacks; `stored`: also of what lies in the store. Raises StoreUnavailable."""
        now = self.clock.monotonic()
        if stored:
            self._sync((await self.state()).entries)
            self._side_due = min(self._side_due, max(now + _SIDE_AFTER, self._side_at + _SIDE_EVERY))
        self._held = self._begun and bool(self._events) and self.writing()
        if not self._held:
            drafts = await self.drafts()
            if not self._begun:
                self._add("drafts", [entry.id for entry in drafts])
            self._begun = True
            self._draft(drafts)
        if (work := self.work()) != self._work:
            self._work = work
            self._add("work", {"words": work.words, "seconds": round(now - work.since, 1)})
        if self._side_due + (_SIDE_WAITS if work.words else 0.0) <= now:
            side = await self.side()
            self._side_at, self._side_due = now, inf
            if side != self._side:
                self._side = side
                self._add("side", side)
        if self._events:
            data, self._events = b"".join(self._events), []
            await self._send(data)

    async def _send(self, data: bytes) -> None:
        self._rests_until = self.clock.monotonic() + _DRAWN_EVERY + len(data) / _BYTES_A_SECOND
        await self.write(data)

    def _sync(self, now: list[Entry]) -> None:
        """Bring the page to these entries."""
        lost = False
        if not self._begun:
            marks = list(accumulate((entry.mark for entry in now), initial=0))
            digests = list(map(name_of, marks))
            if lost := self.digest not in digests:
                self.digest = "-"  # what the page has is not known until it has all
                self._add("keep", [entry.id for entry in now])
            else:
                self._has, self._mark = now[: (place := digests.index(self.digest))], marks[place]
        same = {*map(id, self._has)} & {*map(id, now)}  # nearly all; the others are looked at
        had = {entry.id: entry for entry in self._has if id(entry) not in same}
        new = [entry for entry in now if id(entry) not in same]
        left = {entry.id for entry in new}
        for entry in [each for each in had.values() if each.id not in left]:
            self._mark -= entry.mark
            self.digest = name_of(self._mark)
            self._add("gone", entry.id)
        for entry in new:
            if (old := had.get(entry.id)) != entry:
                self._mark += entry.mark - (old.mark if old is not None else 0)
                self.digest = "-" if lost else name_of(self._mark)
                self._drafted.pop(entry.id, None)
                self._add("entry", _facts(entry))
        self.digest, self._has = name_of(self._mark), now

    def _draft(self, now: Sequence[Entry]) -> None:
        if not (now or self._drafted):
            return
        shown = {entry.id for entry in self._has}
        for entry in now:
            if entry.id not in shown and self._drafted.get(entry.id) != entry.mark:
                self._drafted[entry.id] = entry.mark
                self._add("draft", _facts(entry))
        left = {entry.id for entry in now}
        for id_ in [each for each in self._drafted if each not in left]:
            del self._drafted[id_]
            if id_ not in shown:
                self._add("gone", id_)

    def _add(self, kind: str, facts: object) -> None:
        text = json.dumps(facts, ensure_ascii=False)
        self._events.append(f"event: {kind}\nid: {self.digest}\ndata: {text}\n\n".encode(errors="replace"))


def _facts(entry: Entry) -> dict[str, str]:
    return {"id": entry.id, "place": entry.place, "html": entry.html}
