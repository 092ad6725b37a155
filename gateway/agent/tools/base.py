"""The port of tools.

A tool declares how it behaves when a crash interrupts it:
`read_only`: it changes nothing, so it is simply run again.
`idempotent`: running it twice has the effect of running it once, so it is simply run again.
Neither: its intent is stored before it runs, and after a crash it is not run again.

A tool whose calls a person must allow says so (`NeedsApproval`), and runs only after their yes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeVar, runtime_checkable

from msgspec import Struct, field

from gateway.agent.background import BackgroundCommands
from gateway.agent.delegation import Order
from gateway.agent.memory.memories import TurnMemory
from gateway.agent.provenance import Kept, Provenance
from gateway.agent.skills.catalogue import Skills
from gateway.agent.workspace.folders import Turn, Workspaces, WorkspaceSettings
from gateway.domain.adapter import HasTopics
from gateway.domain.approval import Choices, Labels, Verdict
from gateway.domain.chat import KeptFile, Source
from gateway.domain.message import Message
from gateway.domain.reminder import Reminder, ReminderKind, WhenLate
from gateway.domain.session import Session, Todo
from gateway.domain.settings import Section
from gateway.domain.when import When
from gateway.runtime.aside import RunsAside, at_once
from gateway.runtime.clock import Clock
from gateway.store.records import Found, Passage

S = TypeVar("S", bound=Section)


Recall = Callable[[str, int], Awaitable[Sequence[Passage]]]
"""Search for words in the conversations of the caller: so many passages that answer best, best first."""

Around = Callable[[str, int], Awaitable[Sequence[Found]]]
"""A message of the caller's conversations by its id, with as many before and after it, oldest first; empty if there is
none."""

Unindexed = Callable[[], Awaitable[int]]
"""The number of messages that no search finds yet, because an upgrade's index is still being made."""


class LooksBack(Protocol):
    """What the tools for earlier messages ask for."""

    @property
    def unindexed(self) -> Unindexed: ...

    @property
    def recall(self) -> Recall: ...

    @property
    def around(self) -> Around: ...


FOR_PEOPLE: Final = 86_400.0  # seconds: longer than any question to a person stands


class Files(Protocol):
    """The files of the caller's conversation."""

    async def listed(self, limit: int) -> Sequence[KeptFile]:
        """The files that were sent in it, newest first."""

    async def content(self, file: KeptFile) -> bytes | None:
        """The content of one of them; None if it is gone."""

    async def output(self, name: str) -> KeptFile | None:
        """The file of this name in which a tool's result was kept."""

    async def keep(self, tool: str, text: str) -> str:
        """Keep the result of a tool as a file, and return the file's name."""

    async def add(self, name: str, mime: str, content: bytes) -> KeptFile:
        """Keep a file in the conversation without showing it."""

    def must_show(self, size: int) -> None:
        """Raise ToolError if the platform shows no files of this size."""

    async def send(self, name: str, mime: str, content: bytes, caption: str = "", *, kind: str = "sent") -> None:
        """Show a file to the person, with a caption in Markdown; its `ref` begins with `kind`. Raises ToolError if the
        platform shows no files."""

    async def send_together(self, files: Sequence[tuple[str, str, bytes]], caption: str = "") -> None:
        """The same of several (name, type, content), in one message where the platform can."""

    async def show(self) -> None:
        """Show what was sent since the last time, together as well."""

    async def show_left(self) -> None:
        """Show what an earlier process was sent in this turn, and did not show."""


class Polls(Protocol):
    """The polls of the caller's conversation."""

    async def make(self, question: str, answers: Sequence[str], *, several: bool) -> None:
        """Show a poll, to which a person may give one or several answers."""

    async def close(self, question: str) -> str:
        """End the poll of this question; returns its counts. Raises ToolError."""


class ReminderBook(Protocol):
    """The reminders of the caller's conversation, for the person whom the turn answers. Methods raise UserError if they
    cannot do their work."""

    async def zone(self) -> str:
        """The person's time zone."""

    async def set_zone(self, name: str) -> str:
        """Keep the person's time zone."""

    async def add(
        self, *, kind: ReminderKind, text: str, when: When, zone: str, when_late: WhenLate, cause: str, origin: str
    ) -> Reminder:
        """Store a reminder. The same `cause` in the same turn is one reminder. `origin`: as a Reminder has it."""

    def unreached(self, made: Reminder) -> str:
        """Say that a new reminder may come too late for its platform to show it; "" if it will not."""

    async def listed(self) -> Sequence[Reminder]:
        """The open ones by their number, then the latest that are over."""

    async def cancel(self, number: int) -> Reminder:
        """Cancel the reminder: it fires no more."""

    async def snooze(self, number: int, until: float) -> Reminder:
        """Put the reminder off: it fires (again) at this moment."""

    async def skip(self, number: int) -> Reminder:
        """The next moment of its rule is left out."""

    async def resume(self, number: int) -> Reminder:
        """Continue one that was paused."""

    async def reword(self, number: int, text: str | None, when: When | None, zone: str, origin: str) -> Reminder:
        """Another text (of this `origin`), another time, or both."""


Delegates = Callable[[Order], Awaitable[str]]
"""Hands a task to a helper; returns its answer, or at once that it works in the background."""


AsksPerson = Callable[[str, Labels | None, Choices], Awaitable[tuple[Verdict, str]]]
"""Puts a question to the caller in the middle of a call, and waits: for one of two labels, a yes and a no; or without
them for words, among the choices. Returns the decision, and the words."""


Buys = Callable[..., AbstractAsyncContextManager[Callable[..., None]]]
"""`Metering.buying`: pays for something beside models."""


