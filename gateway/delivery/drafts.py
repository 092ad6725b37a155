"""A reply while it is being written: a message that is edited as its text grows, or previews of a message to come.

The row of the reply is stored before anything is shown. A reply that grows by edits keeps the platform's id of its
message, so the end of its turn gives that very message its final text, also after a crash. That message is shown only
when its chat has been shown everything else. A preview is no message:
its reply is sent like any other. A draft is a comfort. One edit that fails ends it, a failed preview is followed by
the next one, and the turn goes on either way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

import structlog
from msgspec import Struct, field

from gateway.delivery.pacing import Pacing
from gateway.domain.adapter import Adapter, CanEdit, CanPreview, Rate, account_of
from gateway.domain.chat import Outbound
from gateway.runtime.aside import RunsAside
from gateway.runtime.clock import Clock
from gateway.runtime.errors import AdapterError, Ambiguous, ChatGone, RateLimited, StoreError, TookTooLong
from gateway.runtime.structs import replace
from gateway.store.insist import insist
from gateway.store.port import Store
from gateway.store.records import InboxItem, Lease

log = structlog.get_logger(__name__)

FIRST_LOOK = 0.7  # seconds: an answer that is ready by then is shown at once, and once
STANDS_IN_AFTER = 20.0  # seconds without a word of a reply, after which a line says why, and is renewed
_FREE_LOOK = 1.0  # between two looks at whether the chat has shown all that came before
_LAST_LOOK = 1.0  # seconds for which a finished reply waits for its preview: one that came later would follow it
_RENEWED_AT = 2 / 3  # of a preview's life: then it is shown again
_GOES_ON = " …"


class Editor(Adapter, CanEdit, Protocol):
    """An adapter that can edit."""


class Draft(Struct, kw_only=True):
    """The draft of one reply. `row` is its row, without a text; `previewer` is the editor if it can also show previews.
    `run` is a task until `end`."""

    editor: Editor
    previewer: CanPreview | None
    store: Store
    pacing: Pacing
    clock: Clock
    lease: Lease
    item: InboxItem
    row: Outbound
    aside: RunsAside
    _text: str = ""
    _shown: str = ""
    _standing_in: bool = False  # the text is about a long wait, and no reply yet
    _full: str | None = None  # as much as one message holds, once there is so much
    _opened: bool = False  # the row is stored
    _previewing: bool = False  # the call on its way is a preview: nobody needs its outcome
    _renewed_at: float | None = None  # monotonic: when the preview must be shown again
    _number: int = 0
    _grown: asyncio.Event = field(default_factory=asyncio.Event)
    _ended: asyncio.Event = field(default_factory=asyncio.Event)
    _free: asyncio.Event = field(default_factory=asyncio.Event)  # no call is on its way

    def __post_init__(self) -> None:
        self._free.set()

    def show(self, text: str) -> None:
        """Show the reply so far. A shorter text than before is a new reply, which replaces the first."""
        if len(text) < len(self._text):
            self._full = None
        self._text, self._standing_in = text, False
        self._grown.set()

    def stand_in(self, line: str) -> None:
        """Until there is a reply, show a line in its place."""
        self._text, self._standing_in = line, True
        self._grown.set()

    async def end(self) -> None:
        """Stop showing. Returns when the last edit is noted, so that the reply can take its place. Waits only a moment
        for a slow preview."""
        self._ended.set()
        self._grown.set()
        if not self._previewing:
            await self._free.wait()
            return
        with suppress(TimeoutError):
            async with self.clock.limit(_LAST_LOOK):
                await self._free.wait()

    async def run(self) -> None:
        """Show the texts given to `show`, until `end` or a failure."""
        try:
            while await self._has_grown() and self._rates is not None and await self._may_be_shown():
                await self._turn_comes()
                await self._step()
        except (AdapterError, StoreError, TookTooLong) as error:
            log.info("draft_given_up", outbound=self.row.id, error=str(error))

    async def _has_grown(self) -> bool:
        """Wait for more text, or until the preview fades. Returns whether to go on."""
        if self._renewed_at is None:
            await self._grown.wait()
        else:
            with suppress(TimeoutError):
                async with self.clock.limit(max(0.0, self._renewed_at - self.clock.monotonic())):
                    await self._grown.wait()
        self._grown.clear()
        return not self._ended.is_set()

    @property
    def _previews(self) -> Sequence[Rate] | None:
        """Limits of previews; None if the platform has none, or the reply already has a message."""
        if self.previewer is None or self.row.platform_message_id is not None:
            return None
        return self.previewer.preview_rates(self.row.to)

    @property
    def _rates(self) -> Sequence[Rate] | None:
        """Limits for the next call; None if the reply is not shown before it is finished."""
        previews = self._previews
        return self.editor.draft_rates(self.row.to) if previews is None else previews

    async def _may_be_shown(self) -> bool:
        """Store the row if the chat is open. Returns whether it is."""
        if await self.store.closed(self.row.to) is not None:
            return False
        if self._opened or self._ended.is_set():
            return True
        self._free.clear()
        try:
            opened = await self.store.open_reply(self.lease, self.item, self.row)
            self.row, self._opened = replace(self.row, platform_message_id=opened.platform_message_id), True
        finally:
            self._free.set()
        return True

    async def _turn_comes(self) -> None:
        """Wait for a moment that the platform leaves to drafts. A reply's first message also waits for all other rows
        of its chat, or it would stand above them for good."""
        while not self._ended.is_set():
            if not await self._others_come_first():  # asked before, too: a moment that is taken is missing to them
                await self._moment_comes()
                if not await self._others_come_first():
                    return
            with suppress(TimeoutError):
                async with self.clock.limit(_FREE_LOOK):
                    await self._ended.wait()

    async def _others_come_first(self) -> bool:
        begins = self._previews is None and self.row.platform_message_id is None
        return begins and await self.store.has_unsent(self.row.to)

    async def _moment_comes(self) -> None:
        self._number += 1
        ticket = f"{self.row.id} {self._number}"
        while not self._ended.is_set() and (wait := await self._until_allowed(ticket)):
            with suppress(TimeoutError):
                async with self.clock.limit(wait):
                    await self._ended.wait()

    async def _until_allowed(self, ticket: str) -> float:
        # Edits count against the limits that hold a silence; previews have limits of their own.
        left = 0.0 if self._previews is None else await self.pacing.silence(self.row.to)
        return left or await self.store.take(account_of(self.editor), ticket, self._rates or ())

    async def _step(self) -> None:
        """One call of the platform. Nothing may interrupt it, because then its outcome would be unknown."""
        text = await self._beginning()
        fades = self._renewed_at is not None and self._renewed_at <= self.clock.monotonic()
        if self._ended.is_set() or (text == self._shown and not fades):
            return
        self._free.clear()
        try:
            if self.previewer is None or self._previews is None:
                await self._edit(text)
            else:
                await self._preview(self.previewer, text)
        except RateLimited as error:
            await self.pacing.keep(self.row.to, error)
            if self._previews is None:
                raise
            self._grown.set()  # when the silence is over
        finally:
            self._free.set()

    async def _preview(self, previewer: CanPreview, text: str) -> None:
        self._previewing = True
        self._renewed_at = self.clock.monotonic() + _RENEWED_AT * previewer.preview_seconds
        try:
            await previewer.preview(replace(self.row, text=text))
            self._shown = text
        except (ChatGone, RateLimited):
            raise
        except AdapterError as error:
            log.info("preview_lost", outbound=self.row.id, error=str(error))
            if self._previews is None:
                self._grown.set()  # previews were refused: go on by edits
        finally:
            self._previewing = False

    async def _edit(self, text: str) -> None:
        self._renewed_at = None
        shown_as = self.row.platform_message_id
        if shown_as is None:
            shown_as = await self._begun(text)
        else:
            await self.editor.edit(replace(self.row, text=text), shown_as)
        self._shown = text
        if shown_as != self.row.platform_message_id:
            self.row = replace(self.row, platform_message_id=shown_as)
            noted = shown_as
            await insist(lambda: self.store.note_streamed(self.row.id, noted), clock=self.clock, what="note_streamed")

    async def _begun(self, text: str) -> str:
        """Send the reply's first message. If its fate is unknown, note that, and mark the reply as a repeat."""
        try:
            return await self.editor.send(replace(self.row, text=text))
        except Ambiguous:
            await insist(lambda: self.store.note_streamed(self.row.id, None), clock=self.clock, what="note_streamed")
            raise

    async def _beginning(self) -> str:
        """As much as fits into one message. Only the beginning of the text is read: splitting all of a long text at
        every look would hold up everybody else."""
        if self._full is None:
            limits = self.editor.limits
            text = self._text if limits.text_units is None else self._text[: 2 * limits.text_units]
            first, *more = await self.aside(limits.split_reply, text) if limits.split_reply else [text]
            if not more:
                return first.rstrip() + (_GOES_ON if self._previews is None and not self._standing_in else "")
            self._full = first
        return self._full
