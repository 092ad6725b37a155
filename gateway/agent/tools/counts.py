"""Counts of tool calls, over restarts and by all processes of a store: rarely used tools are hidden first.

Calls are counted in memory and kept once in a while, so a turn pays nothing for them. A crash loses the last minute's
counts, and two processes that keep theirs in one moment lose some: a count decides about room in a prompt, not more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

import structlog

from gateway.runtime.errors import StoreUnavailable
from gateway.store.port import Documents

log = structlog.get_logger(__name__)

KEEP_EVERY: Final = 60.0  # seconds
_ACCOUNT: Final = "tool calls"  # their notes in the store


class ToolCounts:
    """The calls of each tool until now, by name."""

    def __init__(self) -> None:
        self._all: Counter[str] = Counter()
        self._new: Counter[str] = Counter()  # not in the store yet

    def note(self, names: Iterable[str]) -> None:
        """These tools were called."""
        for name in names:
            self._all[name] += 1
            self._new[name] += 1

    def of(self, name: str) -> int:
        """Return how often a tool was called."""
        return self._all[name]

    async def learn(self, store: Documents) -> None:
        """Take over the stored counts. A store that does not answer costs the counts and nothing else."""
        try:
            self._all = await _kept(store) + self._new
        except StoreUnavailable as error:
            log.warning("tool_calls_not_read", error=str(error))

    async def keep(self, store: Documents) -> None:
        """Add the new counts to the store."""
        if not self._new:
            return
        new, self._new = self._new, Counter()
        try:
            kept = await _kept(store) + new
            await store.set_notes(_ACCOUNT, {name: str(kept[name]) for name in new})
        except StoreUnavailable as error:
            self._new += new
            log.warning("tool_calls_not_kept", error=str(error))
        else:
            self._all = kept + self._new


async def _kept(store: Documents) -> Counter[str]:
    notes = await store.notes(_ACCOUNT)
    return Counter({name: int(count) for name, count in notes.items() if count.isdecimal()})
