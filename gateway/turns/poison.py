"""Keeps one event that meets a bug when it is received from stopping everything after it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import structlog
from msgspec import Struct

from gateway.domain.adapter import Accepted, Adapter
from gateway.domain.chat import Inbound
from gateway.runtime.errors import GatewayError, StoreUnavailable
from gateway.turns.reception import Reception

log = structlog.get_logger(__name__)

_BROKEN_REMEMBERED = 1_000  # events of an adapter that could not be stored because of a bug
TRIES = 10  # of such an event: half a minute of polling
_ALONE = 3  # tries between which others were stored, for an event whose writer cannot be told


class PoisonGuard:
    """Stands between an adapter and the reception.

    To the adapter, every failure to store a batch looks as if the store were away, even a bug. So the adapter confirms
    nothing, and tries again after a growing pause. (At another error, a platform's library would stop reading, or go on
    without a pause.) An event that meets a bug again and again, while others do not, is given up and its writer is
    told. Then the next ones can be read. It is given up only once the notice to the writer is stored, or other events
    were stored again and again: if the store is broken, every event meets a bug, maybe for hours."""

    def __init__(self, reception: Reception, adapter: Adapter) -> None:
        self._reception = reception
        self._adapter = adapter
        self._troubles: OrderedDict[str, _Trouble] = OrderedDict()  # of events that met a bug
        self._stored = 0  # batches since the start of which something was stored

    async def accept(self, batch: Sequence[Inbound]) -> Sequence[Accepted]:
        """See `gateway.domain.adapter.Accept`."""
        if self._troubles and any(self._is_given_up(inbound) for inbound in batch):
            return await self._one_by_one(batch)
        try:
            accepted = await self._reception.receive(self._adapter, batch)
        except StoreUnavailable:
            raise
        except Exception as error:
            return await (self._one_by_one(batch) if len(batch) > 1 else self._broke(batch[0], error))
        is_new = False
        for each in accepted:
            is_new |= each.status == "new"
            self._troubles.pop(each.event_id, None)
        self._stored += is_new
        return accepted

    async def _one_by_one(self, batch: Sequence[Inbound]) -> Sequence[Accepted]:
        """Try events in order, also those after one that cannot be given up yet: they may show that not every event
        meets the bug."""
        accepted: list[Accepted] = []
        held: StoreUnavailable | None = None
        for inbound in batch:
            if self._is_given_up(inbound):
                accepted.append(Accepted(event_id=inbound.event_id, status="refused"))
                continue
            try:
                accepted += await self.accept([inbound])
            except StoreUnavailable as error:
                trouble = self._troubles.get(inbound.event_id)
                if trouble is None or trouble.tries <= TRIES:
                    raise
                held = error
        if held is not None:
            raise held
        return accepted

    async def _broke(self, inbound: Inbound, error: Exception) -> Sequence[Accepted]:
        event = inbound.event_id
        if event not in self._troubles:
            log.exception("receipt_broke", adapter=self._adapter.name, inbound=event)
        trouble = self._troubles.setdefault(event, _Trouble(before=self._stored))
        trouble.tries += 1
        trouble.alone += self._stored > trouble.before
        trouble.before = self._stored
        if len(self._troubles) > _BROKEN_REMEMBERED:
            self._troubles.popitem(last=False)
        if trouble.tries <= TRIES or not self._stored or not await self._gave_up(inbound, trouble):
            why = str(error) if isinstance(error, GatewayError) else "an error in Legato itself; the log has more"
            raise StoreUnavailable(why) from error
        trouble.given_up = True
        log.error("message_given_up", adapter=self._adapter.name, inbound=event, tries=trouble.tries)
        return [Accepted(event_id=event, status="refused")]

    def _is_given_up(self, inbound: Inbound) -> bool:
        """Whether this event was given up. It may come again while others of its batch are still being tried."""
        trouble = self._troubles.get(inbound.event_id)
        return trouble is not None and trouble.given_up

    async def _gave_up(self, inbound: Inbound, trouble: _Trouble) -> bool:
        told = False
        try:
            told = await self._reception.give_up(inbound)
        except StoreUnavailable:
            return False
        except Exception as error:
            log.warning("not_told_of_giving_up", inbound=inbound.event_id, error=f"{type(error).__name__}: {error}")
        return told or trouble.alone >= _ALONE


class _Trouble(Struct, kw_only=True):
    """The history of an event that met a bug."""

    before: int  # batches that were stored until its last try
    tries: int = 0
    alone: int = 0  # tries since the one before which others were stored
    given_up: bool = False
