"""The backend in memory, for tests: steps run at once, and nothing outlives the process but the space itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Any, TypeVar

from gateway.domain.chat import ChatAddress, SessionKey
from gateway.domain.message import said_in
from gateway.runtime.errors import StoreUnavailable
from gateway.store.backend import News, nothing
from gateway.store.draft import Draft
from gateway.store.fleeting import MemoryRecords
from gateway.store.kinds import MESSAGE, MESSAGES
from gateway.store.records import Found, Meaning, Passage, Unembedded, Vector
from gateway.store.shared import ranking
from gateway.store.shared.searchable import kind_of
from gateway.store.shared.vectors import size_of
from gateway.store.space import MANY, Caller, Key, Kind
from gateway.store.steps import sessions
from tests.support.memory_search import MemoryIndex

T = TypeVar("T")


class SearchedRecords(MemoryRecords):
    """With vectors of the messages."""

    def __init__(self) -> None:
        super().__init__()
        self.vectors: dict[int, Vector] = {}  # by the numbers of messages
        self.vectors_of = ("", 0)  # the model that made them, and their length

    def _write(self, kind: Kind[T], key: Key, record: T | None) -> None:
        super()._write(kind, key, record)
        if kind is MESSAGE and record is None:
            self.vectors.pop(int(key), None)


class MemoryBackend:
    """A space, and vectors beside it. Another backend on the same space is another process."""

    is_sole = True
    listens = True
    is_beside = False
    life = 10.0

    def __init__(self, space: SearchedRecords | None = None) -> None:
        self.space = space or SearchedRecords()
        self._hear: Callable[[News], None] = nothing
        self._is_open = False

    async def open(self, hear: Callable[[News], None], caller: Callable[[str], Caller]) -> str:
        """Take the space."""
        self._hear, self._is_open = hear, True
        number = self.space.number()
        return f"process {number}"

    async def aclose(self) -> None:
        """Let go of the space."""
        self._is_open = False

    async def run(
        self,
        step: Callable[..., T],
        *args: Any,
        done: Callable[[T], None] = nothing,
        failed: Callable[[], None] = nothing,
        abandoned: Callable[[T], None] = nothing,
    ) -> T:
        """Run a step at once. As with a real store its caller hears of it a moment later, and may be gone by then."""
        if not self._is_open:
            failed()
            raise StoreUnavailable("The store is closed.")
        try:
            result, told = self.space.run(step, *args)
        except BaseException:
            failed()
            raise
        future = asyncio.get_running_loop().create_future()

        def deliver() -> None:
            done(result)
            if future.cancelled():
                abandoned(result)
            else:
                future.set_result(None)
            for news in told:
                self._hear(news)

        asyncio.get_running_loop().call_soon(deliver)
        try:
            await future
        except asyncio.CancelledError:
            if not future.cancelled():  # after the result was handed over: nobody will see it
                abandoned(result)
            raise
        return result

    run_beside = run

    async def look(self, step: Callable[..., T], *args: Any) -> T:
        """Run a step that only looks."""
        if not self._is_open:
            raise StoreUnavailable("The store is closed.")
        result, _ = self.space.run(step, *args)
        return result

    read = look

    def is_sure(self, chat: ChatAddress) -> bool:
        """Whoever has the place for itself is never taken for dead."""
        return True

    async def scrub(self) -> None:
        """Nothing is left of what was dropped."""

    async def unindexed(self) -> int:
        """No entries are kept."""
        return 0

    # -- search -----------------------------------------------------------------------------

    async def search(
        self, words: str, key: SessionKey | None, limit: int, now: float, meaning: Meaning | None
    ) -> list[Passage]:
        """The passages that answer best."""
        if meaning is not None and meaning.model != self.space.vectors_of[0]:
            meaning = None
        index_of = partial(MemoryIndex, Draft(self.space), key, vectors=self.space.vectors)
        return await ranking.search(index_of, words, limit, now, meaning)

    async def holding(self, values: Sequence[str], key: SessionKey, limit: int) -> list[list[Found]]:
        """For each value the messages of the key that hold it."""
        return await ranking.holding([MemoryIndex(Draft(self.space), key, None)], values, limit)

    async def around(self, key: SessionKey, message_id: str, reach: int) -> list[Found]:
        """A message of the key among its neighbours; empty for any other message."""
        number = int(message_id) if message_id.isdecimal() else 0
        said = self.space.get(MESSAGE, number)
        if said is None or said.key != key:
            return []
        return await ranking.around(MemoryIndex(Draft(self.space), key, "said"), number, reach)

    async def unembedded(self, model: str, length: int, limit: int) -> list[Unembedded]:
        """Messages of one conversation that have no vector, the newest ones first."""
        known = self.space.vectors if self._is_of(model, length) else {}
        lanes = self.space.names(MESSAGES)
        said = [
            each for lane in lanes for each in Draft(self.space).last(MESSAGES, lane, MANY) if each.number not in known
        ]
        said.sort(key=lambda each: -each.number)
        found = []
        for each in takewhile(lambda one: one.key == said[0].key, said[:limit]):
            message = sessions.message(each)
            text = said_in(message) if kind_of(message) == "said" else ""
            found.append(Unembedded(message_id=str(each.number), key=each.key, session_id=each.session_id, text=text))
        return found

    async def keep_vectors(self, model: str, key: SessionKey, kept: Mapping[str, Vector]) -> None:
        """Keep the vectors of messages that are still there."""
        size = size_of(kept)
        if not self._is_of(model, size):
            self.space.vectors, self.space.vectors_of = {}, (model, size)
        self.space.vectors_of = (model, size or self.space.vectors_of[1])
        there = {int(name): each for name, each in kept.items() if self.space.get(MESSAGE, int(name)) is not None}
        self.space.vectors.update(there)

    def _is_of(self, model: str, length: int) -> bool:
        of, known = self.space.vectors_of
        return of == model and not (length and known and length != known)
