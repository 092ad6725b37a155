"""A command, the context that it may use, and the registry of all commands."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Final, Literal

from msgspec import Struct, field

from gateway.agent.agents import Agents
from gateway.agent.compaction import CompactionReport
from gateway.agent.conversation import Conversation
from gateway.agent.running import RunningTurns
from gateway.agent.sessions import Sessions, opened_by
from gateway.agent.tools.base import Files
from gateway.domain.adapter import Audience, MenuEntry, Rooms
from gateway.domain.approval import Labels
from gateway.domain.chat import Attachment, Inbound, Outbound, OutboundKind, SessionKey
from gateway.domain.command import CommandCall, Parameter, Proposal
from gateway.domain.message import Message
from gateway.domain.session import EndReason, Session
from gateway.people.people import People
from gateway.runtime.clock import Clock
from gateway.runtime.errors import SessionNotFound
from gateway.store.port import Store
from gateway.store.records import InboxItem, Lease

Group = Literal["Conversation", "While I work", "What I remember", "Sessions", "About"]
Run = Callable[["CommandContext"], Awaitable["Answer | str"]]
Propose = Callable[["CommandContext"], Awaitable[Sequence[Proposal]]]
Compress = Callable[[Conversation, str | None, int], Awaitable[CompactionReport]]
Confirm = Callable[[str, Labels], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Command:
    """One slash command."""

    run: Run
    _: KW_ONLY
    name: str
    group: Group  # the heading that /help lists it under
    help: str  # a line of /help fits 80 columns with it
    argument: str = ""
    options: str = ""  # further arguments, named by /help
    parameters: tuple[Parameter, ...] = ()  # the same and the argument, one by one; left out: the argument alone
    aliases: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()  # names that other bots have for it, and that a person may try
    audience: Audience = "everybody"  # the menus that offer it; a person who types the command gets it all the same
    # It answers at once, even while a turn runs in its lane; "bare": where it has no argument, because it only looks.
    bypass: bool | Literal["bare"] = False
    urgent: bool = False  # with `bypass`: it is carried out however many commands came before it
    # It does not wait behind a question to its writer: the turn that asks is stopped, or told no.
    over_question: Literal["stop", "no"] | None = None
    sends: Literal["steer", "queue"] | None = None  # with an argument it is no command but a message of this kind
    proposals: Propose | None = None  # values for the argument, shown while a person types it
    implied: Callable[[InboxItem], bool] | None = None  # whether a message calls it without a slash, as its argument

    def bypasses(self, call: CommandCall) -> bool:
        """Whether this call of the command runs at once, past its lane."""
        return self.bypass is True or (self.bypass == "bare" and not call.argument)

    @property
    def entry(self) -> MenuEntry:
        """The command as menus offer it."""
        return MenuEntry(
            name=self.name,
            help=self.help,
            audience=self.audience,
            parameters=self.parameters or _parameters(self.argument, proposes=self.proposals is not None),
            passes_on=self.sends is not None,
            aliases=self.aliases,
        )


def command(usage: str, group: Group, help: str, **more: Any) -> Callable[[Run], Command]:
    """All that there is to say about a command, before the function that runs it: its name and its argument, the
    heading and the line of /help, and further fields of `Command`.

    @command("stop", "While I work", "stop what I am doing", bypass=True)
    async def stop(ctx: CommandContext) -> str: ...
    """
    name, _, argument = usage.partition(" ")
    return partial(Command, name=name, argument=argument, group=group, help=help, **more)


def _parameters(argument: str, *, proposes: bool) -> tuple[Parameter, ...]:
    """The only one of an argument such as "[n|all]" or "<text>"."""
    said = argument.strip("[]<>").split("|")
    if not argument:
        return ()
    required = argument.startswith("<")
    return (Parameter(name=said[0], help=" or ".join(said), required=required, proposes=proposes),)


class Answer(Struct, frozen=True, kw_only=True):
    """The answer of a command, where a text is not enough.

    The model answers `then` as if a person had sent it, with `files` beside those of the command's own message; the
    text is not shown. `own`: the words of `then` that are the person's, if not all are. Everything in `conversation`
    that is not stored yet is stored with the answer. `again`: rows that a command which bypasses its lane shows once
    more, under ids of their own. `choices`: commands that buttons call.
    """

    text: str = ""
    kind: OutboundKind = "command"
    then: str | None = None
    own: str | None = None
    files: tuple[Attachment, ...] = ()
    conversation: Conversation | None = None
    again: tuple[Outbound, ...] = ()
    choices: tuple[Proposal, ...] = ()


class HeldLane(Struct, frozen=True, kw_only=True):
    """The lane in which a command runs. `confirm` asks a person, who may say no, while the lane waits; `compress`
    compacts a conversation about a topic, all but its last messages."""

    lease: Lease
    confirm: Confirm
    compress: Compress


class Program(Struct, kw_only=True):
    """What the bot tells of itself. `chats`: what config.yaml says of single places, by key, then by place.
    `automatic`: conversations are compressed unasked. `started_at`: in seconds since the epoch. `speaks`: as
    speech.when, where a server says answers aloud. `writes_down`: what people say, for models that do not hear it."""

    registry: CommandRegistry
    chats: Mapping[str, Mapping[str, str]]
    automatic: bool
    started_at: float
    speaks: str = ""
    writes_down: bool = False
    rooms: Mapping[str, Rooms] = field(default_factory=dict)  # platforms


class CommandContext(Struct, frozen=True, kw_only=True):
    """One call of a command, and all that a command may use."""

    item: InboxItem
    argument: str
    lane: HeldLane | None  # None: the command bypasses its lane and must not touch sessions
    program: Program
    store: Store
    sessions: Sessions
    agents: Agents
    people: People
    running_turns: RunningTurns
    clock: Clock
    files: Callable[[InboxItem], Files]
    redact: Callable[[str], str]

    @property
    def key(self) -> SessionKey:
        """Return the key of the conversation."""
        return self.item.key

    @property
    def inbound(self) -> Inbound:
        """The message that called the command."""
        return self.item.inbound

    @property
    def session_id(self) -> str:
        """The id of the session that this item opens, at every attempt."""
        return opened_by(self.item)

    def owned(self) -> HeldLane:
        """The lane that this command runs in."""
        assert self.lane is not None, "a bypassing command does not own its lane"
        return self.lane

    async def present(self) -> Session | None:
        """The session that the conversation is in."""
        return await self.store.tip(self.key)

    async def messages(self, session: Session | None) -> Sequence[Message]:
        """A session's transcript; empty without a session."""
        return await self.store.transcript(session) if session else ()

    async def switch(
        self,
        present: Session | None,
        origin: Session,
        messages: Sequence[Message],
        reason: EndReason,
        title: str | None = None,
    ) -> None:
        """End the present session and go on in a new one, which begins with these messages of `origin`."""
        await self.sessions.switch(
            self.owned().lease, present, origin, messages, reason, title=title, session_id=self.session_id
        )

    async def opened_before(self) -> Session | None:
        """The session that an earlier attempt at this very item opened."""
        if self.item.attempts == 1:
            return None
        try:
            return await self.store.session(self.session_id)
        except SessionNotFound:
            return None


