"""`Conversation`: a session in the memory of a running turn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from msgspec import Struct, field

from gateway.agent.caching import Aside, Prefix, Sent
from gateway.agent.files.references import References, references_in
from gateway.agent.models import Calibration
from gateway.context import identifiers, instructions
from gateway.context.guard import GuardedEngine
from gateway.domain.message import Message, note_of, noted, noted_tokens, same, text_of
from gateway.domain.session import Session, Todo
from gateway.domain.usage import CanonicalUsage, LedgerEntry, usage_of
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.runtime.tokens import TokenCounter
from gateway.store.records import Patch, StepRecord


class Quotes(Struct, frozen=True, kw_only=True):
    """A text that stands in front of a person's `message` in the requests of one turn, and is never stored."""

    message: Message
    text: str
    count: int
    tokens: int


BLOCKED_MARK: Final = "compaction-blocked"  # in `announced`: it was said that compaction does not help any more
RESCUED_MARK: Final = "compaction-rescued"  # the same: that the built-in engine helps out


class Conversation(Struct, kw_only=True):
    """The stored messages (`messages`), the turn's own that are not stored yet (`fresh`), and everything that the next
    request needs. Its token figures never walk the transcript."""

    session: Session
    messages: list[Message]
    engine: GuardedEngine
    spec: ModelSpec
    counter: TokenCounter
    calibration: Calibration
    overhead: int  # tokens of system prompt and tool schemas, counted once
    schema_tokens: int = 0  # of these, those of tool schemas
    prefix: Prefix = field(default_factory=Prefix)
    references: References = field(default_factory=References)
    fresh: list[Message] = field(default_factory=list)
    quotes: Quotes | None = None
    ledger: list[LedgerEntry] = field(default_factory=list)
    absorbed: list[str] = field(default_factory=list)
    todos: tuple[Todo, ...] = ()
    announced: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    reported_tokens: int = 0
    reported_messages: int = 0
    stored_tokens: int = 0
    flushed: int = 0  # how many messages, from the first on, memory has been given

    def __post_init__(self) -> None:
        self.adopt(self.session, self.messages)

    def adopt(self, session: Session, messages: list[Message]) -> None:
        """Go on in `session` with its stored transcript `messages`; that list now belongs to the conversation. Nothing
        may be fresh."""
        self.session = session
        self.messages = messages
        self.todos = session.todos
        self.announced = session.announced
        self.tools = session.tools
        self.reported_tokens = session.last_prompt_tokens
        self.reported_messages = session.reported_messages
        self.stored_tokens = session.transcript_tokens
        self.flushed = session.flushed_messages

    @property
    def length(self) -> int:
        """The number of messages, fresh ones included."""
        return len(self.messages) + len(self.fresh)

    def all(self) -> list[Message]:
        """Return the whole transcript as a new list."""
        return [*self.messages, *self.fresh]

    def newest_first(self) -> Iterator[Message]:
        """Return the transcript from its end without a copy, because a copy of a long one is not free."""
        return chain(reversed(self.fresh), reversed(self.messages))

    def files_at(self, *, before: int = 0) -> list[int]:
        """Return the positions of the messages that refer to kept files, in a request where so many messages come
        `before`. Only new messages are walked."""
        stored = self.references.among(self.session.ref, self.messages)
        fresh = references_in(self.fresh)
        if not stored and not fresh:
            return []
        return [before + at for at in (*stored, *(len(self.messages) + position for position in fresh))]

    def aside(self) -> Aside | None:
        """Return the present turn's quotes and the position of their message; None without quotes, or where a
        compaction has rewritten the message."""
        quotes = self.quotes
        for back, message in enumerate(self.newest_first() if quotes else (), start=1):
            if quotes and same(message, quotes.message):
                return Aside(self.length - back, quotes.text)
        return None

    def add(self, message: Message, at: float) -> None:
        """Append a message, which is measured once for ever."""
        self.fresh.append(noted(message if "tokens" in note_of(message) else self.measured(message), at=at))

    def measured(self, message: Message) -> Message:
        """Return the message with its tokens, identifiers and standing instructions. It may be called in a thread."""
        told = {"instructions": instructions.found(message)} if message["role"] == "user" else {}
        return noted(message, tokens=self.counter.message(message), identifiers=identifiers.found(message), **told)

    async def measured_aside(self, message: Message) -> Message:
        """The same; a long message is measured in a thread, so that nobody else waits."""
        size = len(text_of(message))
        for call in message.get("tool_calls", ()):
            size += len(call["function"]["arguments"])
        aside = self.counter.takes_long(size)
        return await asyncio.to_thread(self.measured, message) if aside else self.measured(message)

    def show(self, tools: tuple[str, ...], schema_tokens: int) -> None:
        """Show the model these tools from now on. The provider's last report is changed as if the old prompt had been
        the new one."""
        more = schema_tokens - self.schema_tokens
        if more and self.reported_tokens:
            change = self.calibration.correct(self.spec.name, abs(more))
            self.reported_tokens = max(1, self.reported_tokens + (change if more > 0 else -change))
        self.tools, self.schema_tokens = tools, schema_tokens
        self.overhead += more

    def transcript_tokens(self) -> int:
        """Return our own count of the transcript, fresh messages included."""
        return self.stored_tokens + noted_tokens(self.fresh)

    def counted_tokens(self) -> int:
        """Return our own count of the next request: system prompt, tool schemas, transcript and quotes."""
        return self.overhead + self.transcript_tokens() + (self.quotes.tokens if self.quotes else 0)

    def prompt_tokens(self) -> int:
        """Return the best estimate of the next request: the provider's last report plus the messages since; without a
        report our own count, corrected by the model's usual reports."""
        if not self.reported_tokens:
            return self.calibration.correct(self.spec.name, self.counted_tokens())
        since = self.messages[self.reported_messages :]
        since += self.fresh[max(0, self.reported_messages - len(self.messages)) :]
        if not since:
            return self.reported_tokens
        return self.reported_tokens + self.calibration.correct(self.spec.name, noted_tokens(since))

    async def too_long(self, text: str) -> str | None:
        """Return the reason why no answer to a message of this text fits the window; None if one does. A long text is
        counted in a thread."""
        spec = self.spec
        room = spec.context_length - spec.reserved_output - self.overhead
        if len(text) <= room // 4:  # no text has more than 4 tokens a character
            return None
        tokens = self.calibration.correct(spec.name, await asyncio.to_thread(self.counter.text, text))
        if tokens <= room:
            return None
        if room <= 0:
            return (
                f"The system prompt and the tools alone take about {self.overhead:,} tokens, and the model's window "
                f"has {spec.context_length:,}: choose a model with a larger window (/model), or have the persona or "
                "the list of tools shortened."
            )
        return (
            f"That message is too long for the model: about {tokens:,} tokens, and {room:,} fit. "
            "Send it in parts, or only the part that matters."
        )

    def reported(self, usage: CanonicalUsage) -> None:
        """Take the provider's count of the request just made, which held everything up to here."""
        if not (tokens := usage.prompt_tokens):
            return
        self.calibration.learn(self.spec.name, reported=tokens, counted=self.counted_tokens())
        self.reported_tokens = tokens
        self.reported_messages = self.length

    def sent(self, request: ModelRequest, usage: CanonicalUsage, at: float) -> None:
        """Note that the model answered `request`, which held everything up to here. `at`: when it was sent, on the
        monotonic clock."""
        self.prefix.sent = Sent(
            session=self.session.ref,
            spec=self.spec,
            system_prompt=self.session.system_prompt,
            tools=request.tools,
            tool_choice=request.tool_choice,
            count=self.length,
            tokens=usage.prompt_tokens or self.prompt_tokens(),
            at=at,
            caches=self.prefix.caches(self.spec, usage),
            aside=self.aside(),
        )

    def record(self, at: float, expires_at: float | None, engine_state: Mapping[str, Any]) -> StepRecord:
        """Return everything that is not stored yet as one record."""
        patch = Patch(
            at=at,
            usage=usage_of(self.ledger),
            cost_usd=sum([entry.cost_usd or 0.0 for entry in self.ledger]),
            last_prompt_tokens=self.reported_tokens,
            reported_messages=self.reported_messages,
            engine_state=engine_state,
            todos=self.todos,
            announced=self.announced,
            tools=self.tools if self.tools != self.session.tools else None,
            expires_at=expires_at,
            flushed_messages=self.flushed if self.flushed != self.session.flushed_messages else None,
        )
        return StepRecord(
            messages=tuple(self.fresh),
            patch=patch,
            ledger=tuple(self.ledger),
            absorbed=tuple(self.absorbed),
            after=len(self.messages),
        )

    def stored(self, messages: Sequence[Message]) -> None:
        """Note that the last record is durable; `messages` are the fresh ones with their ids."""
        self.stored_tokens = self.transcript_tokens()
        self.messages.extend(messages)
        self.fresh.clear()
        self.ledger.clear()
        self.absorbed.clear()
