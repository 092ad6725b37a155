"""The port of tools.

A tool declares how it behaves when a crash interrupts it:
`read_only`: it changes nothing, so it is simply run again.
`idempotent`: running it twice has the effect of running it once, so it is simply run again.
Neither: its intent is stored before it runs, and after a crash it is not run again.

A tool whose calls a person must allow says so (`NeedsApproval`), and runs only after their yes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from gateway.domain.file import KeptFile
from gateway.domain.session import Session, Todo
from gateway.domain.settings import Section
from gateway.runtime.clock import Clock
from gateway.store.records import Passage

S = TypeVar("S", bound=Section)


class Recall(Protocol):
    """Search in the conversations of the caller: the passages that answer best, best first."""

    async def __call__(self, words: str, limit: int) -> Sequence[Passage]: ...


class Files(Protocol):
    """The files of the caller's conversation."""

    async def listed(self, limit: int) -> Sequence[KeptFile]:
        """The files that were sent in it, newest first."""

    async def content(self, file: KeptFile) -> bytes | None:
        """The content of one of them; None if it is gone."""

    async def send(self, name: str, mime: str, content: bytes, caption: str = "") -> None:
        """Show a file to the person, with a caption in Markdown. Raises ToolError if the platform shows no files."""


@dataclass(slots=True, kw_only=True)
class ToolContext:
    """Everything that a call may use. A tool may change one thing: it replaces the tuple `todos`, which is stored with
    the step."""

    session: Session
    clock: Clock
    recall: Recall
    files: Files
    admin: bool = False  # whether the person whom the turn answers is one
    todos: tuple[Todo, ...] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHost:
    """Everything that a tool is made with. A module's `TOOLS` are functions that take a host and return a tool, or None
    if the tool is switched off. `sections` are the tools' sections of the configuration; `home` is the gateway's own
    folder, an absolute path; `redact` takes secrets out of a text."""

    sections: Sequence[Section] = ()
    clock: Clock
    redact: Callable[[str], str]
    home: Path

    def settings(self, kind: type[S]) -> S:
        """The section of this kind, or its defaults."""
        return next((each for each in self.sections if isinstance(each, kind)), kind())


class Tool(Protocol):
    """One function that the model may call. `parameters` is a JSON schema (see `schema`)."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    read_only: bool
    idempotent: bool
    timeout: float  # seconds

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """The result for the model. Raises ToolError with a sentence for the model."""


@runtime_checkable
class NeedsApproval(Protocol):
    """A tool with calls that a person must allow. `admins_only`: only an admin's turn may call it."""

    admins_only: bool

    def question(self, arguments: Mapping[str, Any]) -> str | None:
        """The question before this call, in one line that hides nothing of it; None: the call needs no yes. Depends on
        the arguments alone. Raises ToolError for a call that would not be run at all."""


@runtime_checkable
class Recalls(Protocol):
    """A tool whose results only repeat earlier words. They are marked, so that no search finds its own finds and no
    summary takes looked-up words for said ones."""

    recalls: bool


def schema(*required: str, **properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """The JSON schema of a tool's arguments: an object with these properties and no others."""
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, **needed, "additionalProperties": False}
