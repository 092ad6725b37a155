"""Keeps an event that meets a bug at receipt from stopping everything that comes after it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from gateway.domain.adapter import Accepted, Adapter
from gateway.domain.chat import Inbound
from gateway.runtime.errors import GatewayError, StoreUnavailable
from gateway.turns.turn import Turns

log = structlog.get_logger(__name__)

_BROKEN_REMEMBERED = 1_000  # events of an adapter that could not be stored because of a bug
TRIES = 10  # of such an event; by polling, half a minute
_ALONE = 3  # of them between which others were stored, where nobody can be told


class PoisonGuard:
    """Where one adapter hands over what it read. Whatever keeps a batch from being stored, also a bug, is to the
    adapter a store that is away: it confirms nothing, and tries again after a pause that grows. A platform's
    library that met another error would end its reading, or go on without any pause.

    What meets a bug again and again, when others do not, is given up, and who wrote it is told: what comes after
    it would never be read. That they are told is stored first, or others must have been stored again and again: a
    store that fails in a way of its own is a bug to everything, and for hours."""

    def __init__(self, turns: Turns, adapter: Adapter) -> None:
        self._turns = turns
        self._adapter = adapter
        self._troubles: OrderedDict[str, _Trouble] = OrderedDict()  # of events that met a bug
        self._stored = 0  # batches since the start of which something was stored

    async def accept(self, batch: Sequence[Inbound]) -> Sequence[Accepted]:
        """See `gateway.domain.adapter.Accept`."""
        if any(self._is_given_up(inbound) for inbound in batch):
            return await self._one_by_one(batch)
        try:
            accepted = await self._turns.receive(self._adapter, batch)
        except StoreUnavailable:
            raise
        except Exception as error:
            return await (self._one_by_one(batch) if len(batch) > 1 else self._broke(batch[0], error))
        self._stored += any(each.status == "new" for each in accepted)
        for each in accepted if self._troubles else ():
            self._troubles.pop(each.event_id, None)
        return accepted

    async def _one_by_one(self, batch: Sequence[Inbound]) -> Sequence[Accepted]:
        """In their order; when one cannot be given up yet, those after it are tried, too: they may show that not
        everything meets the bug."""
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
            why = str(error) if isinstance(error, GatewayError) else "an error in Legato itself, which its log tells of"
            raise StoreUnavailable(why) from error
        trouble.given_up = True
        log.error("message_given_up", adapter=self._adapter.name, inbound=event, tries=trouble.tries)
        return [Accepted(event_id=event, status="refused")]

    def _is_given_up(self, inbound: Inbound) -> bool:
        """Whether it was: what it came with may still be tried, and then it comes again."""
        trouble = self._troubles.get(inbound.event_id)
        return trouble is not None and trouble.given_up

    async def _gave_up(self, inbound: Inbound, trouble: _Trouble) -> bool:
        told = False
        try:
            told = await self._turns.reception.give_up(inbound)
        except StoreUnavailable:
            return False
        except Exception as error:
            log.warning("not_told_of_giving_up", inbound=inbound.event_id, error=f"{type(error).__name__}: {error}")
        return told or trouble.alone >= _ALONE


@dataclass(slots=True, kw_only=True)
class _Trouble:
    """Of an event that met a bug. `before`: batches that were stored until it did last. `alone`: its tries since the
    one before which others were stored."""

    before: int
    tries: int = 0
    alone: int = 0
    given_up: bool = False
