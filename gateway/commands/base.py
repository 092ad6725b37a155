"""What a command is, what it is given, and the registry that finds it."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from gateway.agent.compaction import CompactionReport
from gateway.agent.conversation import Conversation
from gateway.agent.hygiene import HygieneRules
from gateway.agent.metering import Metering
from gateway.agent.models import Models
from gateway.agent.running import RunningTurns
from gateway.agent.sessions import Sessions, opened_by
from gateway.delivery.outbox import Outbox
from gateway.domain.adapter import Audience
from gateway.domain.chat import Attachment, Inbound, OutboundKind, SessionKey
from gateway.domain.session import Session
from gateway.people.approvals import Approvals
from gateway.people.pairing import Pairing
from gateway.people.welcome import Welcome
from gateway.runtime.clock import Clock
from gateway.runtime.errors import SessionNotFound
from gateway.runtime.tokens import TokenCounter
from gateway.store.port import Store
from gateway.store.records import InboxItem, Lease


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command says. `then` is text to be answered by the model as if it had been sent, with
    `files` beside those that came with the command; `conversation` holds what the command did and did
    not store: it is stored with the answer."""

    text: str
    kind: OutboundKind = "command"
    then: str | None = None
    files: tuple[Attachment, ...] = ()
    conversation: Conversation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What commands may use."""

    store: Store
    sessions: Sessions
    outbox: Outbox
    approvals: Approvals
    pairing: Pairing
    welcome: Welcome
    models: Models
    metering: Metering
    running_turns: RunningTurns
    clock: Clock
    counter: TokenCounter
    redact: Callable[[str], str]
    hygiene: HygieneRules
    tool_schema_tokens: int
    started_at: float
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """One call of a command. `compress` runs a manual compaction in this lane, with a topic, of all but
    so many messages; `lease` is None for a command that bypasses the lane, which must not touch
    sessions then."""

    services: Services
    registry: CommandRegistry
    item: InboxItem
    lease: Lease | None
    argument: str
    compress: Callable[[Conversation, str | None, int], Awaitable[CompactionReport]] | None = None

    @property
    def key(self) -> SessionKey:
        """Whose conversation this is."""
        return self.item.key

    @property
    def inbound(self) -> Inbound:
        """The message that called the command."""
        return self.item.inbound

    def owned(self) -> Lease:
        """The lease of the lane this command runs in."""
        assert self.lease is not None, "a bypassing command does not own its lane"
        return self.lease

    @property
    def session_id(self) -> str:
        """The id of the session that this item opens, at every attempt."""
        return opened_by(self.item)

    async def opened_before(self) -> Session | None:
        """The session that an earlier attempt at this very item opened."""
        if self.item.attempts == 1:
            return None
        try:
            return await self.services.store.session(self.session_id)
        except SessionNotFound:
            return None


Group = Literal["Conversation", "While I work", "What I remember", "Sessions", "About"]

Run = Callable[[CommandContext], Awaitable[Answer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command. `group`: where /help lists it; a line there fits 80 columns. `options`: what else it takes, said
    there and in no menu. `bypass`: it answers at once even while a turn runs in its lane. `audience`: whose menu offers
    it; who types it gets it all the same."""

    name: str
    help: str
    run: Run
    group: Group
    argument: str = ""
    options: str = ""
    aliases: tuple[str, ...] = ()
    bypass: bool = False
    audience: Audience = "everybody"


_ALIKE: Final = 0.6  # of two names, so that a slip of the finger is understood and another word is not

# What other bots call the same things.
_ELSEWHERE: Final = {
    "abort": "stop",
    "cancel": "stop",
    "clear": "new",
    "commands": "help",
    "compact": "compress",
    "cost": "usage",
    "fork": "branch",
    "forget": "new",
    "history": "sessions",
    "info": "status",
    "load": "resume",
    "memory": "pin",
    "menu": "help",
    "models": "model",
    "regenerate": "retry",
    "rename": "title",
    "restart": "new",
    "search": "recall",
    "settings": "help",
    "summarize": "compress",
    "tokens": "usage",
}


class CommandRegistry:
    """All commands by name and alias."""

    def __init__(self, commands: Iterable[Command]) -> None:
        self.commands = tuple(commands)
        self._by_name = {name: command for command in self.commands for name in (command.name, *command.aliases)}

    def get(self, name: str) -> Command | None:
        """The command of this name or alias."""
        return self._by_name.get(name)

    def unknown(self, name: str) -> str:
        """One sentence for a command that does not exist, with the nearest that does."""
        near = difflib.get_close_matches(name, self._by_name, n=1, cutoff=_ALIKE)
        meant = _ELSEWHERE.get(name) or (near[0] if near else None)
        hint = f" Did you mean /{meant}?" if meant in self._by_name else ""
        return f"There is no command /{name[:40]}.{hint} /help lists them all."
