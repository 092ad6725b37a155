"""What a tool is, and what it is given.

A tool declares how it behaves when a crash interrupts it:
`read_only`: it changes nothing, so it is simply run again.
`idempotent`: running it twice leaves what running it once would, so it is simply run again.
Neither: its intent is stored before it runs, and after a crash it is not run again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from gateway.clock import Clock
from gateway.domain.session import Session, Todo
from gateway.store.base import Found


class Recall(Protocol):
    """Search in what the caller may see."""

    async def __call__(self, words: str, limit: int) -> Sequence[Found]: ...


@dataclass(slots=True, kw_only=True)
class ToolContext:
    """What a call may use. `todos` is the one thing a tool may change: replace the tuple, and it is
    stored with the step."""

    session: Session
    clock: Clock
    recall: Recall
    todos: tuple[Todo, ...] = field(default=())


class Tool(Protocol):
    """One function the model may call. `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    read_only: bool
    idempotent: bool
    timeout: float  # seconds

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """The result as the model sees it. Raises ToolError with a sentence for the model."""
