"""Helpers: tasks that a turn hands on, each to a model with a window of its own.

A helper is an item in a lane of its own, whose key is its caller's key and the helper's id. So it has everything that a
turn has: after a crash it continues from its last step, in any process, and the store begins it once. Its id is made
from the step and the words of the call, so after a crash the caller finds the same helper again, whose answer is the
last message of its session. Only one more thing is stored: that the helper exists, so that one can find, end or forget
what runs for a conversation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Final

from msgspec import Struct, field
from msgspec.json import decode, encode

from gateway.domain.chat import HELPER, Inbound, SessionKey, Source, one_line
from gateway.domain.message import text_of
from gateway.domain.session import Session
from gateway.runtime.clock import Clock, lasting_id
from gateway.runtime.errors import ToolError
from gateway.runtime.structs import replace
from gateway.runtime.tasks import comes_within
from gateway.store.insist import insist
from gateway.store.port import Store, under
from gateway.store.records import Arrival

MOST_AT_ONCE: Final = 3
NOT_FINISHED: Final = "[The helper did not finish.]"
STARTED: Final = "The helper {id} works in the background; you will be woken with its answer, so do not wait for it."
TOO_MANY: Final = (
    f"{MOST_AT_ONCE} helpers of this conversation are at work already: call this again when one has ended, or do it "
    "yourself."
)
LOST: Final = "The helper ended without an answer. Do it yourself, or call another one."
SIGNED: Final = "{answer}\n\n[the helper's session is {id}: {messages} messages{cost}]"

_LOOK: Final = 1.0  # seconds between two looks at a helper of another process
_PATIENCE: Final = 10.0  # seconds for one to end that was stopped
_LANE: Final = 1_000_000  # items: a helper's lane holds one
_OVER: Final = "over"  # the note about a helper that is


class Order(Struct, frozen=True, kw_only=True):
    """What a helper is told, and by whom. `tools`: the names it may call; empty: everything that a helper may.
    `session`, `turn`, `event`: the caller's session, the item that its turn answers, and the item's event. `lets`: no
    person began that turn, so of the tools with effects only these may be called; None: a person did. `alone`: the
    caller has gone on by itself for so long that nothing more may start in the background. `woke`: the line with which
    its caller is woken, unless the answer is NOTHING or empty."""

    task: str
    context: str = ""
    tools: tuple[str, ...] = ()
    background: bool = False
    session: str = ""
    turn: str = ""
    event: str = ""
    lets: tuple[str, ...] | None = None
    alone: bool = False
    woke: str = ""

    @property
    def brief(self) -> str:
        """The task in a short line."""
        return self.woke or one_line(self.task, 60)

    def is_news(self, said: str) -> bool:
        """Whether an answer is worth waking the caller."""
        return not (self.woke and (said.startswith((NOT_FINISHED, "NOTHING")) or not said))


class Helper(Struct, frozen=True, kw_only=True):
    """A helper that is not over."""

    id: str
    brief: str
    since: float  # seconds since the epoch
    background: bool = False
    stopped: bool = False


def order_in(text: str) -> Order:
    """The order that a helper's item holds."""
    return decode(text, type=Order)


