"""What the loop needs from the rooms above it, as small Protocols."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from gateway.agent.conversation import Conversation
from gateway.agent.running import Phase
from gateway.domain.approval import Verdict
from gateway.domain.message import Message
from gateway.domain.session import Compaction
from gateway.store.records import ToolIntent


class TranscriptWriter(Protocol):
    """Stores what a turn does, as it does it. Every method empties what it stored from
    `conversation.fresh` and gives the stored messages their ids."""

    async def begin_tools(self, conversation: Conversation, intents: Sequence[ToolIntent]) -> None:
        """Store the step so far and the intents, before any tool runs."""

    async def record_step(self, conversation: Conversation) -> None:
        """Store what the step added."""

    async def continue_(
        self, conversation: Conversation, transcript: Sequence[Message], compaction: Compaction
    ) -> None:
        """Open the continuation that holds `transcript`, and move `conversation` into it."""


class Observer(Protocol):
    """Watches a turn as it happens."""

    def phase(self, phase: Phase, step: int = 0, tools: Sequence[str] = ()) -> None:
        """What the turn is doing now. Also proof that it is alive."""

    def alive(self) -> None:
        """Something happened: the turn is not stuck."""

    async def text(self, so_far: str) -> None:
        """The reply as far as it is written."""

    async def tell(self, text: str) -> None:
        """Show the person a notice."""

    async def set_aside(self) -> str:
        """What the model has said stands by itself, under the id that this gives; what it says from here on
        is another message."""

    def asking(self) -> AbstractAsyncContextManager[None]:
        """Meanwhile a person is waited for, and no sign of life is due."""


class Questions(Protocol):
    """Asks the person whom the turn answers. `call` names a tool call among all of the turn's."""

    def has_asked(self, call: str) -> bool:
        """Whether this turn has put a question about the call, in this process or an earlier one."""

    async def ask(self, call: str, question: str, said: str, said_as: str | None) -> None:
        """Put a question to them, behind what the model `said` ("": nothing), which may have an id already."""

    async def answer(self, call: str) -> Verdict:
        """Wait until the question is decided."""


class Jobs(Protocol):
    """Runs work beside the turns, at most one of a name."""

    def start_once(self, job: Coroutine[Any, Any, None], *, name: str) -> bool:
        """Begin it, unless one of this name runs: False then."""

    async def ended(self, name: str) -> None:
        """Return when none of this name runs."""

    def stop(self, name: str) -> None:
        """Cancel the one of this name, if there is one."""
