"""The search index beside the records: a message that is new is owed its entries, and of one that goes they are taken
away. Both are noted in the commit, so that another process makes good what this one could not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from gateway.domain.message import Message, text_of
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.tasks import Background
from gateway.store.kinds import MessageRecord
from gateway.store.redis import searching
from gateway.store.redis.endpoint import UNREACHABLE, Endpoint
from gateway.store.redis.partitions import EVERYWHERE
from gateway.store.redis.wire import Wire
from gateway.store.shared.searchable import every_term_of, kind_of
from gateway.store.steps.sessions import message

_MANY: Final = 64  # messages of a step, whose terms are made in a thread, as are those of
_LONG: Final = 16_384  # characters
_MOST_TERMS: Final = 400  # in one script


class SearchIndex:
    """Enters and takes away. `old`: the partitions whose entries another version made."""

    def __init__(self, wire: Wire, endpoint: Endpoint, background: Background) -> None:
        self.old = set[int]()
        self._wire = wire
        self._endpoint = endpoint
        self._background = background
        self._entering = searching.Entering(wire)

    def enter(self, messages: Sequence[tuple[MessageRecord, Message]]) -> None:
        """Enter messages that are stored by now."""
        if len(messages) > _MANY or sum([len(text_of(each)) for _, each in messages]) > _LONG:
            self._background.start(self._enter_many(messages), name="store entries")
            return
        for said, each in messages:
            self._entering.add(said.key, [(each, None)])

    async def _enter_many(self, messages: Sequence[tuple[MessageRecord, Message]]) -> None:
        terms = await asyncio.to_thread(lambda: [searching.entries(each) for _, each in messages])
        for (said, each), known in zip(messages, terms, strict=True):
            self._entering.add(said.key, [(each, known)])

    def finish(self) -> None:
        """Enter what waits for others."""
        self._entering.enter()

    async def make_good(self) -> None:
        """Do what another process owed, and make the entries of another version anew."""
        with suppress(StoreUnavailable, *UNREACHABLE):
            for partition in EVERYWHERE:
                await searching.make_good(self._wire, partition)
            await self.leave_gone()
            await searching.renew(self._wire, self._endpoint, self.old)

    async def left(self) -> int:
        """Return the number of messages in partitions with another version's entries."""
        return await searching.left(self._wire, self.old)

    async def leave_gone(self) -> None:
        """Take the entries of messages that are gone away."""
        for partition in EVERYWHERE:
            for number in await self._wire.ask(partition, "SMEMBERS", "gone"):
                text = await self._wire.ask(partition, "GET", f"gone:{number}")
                if text:
                    await self._leave(partition, number, text)
                await self._wire.run(partition, "forget_entries", "1", number)

    async def _leave(self, partition: int, number: str, text: str) -> None:
        said = searching.said_from(text)
        gone = message(said)
        kind = kind_of(gone)
        if kind is None:
            return
        terms = await asyncio.to_thread(lambda: searching.with_starts(every_term_of(gone)))
        owner = searching.owner_of(said.key.text, kind)
        for start in range(0, len(terms), _MOST_TERMS):
            some = searching.listed(terms[start : start + _MOST_TERMS])
            await self._wire.run(partition, "leave_index", owner, number, *some)
