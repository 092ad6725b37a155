"""What a store needs from the place where its records are kept: a way to run steps there, and a search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from gateway.domain.chat import ChatAddress, SessionKey
from gateway.store.records import Found, Meaning, Passage, Unembedded, Vector
from gateway.store.space import Caller

T = TypeVar("T")

News = tuple[str, ...]  # a topic and its words


def nothing(*_: Any) -> None:
    """The default of a callback."""


class Backend(Protocol):
    """One place with records. `hear` gets every piece of news that a step tells, in any process, on the event loop.
    Where several processes share one clock it also gets ("time", seconds since the epoch), and ("missed",) when news
    may have been missed."""

    @property
    def is_sole(self) -> bool:
        """Whether no other process uses the place."""

    @property
    def is_beside(self) -> bool:
        """Whether this process only looks, while another one owns the place."""

    @property
    def listens(self) -> bool:
        """Whether news from other processes arrive at the moment."""

    @property
    def life(self) -> float:
        """How many seconds of silence from a process until it counts as dead."""

    async def open(self, hear: Callable[[News], None], caller: Callable[[str], Caller]) -> str:
        """Take the place, and return a name for this process that no other process ever had. `caller` says who it
        is."""

    async def aclose(self) -> None:
        """Finish what has begun, and give the place up."""

    async def run(
        self,
        step: Callable[..., T],
        *args: Any,
        done: Callable[[T], None] = nothing,
        failed: Callable[[], None] = nothing,
        abandoned: Callable[[T], None] = nothing,
    ) -> T:
        """Run a step that may put records, and return its result once everything is durable.

        Call on the event loop, even if the caller no longer waits: `done(result)` or `failed()`, and then
        `abandoned(result)` if the caller was cancelled and will never see the result.
        """

    async def run_beside(self, step: Callable[..., T], *args: Any) -> T:
        """Run a step that may come from a process beside the owner."""

    async def look(self, step: Callable[..., T], *args: Any) -> T:
        """Run a step that only looks, at a few records."""

    async def read(self, step: Callable[..., T], *args: Any) -> T:
        """Run a step that only looks, at any number of records."""

    def is_sure(self, chat: ChatAddress) -> bool:
        """Whether no other process can believe that this one died, and take what it claimed in this chat."""

    async def scrub(self) -> None:
        """Overwrite what was dropped, now or as soon as possible."""

    async def unindexed(self) -> int:
        """Count the messages whose search entries were made by another version, and are made again."""

    async def search(
        self, words: str, key: SessionKey | None, limit: int, now: float, meaning: Meaning | None
    ) -> list[Passage]:
        """`ReportStore.search`."""

    async def holding(self, values: Sequence[str], key: SessionKey, limit: int) -> list[list[Found]]:
        """`ReportStore.holding`."""

    async def around(self, key: SessionKey, message_id: str, reach: int) -> list[Found]:
        """`ReportStore.around`."""

    async def unembedded(self, model: str, length: int, limit: int) -> list[Unembedded]:
        """`VectorStore.unembedded`."""

    async def keep_vectors(self, model: str, key: SessionKey, kept: Mapping[str, Vector]) -> None:
        """`VectorStore.keep_vectors`."""
