"""Sessions: one stretch of conversation under a key, and how they follow one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any, Final, Literal

from msgspec import Struct, field

from gateway.domain.chat import ChatType, SessionKey
from gateway.domain.usage import CanonicalUsage
from gateway.domain.wording import counted, dollars, lasting

EndReason = Literal["compression", "reset", "expired", "switched", "undone", "done"]
HookState = Literal["none", "pending", "done"]
TodoStatus = Literal["open", "in_progress", "done"]


class Todo(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One item of a session's to-do list."""

    text: str
    status: TodoStatus = "open"


class Session(Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """One stretch of conversation. `ended_at` None means it is its key's present one.

    `epoch` rises with every change other than appending; a write that carries an older one fails.
    `hook` says whether `on_session_end` is still owed (`pending`): a compaction owes none. `temporary`: memory and
    other chats learn nothing of it, and it is deleted once it has ended.
    """

    id: str
    key: SessionKey
    chat_type: ChatType
    parent_id: str | None
    started_at: float
    model: str
    system_prompt: str
    epoch: int = 1
    ended_at: float | None = None
    end_reason: EndReason | None = None
    continuation_id: str | None = None
    hook: HookState = "none"
    title: str | None = None
    usage: CanonicalUsage = field(default_factory=CanonicalUsage)
    cost_usd: float = 0.0
    last_prompt_tokens: int = 0  # as the provider last reported; 0: no report in this session
    reported_messages: int = 0  # how many transcript messages that report covered
    transcript_tokens: int = 0  # running total of the stored counts
    message_count: int = 0
    compaction_count: int = 0  # along the lineage
    engine_state: Mapping[str, Any] = field(default_factory=dict)
    todos: tuple[Todo, ...] = ()
    last_active_at: float = 0.0
    expires_at: float | None = None
    announced: tuple[str, ...] = ()  # notices that are said once, e.g. pressure tiers
    flushed_messages: int = 0  # how many transcript messages, from the first on, memory has been given
    model_chosen_at: str | None = None  # the provider at which a person chose `model`; None: nobody did
    tools: tuple[str, ...] = ()  # names of the tools that its prompts have shown, in their order
    places: tuple[str, ...] = ()  # the names of where it was last spoken in (see `place.names`)
    project: str = ""  # the id of the project that its person put it into
    temporary: bool = False
    rewritten: int = 0  # how often messages of it were forgotten; a holder of its transcript reads it anew

    @cached_property
    def ref(self) -> SessionRef:
        """Return the reference that every write carries."""
        return SessionRef(id=self.id, epoch=self.epoch)


LONGEST_INSTRUCTIONS: Final = 4_000  # characters
_PART: Final = (
    "This conversation belongs to a project. Its owner gave these instructions for every conversation of the project:\n"
)


class Project(Struct, frozen=True, kw_only=True):
    """A name for conversations about one thing; without `instructions` it only keeps them together."""

    id: str
    name: str
    instructions: str = ""

    @property
    def part(self) -> str:
        """Its part of a prompt. The name is not in it, so that another name leaves the prompt as it is."""
        return self.instructions and f"{_PART}{self.instructions}"


class SessionRef(Struct, frozen=True, kw_only=True):
    """A session as its writer last saw it."""

    id: str
    epoch: int


Range = tuple[int, int]
"""The first and the last of some messages, counted from 1; `NO_RANGE`: there are none."""

Shortened = Literal["result", "argument", "picture"]
NO_RANGE: Final[Range] = (0, 0)


class PassWork(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`head`, `middle` and `tail` are messages of the session that ended: the first stayed, the second became notes
    (`carried` of them stayed), the third stayed. `shortened`: messages by what was shortened in them, and the tokens
    that went. `tries`: calls of `model` for the notes, which took `seconds`; `cost_usd` None: a price is not known."""

    head: Range = NO_RANGE
    middle: Range = NO_RANGE
    tail: Range = NO_RANGE
    carried: int = 0
    shortened: Mapping[Shortened, tuple[int, int]] = field(default_factory=dict)
    model: str = ""
    tries: int = 0
    seconds: float = 0.0
    cost_usd: float | None = 0.0

    @property
    def told(self) -> str:
        """A sentence for people."""
        parts = [_messages(self.middle, "became notes")] if self.middle != NO_RANGE else []
        if self.carried:
            parts[-1] += f" ({counted(self.carried, 'message')} of them stayed)"
        parts += [_messages(each, "stayed") for each in (self.head, self.tail) if each != NO_RANGE]
        parts += [
            f"{counted(count, what)} shortened (~{tokens:,} tokens less)"
            for what, (count, tokens) in self.shortened.items()
        ]
        return "; ".join([*parts, self._asked])

    @property
    def _asked(self) -> str:
        if not self.tries:
            return "no model was asked"
        tries = "one try" if self.tries == 1 else f"{self.tries} tries"
        return f"{tries} by {self.model}, {lasting(self.seconds, short=True)}, {dollars(self.cost_usd)}"


class Compaction(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run that made a continuation, as it is kept for inspection."""

    at: float
    parent_id: str
    child_id: str
    trigger: Literal["threshold", "preflight", "hygiene", "overflow", "manual", "emergency", "plugin"]
    messages_before: int
    messages_after: int
    tokens_before: int
    tokens_after: int
    focus: str | None = None
    fallback: bool = False
    error: str | None = None
    work: PassWork | None = None  # None: it was made by a version that kept no account


def families(sessions: Sequence[Session]) -> list[list[Session]]:
    """These sessions by family, each oldest first: the versions of one conversation."""
    known = {each.id: each for each in sessions}
    found: dict[str, list[Session]] = {}
    for each in sorted(sessions, key=attrgetter("started_at")):
        root = each
        while root.parent_id in known:
            root = known[root.parent_id]
        found.setdefault(root.id, []).append(each)
    return list(found.values())


def is_continuation(parent: Session, child: Session) -> bool:
    """Whether `child` continues where a compaction of `parent` left off.

    A branch or a helper can have a parent, too, but a branch's did not end by compression, or did so only after the
    child had started, and a helper has a key of its own.
    """
    return (
        child.parent_id == parent.id
        and child.key == parent.key
        and parent.end_reason == "compression"
        and parent.ended_at is not None
        and child.started_at >= parent.ended_at
    )


def _messages(range_: Range, what: str) -> str:
    first, last = range_
    return f"message {first} {what}" if first == last else f"messages {first:,} to {last:,} {what}"
