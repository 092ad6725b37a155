"""What a store needs of the place where its records lie: a way to run steps there, and a search."""

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
    """One place with records. `hear` is given each piece of news that a step told in any process, on the event loop;
    also ("time", seconds since the epoch) where several processes go by one clock, and ("missed",) where news may have
    been missed."""

    @property
    def is_sole(self) -> bool:
        """Whether this process has the place for itself."""

    @property
    def is_beside(self) -> bool:
        """Whether the place is looked at beside the process that has it for itself."""

    @property
    def listens(self) -> bool:
        """Whether news of other processes arrive now."""

    @property
    def life(self) -> float:
        """For how many seconds a process counts as alive of which nothing is heard."""

    async def open(self, hear: Callable[[News], None], caller: Callable[[str], Caller]) -> str:
        """Take the place; return the name of this process, which no other ever had there. `caller` says who it is."""

    async def aclose(self) -> None:
        """Finish what was begun, and let go of the place."""

    async def run(
        self,
        step: Callable[..., T],
        *args: Any,
        done: Callable[[T], None] = nothing,
        failed: Callable[[], None] = nothing,
        abandoned: Callable[[T], None] = nothing,
    ) -> T:
        """Run a step that may put records; its result, once all of it is durable.

        On the loop, whether or not the caller still waits: `done(result)` or `failed()`, then `abandoned(result)` if
        the caller was cancelled and will never see the result."""

    async def run_beside(self, step: Callable[..., T], *args: Any) -> T:
        """Run a step that may come from a process beside the one that has the place for itself."""

    async def look(self, step: Callable[..., T], *args: Any) -> T:
        """Run a step that only looks, at a few records."""

    async def read(self, step: Callable[..., T], *args: Any) -> T:
        """Run a step that only looks, at any number of records."""

    def is_sure(self, chat: ChatAddress) -> bool:
        """Whether nobody can have taken this process, and what it claimed of this chat, for dead."""

    async def scrub(self) -> None:
        """Leave nothing of what was dropped in unused parts of the place, now or as soon as that is possible."""

    async def unindexed(self) -> int:
        """Count the messages whose search entries another version made, and which are made anew."""

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