_ALIKE: Final = 0.6  # of two names: a slip of the finger is understood, another word is not


class CommandRegistry:
    """All commands by name and alias. `also` gives those that come and go; a name of the others is not theirs."""

    def __init__(self, commands: Iterable[Command], also: Callable[[], Iterable[Command]] = tuple) -> None:
        self.commands = tuple(commands)
        self._also = also
        self._by_name = {name: command for command in self.commands for name in (command.name, *command.aliases)}
        self._elsewhere = {name: command.name for command in self.commands for name in command.elsewhere}

    def get(self, name: str) -> Command | None:
        """The command of this name or alias."""
        return self._by_name.get(name) or next((each for each in self.more if each.name == name), None)

    @property
    def more(self) -> Sequence[Command]:
        """Return the present ones of those that come and go."""
        return [each for each in self._also() if each.name not in self._by_name]

    def implied(self, item: InboxItem) -> CommandCall | None:
        """The command that a message triggers without a slash, besides being answered."""
        for command in self.commands:
            if command.implied is not None and command.implied(item):
                return CommandCall(name=command.name, argument=item.inbound.text.strip())
        return None

    def unknown(self, name: str) -> str:
        """One sentence for a command that does not exist, with the nearest one that does."""
        known = [*self._by_name, *(each.name for each in self.more)]
        near = difflib.get_close_matches(name, known, n=1, cutoff=_ALIKE)
        meant = self._elsewhere.get(name) or (near[0] if near else None)
        hint = f" Did you mean /{meant}?" if meant else ""
        return f"There is no command /{name[:40]}.{hint} See /help all."