class ToolContext(Struct, kw_only=True):
    """Everything that a call may use. A tool may change two things, which are stored with the step: it replaces the
    tuple `todos`, and `found`, the names of those `hidden` tools that are on offer from the next step on. And
    `sources`, the last number that a call of this step gave to a source."""

    session: Session
    clock: Clock
    recall: Recall
    around: Around
    unindexed: Unindexed
    files: Files
    reminders: ReminderBook
    memory: TurnMemory
    source: Source | None = None  # the person whom the turn answers
    polls: Polls | None = None
    delegate: Delegates | None = None
    ask: AsksPerson | None = None
    buying: Buys | None = None
    topics: HasTopics | None = None  # of the group in which the turn answers
    told: Callable[[str], None] = lambda _: None  # shows how far a call is, in a few words
    provenance: Provenance = field(default_factory=Provenance)  # of what the turn has read
    admin: bool = False  # whether the person whom the turn answers is one
    turn: str = ""  # the id of the item that the turn answers
    todos: tuple[Todo, ...] = field(default=())
    hidden: Mapping[str, str] = {}  # the tools without room in the prompt, with their descriptions
    found: tuple[str, ...] = ()
    newest_first: Callable[[], Iterable[Message]] = tuple  # the transcript, without the results of this step
    sources: int = 0

    @property
    def changes(self) -> Turn:
        """The turn, as what it changes in the workspace is kept."""
        return Turn(id=self.turn, session=self.session.id, at=self.clock.now())


class ToolHost(Struct, frozen=True, kw_only=True):
    """Everything that a tool is made with. A module's `TOOLS` are functions that take a host and return a tool, or None
    if the tool is switched off. `sections`: the tools' sections of the configuration. `home`: the gateway's own folder,
    an absolute path. `own`: that, and all other places that no sandbox may see. `redact` takes secrets out of a text.
    `aside` runs functions that read foreign texts, such as pages, and may take seconds."""

    sections: Sequence[Section] = ()
    clock: Clock
    redact: Callable[[str], str]
    home: Path
    own: Sequence[Path] = ()
    aside: RunsAside = at_once
    background: BackgroundCommands | None = None
    skills: Skills | None = None

    @property
    def workspaces(self) -> Workspaces:
        """The folders of the conversations."""
        return Workspaces(self.home / "workspaces", self.settings(WorkspaceSettings))

    @property
    def used_workspaces(self) -> Workspaces | None:
        """The same; None where they are switched off."""
        return self.workspaces if self.workspaces.settings.enabled else None

    def settings(self, kind: type[S]) -> S:
        """The section of this kind, or its defaults."""
        return next((each for each in self.sections if isinstance(each, kind)), kind())


class Result(Struct, frozen=True, kw_only=True):
    """A result with pictures for the model: digests of files that the conversation keeps. `only`: until the answer no
    tools but these may be called; None: it says nothing of that."""

    text: str
    pictures: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None


class Tool(Protocol):
    """One function that the model may call. `parameters` is a JSON schema (see `schema`).

    It may have more attributes:

    - `brings`: whose words its results are, in a few words, which may contain {arguments}; "" if they are the program's
      own or the conversation's. The results of any other tool are foreign, and count as the tool's.
    - `recalls`: its results only repeat earlier words. They are marked, so that no search finds its own finds and no
      summary takes looked-up words for said ones.
    - `result_chars`: its own limit for its results, in characters. A longer one is kept as a file, and the model gets
      its beginning; None: never, because the tool pages its results itself.
    - `refers`: it names the message that the turn answers, which is stored before the tool runs.
    - `beside`: its calls of one step run side by side, as those of tools do that only read.
    - `shows`: it sends files; those of calls one behind the other are shown together.
    - `needs`: it is on offer only in a session whose system prompt holds this text.
    - `unless`: it is not on offer in a session whose system prompt holds this text.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    read_only: bool
    idempotent: bool
    timeout: float  # seconds

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str | Result:
        """The result for the model. Raises ToolError with a sentence for the model."""


@runtime_checkable
class NeedsApproval(Protocol):
    """A tool with calls that a person must allow. `admins_only`: only an admin's turn may call it. `setting`: the key
    of the configuration that says which calls need no yes; "": none does."""

    admins_only: bool
    setting: str

    def question(self, arguments: Mapping[str, Any]) -> str | tuple[str, str] | None:
        """The question before this call, in one line that hides nothing of it, or the question and the command that it
        is about; None: the call needs no yes. Depends on the arguments alone. Raises ToolError for a call that would
        not be run at all."""


@runtime_checkable
class Keeps(Protocol):
    """A tool that keeps words beyond their conversation: they appear in later prompts, or are said or carried out
    later. Words that a turn has read elsewhere (`gateway.agent.provenance`) are kept only after a person's yes, with
    `ToolContext.provenance.origin` of them."""

    def kept(self, arguments: Mapping[str, Any]) -> Kept | None:
        """What this call keeps; None: nothing."""


class Question(NamedTuple):
    """The question before a call, and the key of the configuration that decides whether it is asked; "": none does.
    `of`: the call under which it is asked, where one question is about several calls. `deed`: names this very call,
    where a yes may hold for later ones like it. `code_at`: where in the text a command or a call begins that it is
    about; 0: nowhere."""

    text: str
    setting: str = ""
    of: str = ""
    deed: str = ""
    code_at: int = 0

    @classmethod
    def about(cls, asks: str, code: str, **more: str) -> Question:
        """A question with the command or the call that it is about."""
        return cls(f"{asks} {code}", code_at=len(asks) + 1, **more)


def schema(*required: str, **properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """The JSON schema of a tool's arguments: an object with these properties and no others."""
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, **needed, "additionalProperties": False}
