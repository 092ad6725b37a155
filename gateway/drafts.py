"""A reply while it is being written: one message that is edited as the text grows.

The row that will be the reply is stored before anything is shown, and keeps the platform's id of its
message: whoever ends the turn, be it after a crash, gives that very message its final text. What is
shown meanwhile is a comfort. A draft that fails is given up and takes nothing with it: whether its chat
is gone, the reply will find out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import structlog

from gateway.adapter import Adapter, CanEdit, account_of
from gateway.clock import Clock
from gateway.domain.chat import Outbound
from gateway.errors import AdapterError, RateLimited, StoreError
from gateway.store.base import InboxItem, Lease, Store
from gateway.store.insist import insist

log = structlog.get_logger(__name__)

_FIRST_LOOK = 0.7  # seconds: an answer that is ready by then is shown at once, and once
_GOES_ON = " …"


class Editor(Adapter, CanEdit, Protocol):
    """An adapter that can edit."""


@dataclass(slots=True, kw_only=True)
class Draft:
    """The draft of one reply. `row`: its row without a text. `run` is somebody's task until `end`."""

    editor: Editor
    store: Store
    clock: Clock
    lease: Lease
    item: InboxItem
    row: Outbound
    _text: str = ""
    _shown: str = ""
    _number: int = 0
    _grown: asyncio.Event = field(default_factory=asyncio.Event)
    _ended: asyncio.Event = field(default_factory=asyncio.Event)
    _free: asyncio.Event = field(default_factory=asyncio.Event)  # no call is on its way

    def __post_init__(self) -> None:
        self._free.set()

    def show(self, text: str) -> None:
        """The reply so far."""
        self._text = text
        self._grown.set()

    async def end(self) -> None:
        """Show no more. Returns when what was shown is noted, so that the reply can take its place."""
        self._ended.set()
        self._grown.set()
        await self._free.wait()

    async def run(self) -> None:
        """Show what `show` was given, until `end` or a failure."""
        try:
            await self.clock.sleep(_FIRST_LOOK)
            while await self._has_grown() and await self.store.closed(self.row.to) is None:
                await self._turn_comes()
                await self._step()
        except (AdapterError, StoreError) as error:
            log.info("draft_given_up", outbound=self.row.id, error=str(error))

    async def _has_grown(self) -> bool:
        await self._grown.wait()
        self._grown.clear()
        return not self._ended.is_set()

    async def _turn_comes(self) -> None:
        """Wait for a moment that the platform leaves to drafts."""
        rates = self.editor.draft_rates(self.row.to)
        self._number += 1
        ticket = f"{self.row.id} {self._number}"
        while not self._ended.is_set() and (wait := await self.store.take(account_of(self.editor), ticket, rates)):
            await self.clock.sleep(wait)

    async def _step(self) -> None:
        """One call of the platform, which nothing may break off: its outcome would not be known."""
        text = self._preview()
        if self._ended.is_set() or text == self._shown:
            return
        self._free.clear()
        try:
            await self._call(text)
            self._shown = text
        except RateLimited as error:
            bucket = self.editor.draft_rates(self.row.to)[-1 if error.everywhere else 0].bucket
            await self.store.hold_off(account_of(self.editor), bucket, error.retry_after)
            raise
        finally:
            self._free.set()

    async def _call(self, text: str) -> None:
        shown_as = self.row.platform_message_id
        if shown_as is None:
            opened = await self.store.open_reply(self.lease, self.item, self.row)
            shown_as = opened.platform_message_id
        if shown_as is None:
            shown_as = await self.editor.send(replace(self.row, text=text))
        else:
            await self.editor.edit(replace(self.row, text=text), shown_as)
        if shown_as != self.row.platform_message_id:
            self.row = replace(self.row, platform_message_id=shown_as)
            noted = shown_as
            await insist(lambda: self.store.note_streamed(self.row.id, noted), clock=self.clock, what="note_streamed")

    def _preview(self) -> str:
        """As much as one message holds."""
        limits = self.editor.limits
        parts: Sequence[str] = limits.split_reply(self._text) if limits.split_reply else [self._text]
        return parts[0] if len(parts) > 1 else parts[0].rstrip() + _GOES_ON
