"""What comes by itself, while no request waits for it: a reminder, a text of another program, the answer to an event.

It begins its person's next answer, in whichever conversation. Until a client was given that answer, a note of the
account names its row, so neither a restart nor a refusal loses it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct, field, json

from gateway.domain.adapter import Notebook
from gateway.domain.chat import ENDED, EVENT, HELPER, SCHEDULED, Outbound
from gateway.runtime.errors import StoreUnavailable

_AT_ONCE: Final = 20  # rows before one answer
MOST: Final = 1_000  # rows that wait for a person: beyond that, the oldest are in the store alone
_NOTE: Final = "missed "
_BEGUN_BY_ITSELF: Final = (SCHEDULED, ENDED, HELPER, EVENT)  # the events of turns that no message began


class Missed(Struct):
    """The rows that wait, by person: the time of each by its id. `_in_hand`: those of answers that are under way."""

    notebook: Notebook | None = None
    _rows: dict[str, dict[str, float]] = field(default_factory=dict)
    _in_hand: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self._rows)

    async def begin(self) -> None:
        """Read what an earlier process left. Raises StoreUnavailable."""
        self._rows.clear()
        for note, text in (await self.notebook.read() if self.notebook is not None else {}).items():
            if note.startswith(_NOTE):
                person, at = json.decode(text, type=tuple[str, float])
                self._rows.setdefault(person, {})[note.removeprefix(_NOTE)] = at

    async def keep(self, row: Outbound) -> None:
        """Keep a row for its person. Raises StoreUnavailable."""
        if self.notebook is not None:
            await self.notebook.write({_NOTE + row.id: json.encode((row.to.chat, row.created_at)).decode()})
        there = self._rows.setdefault(row.to.chat, {})
        there[row.id] = row.created_at
        if len(there) > MOST:
            await self.shown(row.to.chat, [min(there, key=there.__getitem__)])

    def take(self, person: str) -> tuple[Sequence[str], int]:
        """The ids of a person's oldest rows, for one answer, and how many are left."""
        there = self._rows.get(person, {})
        found = sorted((each for each in there if each not in self._in_hand), key=there.__getitem__)
        self._in_hand.update(found[:_AT_ONCE])
        return found[:_AT_ONCE], len(found[_AT_ONCE:])

    def waits(self, row: Outbound) -> bool:
        """Whether nobody was shown a row yet."""
        return row.id in self._rows.get(row.to.chat, {})

    def put_back(self, ids: Collection[str]) -> None:
        """The answer has ended: what was not shown waits for another one."""
        self._in_hand.difference_update(ids)

    async def shown(self, person: str, ids: Collection[str]) -> None:
        """A client was given these."""
        there = self._rows.get(person, {})
        for each in ids:
            there.pop(each, None)
        if not there:
            self._rows.pop(person, None)
        if self.notebook is not None:
            with suppress(StoreUnavailable):  # then they are shown once more after a restart
                await self.notebook.write(dict.fromkeys(_NOTE + each for each in ids))


def comes_by_itself(row: Outbound) -> bool:
    """Whether no request ever asked for it. Nobody is told that a session in a thread has ended: its client continues
    with the history."""
    if row.answers:
        return row.answers.startswith(_BEGUN_BY_ITSELF)
    return row.kind in ("reply", "reminder") or (row.kind == "notice" and row.to.thread is None)
