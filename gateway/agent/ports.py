"""The services that the loop needs from the rooms above it, as small Protocols."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from gateway.agent.conversation import Conversation
from gateway.agent.running import Phase
from gateway.agent.tools.base import Question
from gateway.domain.approval import Choices, Labels, Verdict
from gateway.domain.message import Message
from gateway.domain.session import Compaction
from gateway.store.records import ToolIntent


class TranscriptWriter(Protocol):
    """Stores the steps of a turn as they happen. With every method fresh messages become stored ones, with ids."""

    async def begin_tools(self, conversation: Conversation, intents: Sequence[ToolIntent]) -> None:
        """Store the step so far and the intents, before any tool runs."""

    async def record_step(self, conversation: Conversation) -> None:
        """Store the messages that the step added."""

    async def continue_(
        self, conversation: Conversation, transcript: Sequence[Message], compaction: Compaction
    ) -> None:
        """Open the continuation that holds `transcript`, and move `conversation` into it."""


class Observer(Protocol):
    """Watches a turn as it happens."""

    def phase(self, phase: Phase, step: int = 0, tools: Sequence[str] = ()) -> None:
        """Hear of the turn's present activity, which is also a sign of life."""

    def alive(self) -> None:
        """Hear a sign of life: the turn is not stuck."""

    def pausing(self, seconds: float) -> None:
        """The model did not answer, and is asked again in so many seconds."""

    async def tell(self, text: str) -> None:
        """Show the person a notice."""

    def asking(self) -> AbstractAsyncContextManager[None]:
        """Return a block during which the turn waits for a person and owes no sign of life."""


class Reply(Protocol):
    """The reply of a turn, while it grows."""

    async def text(self, so_far: str) -> None:
        """The reply, as far as it is written."""

    async def set_aside(self) -> str:
        """Close the reply so far as a message of its own and return its id; later text is another message."""

    def standing_in(self) -> str:
        """What the person reads in the reply's place, if that is a line about a long wait, in words that may stay
        there; "" if there is none."""


class Questions(Protocol):
    """Asks the person of the turn. `call` names a tool call among all of the turn's."""

    def has_asked(self, call: str) -> bool:
        """Whether this turn asked about the call, in this process or an earlier one."""

    async def ask(self, call: str, question: Question, said: str, said_as: str | None) -> None:
        """Ask the person a question, after the text that the model `said` ("": none) under the id `said_as`."""

    async def allowed(self, deeds: Mapping[str, str], people: Collection[str]) -> Collection[str]:
        """Return those of these calls, with what each does, that an earlier yes of the person's covers. Their answer
        is yes. `people`: whose words the turn holds."""

    async def answer(self, call: str) -> Verdict:
        """Wait for the decision and return it."""

    async def put(
        self, text: str, labels: Labels | None, choices: Choices, said: str, said_as: str | None
    ) -> tuple[Verdict, str]:
        """Ask a question in the middle of a call, and wait for the decision. Without `labels` it is answered in words,
        which follow the decision."""