class Helpers(Struct, kw_only=True):
    """The helpers of all conversations. While the caller waits, `aside` gives its place to other lanes. `budget_usd`:
    what a helper may cost, if its model has a price; `looks_usd`: the same for a day's regular looks and what they
    start."""

    store: Store
    clock: Clock
    budget_usd: float | None = None
    looks_usd: float | None = None
    aside: Callable[[SessionKey], AbstractContextManager[None]] = lambda _: nullcontext()
    _over: dict[SessionKey, asyncio.Event] = field(default_factory=dict)  # that somebody here waits for
    _beginning: asyncio.Lock = field(default_factory=asyncio.Lock)  # the calls of one step run side by side

    async def run(self, order: Order, caller: SessionKey, source: Source, step: str, alive: Callable[[], None]) -> str:
        """Let a helper do a task; returns its answer, or that it is working. Called again by the same `step` (the id of
        the message with the call), it is the same helper. `alive` notes a sign of life. Raises ToolError if there are
        too many."""
        told = encode(order).decode()
        key = replace(caller, helper=lasting_id("h", step, told))
        if not await self.store.sessions(key, 1):
            await self._begin(key, source, order, told)
        if order.background:
            return STARTED.format(id=key.helper)
        with self.aside(caller):
            return await self._answer(key, alive)

    async def _begin(self, key: SessionKey, source: Source, order: Order, told: str) -> None:
        name, now = str(key.helper), self.clock.now()
        async with self._beginning:
            there = await self.of(key.caller)
            if all(each.id != name for each in there):
                if len(there) >= MOST_AT_ONCE:
                    raise ToolError(TOO_MANY)
                await self._note(key, Helper(id=name, brief=order.brief, since=now, background=order.background))
        inbound = Inbound(event_id=f"{HELPER}{name}", source=source, text=told, kind="helper", own="", sent_at=now)
        arrival = Arrival(inbound=inbound, key=key, at=now)
        await insist(lambda: self.store.accept([arrival], cap=_LANE), clock=self.clock, what="helper")

    async def _answer(self, key: SessionKey, alive: Callable[[], None]) -> str:
        """Wait for the end of a helper, whichever process it runs in."""
        over = self._over.setdefault(key, asyncio.Event())
        try:
            while True:
                alive()
                has_ended = await self._has_ended(key)
                newest = await self.newest(key)
                if newest is not None and newest.ended_at is not None:
                    return await self.said(newest)
                if has_ended:
                    await self.over(key)
                    raise ToolError(LOST)
                await comes_within(over, _LOOK, self.clock)
        finally:
            self._over.pop(key, None)

    async def _has_ended(self, key: SessionKey) -> bool:
        """Whether a helper's item has an outcome: then its session has ended, or it is lost."""
        if await self.store.running(key):
            return False
        fates = (await self.store.named(f"{HELPER}{key.helper}", [key.platform])).fates
        return all(each.outcome is not None for each in fates)

    async def newest(self, key: SessionKey) -> Session | None:
        """A helper's session, if it has begun; an ended one says that the helper is over."""
        return next(iter(await self.store.sessions(key, 1)), None)

    async def said(self, session: Session) -> str:
        """The answer of a helper that is over, with the name of its session."""
        transcript = await self.store.transcript(session)
        answer = text_of(transcript[-1]).strip() if transcript else NOT_FINISHED
        cost = f", ${session.cost_usd:.4f}" if session.cost_usd else ""
        return SIGNED.format(answer=answer, id=session.id, messages=session.message_count, cost=cost)

    async def over(self, key: SessionKey) -> None:
        """A helper's session has ended."""
        await self._note(key, None)
        if (waited := self._over.get(key)) is not None:
            waited.set()

    # -- those of a conversation --------------------------------------------------------------

    async def of(self, key: SessionKey) -> list[Helper]:
        """The helpers of a conversation that are not over, oldest first."""
        notes = (await self.store.notes(_folder(key))).values()
        found = (decode(note, type=Helper) for note in notes if note.startswith("{"))  # others: over, or of 0.1's form
        return sorted(found, key=lambda each: each.since)

    async def keys(self, key: SessionKey) -> list[SessionKey]:
        """The keys of all helpers that a conversation ever had."""
        return [replace(key, helper=name) for name in await self.store.notes(_folder(key))]

    async def stop(self, key: SessionKey, *, background: bool) -> int:
        """End the helpers of a conversation whose turn is over, those in the background as well if they are meant;
        returns how many."""
        ending = [each for each in await self.of(key) if background or not each.background]
        for each in ending:
            helper = replace(key, helper=each.id)
            await self._note(helper, replace(each, stopped=True), still=each)  # for one that has not begun
            await self.store.signal(helper, "stop", self.clock.now())
        return len(ending)

    async def end(self, key: SessionKey) -> None:
        """End the helpers of a conversation, and return when none works any more, or after some seconds."""
        await self.stop(key, background=True)
        with suppress(TimeoutError):
            async with self.clock.limit(_PATIENCE):
                for each in await self.of(key):
                    while await self.store.running(replace(key, helper=each.id)):
                        await self.clock.sleep(_LOOK / 4)

    async def is_stopped(self, key: SessionKey) -> bool:
        """Whether a helper is to end, or is forgotten."""
        return not any(each.id == key.helper and not each.stopped for each in await self.of(key.caller))

    async def _note(self, key: SessionKey, helper: Helper | None, *, still: Helper | None = None) -> None:
        """Write down how it is with a helper, None: it is over; nothing if it is `still` that no more."""
        changes = {str(key.helper): encode(helper).decode() if helper else _OVER}
        as_read = {str(key.helper): encode(still).decode()} if still else None
        await insist(
            lambda: self.store.set_notes(_folder(key.caller), changes, as_read), clock=self.clock, what="helper"
        )


def _folder(key: SessionKey) -> str:
    return under(key, "helpers")
