"""`Conversation`: a session in the memory of a running turn, as it is stored and as the turn has changed it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, Final

from msgspec import Struct, field

from gateway.agent.caching import Aside, Prefix, Sent, chosen_lifetime
from gateway.agent.files.references import References, references_in
from gateway.agent.models import Calibration
from gateway.context import identifiers, instructions
from gateway.context.guard import GuardedEngine
from gateway.domain.message import Message, note_of, noted, noted_tokens, same, text_of
from gateway.domain.session import Session, Todo
from gateway.domain.usage import CanonicalUsage, LedgerEntry, usage_of
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.runtime.structs import replace
from gateway.runtime.tokens import ROUGH_SHARE, TokenCounter
from gateway.store.records import Patch, StepRecord


class Quotes(Struct, frozen=True, kw_only=True):
    """A text that precedes a person's `message` in the requests of one turn, and is never stored."""

    message: Message
    text: str
    count: int
    tokens: int


# Of its window, without prompt and tools: from which on a fourth of a conversation at most was counted roughly.
_MOSTLY_EXACT: Final = 4 * ROUGH_SHARE
_COST: Final = attrgetter("cost_usd")
BLOCKED_MARK: Final = "compaction-blocked"  # in `announced`: it was said that compaction does not help any more
RESCUED_MARK: Final = "compaction-rescued"  # the same: that the built-in engine helps out


class Stored(Struct, frozen=True, kw_only=True):
    """A session as the store has it, and its transcript, which has `tokens` by our own count."""

    session: Session
    messages: tuple[Message, ...]
    tokens: int


class Fresh(Struct, frozen=True, kw_only=True):
    """What a turn has changed and no record holds yet: new messages, items of the lane that are in them, and the
    session's facts as they are now. `flushed`: how many messages, from the first on, memory has been given."""

    messages: tuple[Message, ...] = ()
    absorbed: tuple[str, ...] = ()
    todos: tuple[Todo, ...]
    announced: tuple[str, ...]
    tools: tuple[str, ...]
    reported_tokens: int
    reported_messages: int
    flushed: int


def opened(session: Session, messages: tuple[Message, ...]) -> tuple[Stored, Fresh]:
    """Return a session with its transcript, and that nothing is fresh."""
    fresh = Fresh(
        todos=session.todos,
        announced=session.announced,
        tools=session.tools,
        reported_tokens=session.last_prompt_tokens,
        reported_messages=session.reported_messages,
        flushed=session.flushed_messages,
    )
    return Stored(session=session, messages=messages, tokens=session.transcript_tokens), fresh


class Conversation(Struct, kw_only=True):
    """What is `stored`, what is `fresh`, and everything else that the next request needs. Others read it, but change it
    only through its methods. Its token figures never walk the transcript."""

    stored: Stored
    fresh: Fresh
    engine: GuardedEngine
    spec: ModelSpec
    counter: TokenCounter
    calibration: Calibration
    overhead: int  # tokens of system prompt and tool schemas, counted once
    schema_tokens: int = 0  # of these, those of tool schemas
    rough: bool = False  # whether these were counted roughly
    prefix: Prefix = field(default_factory=Prefix)
    references: References = field(default_factory=References)
    ledger: list[LedgerEntry] = field(default_factory=list)  # calls that no record holds yet, also by the engine
    quotes: Quotes | None = None
    _lasting: str = ""  # how long the turn's prompts stay in the provider's cache, where that is left open

    @property
    def length(self) -> int:
        """The number of messages, fresh ones included."""
        return len(self.stored.messages) + len(self.fresh.messages)

    def all(self) -> list[Message]:
        """Return the whole transcript as a new list."""
        return [*self.stored.messages, *self.fresh.messages]

    def newest_first(self) -> Iterator[Message]:
        """Return the transcript from its end without a copy, because a copy of a long one is not free."""
        return chain(reversed(self.fresh.messages), reversed(self.stored.messages))

    def files_at(self, *, before: int = 0) -> list[int]:
        """The positions of messages that refer to kept files, in a request with so many messages `before`. Only new
        messages are walked."""
        kept = self.stored
        stored, fresh = self.references.among(kept.session.ref, kept.messages), references_in(self.fresh.messages)
        if not stored and not fresh:
            return []
        return [before + at for at in (*stored, *(len(kept.messages) + position for position in fresh))]

    def marked(self) -> ModelSpec:
        """Return the model with a lifetime for its marks: where the settings leave it open, one for the whole turn."""
        spec = self.spec
        if spec.cache_ttl != "auto" or not spec.cache_marks:
            return spec
        self._lasting = self._lasting or chosen_lifetime(self.newest_first(), self.prompt_tokens())
        return replace(spec, cache_ttl=self._lasting)

    def aside(self) -> Aside | None:
        """Return the present turn's quotes and the position of their message; None without quotes, or where a
        compaction has rewritten the message."""
        quotes = self.quotes
        for back, message in enumerate(self.newest_first() if quotes else (), start=1):
            if quotes and same(message, quotes.message):
                return Aside(self.length - back, quotes.text)
        return None

    def measured(self, message: Message) -> Message:
        """Return the message with its tokens, identifiers and standing instructions. It may be called in a thread."""
        told = {"instructions": instructions.found(message)} if message["role"] == "user" else {}
        return noted(message, tokens=self.counter.message(message), identifiers=identifiers.found(message), **told)

    async def measured_aside(self, message: Message) -> Message:
        """The same, but a long message is measured in a thread, so that nobody else waits."""
        size = len(text_of(message))
        for call in message.get("tool_calls", ()):
            size += len(call["function"]["arguments"])
        # Without the overhead, most of which is our own English: it alone is a twentieth of a window of 32,000.
        aside = self.counter.takes_long(size, self.stored.tokens / self.spec.context_length)
        return await asyncio.to_thread(self.measured, message) if aside else self.measured(message)

    def counted_tokens(self) -> int:
        """Return our own count of the next request: system prompt, tool schemas, transcript and quotes."""
        fresh, quotes = noted_tokens(self.fresh.messages), self.quotes.tokens if self.quotes else 0
        return self.overhead + self.stored.tokens + fresh + quotes

    def prompt_tokens(self) -> int:
        """Return the best estimate of the next request: the provider's last report plus the messages since; without a
        report our own count, corrected by the model's usual reports."""
        stored, fresh = self.stored.messages, self.fresh
        if not fresh.reported_tokens:
            return self.calibration[self.spec.name].apply(self.counted_tokens())
        since = stored[fresh.reported_messages :] + fresh.messages[max(0, fresh.reported_messages - len(stored)) :]
        if not since:
            return fresh.reported_tokens
        return fresh.reported_tokens + self.calibration[self.spec.name].apply(noted_tokens(since))

    async def too_long(self, text: str) -> str | None:
        """Return the reason why no answer to a message of this text fits the window; None if one does. A long text is
        counted in a thread."""
        spec = self.spec
        room = spec.context_length - spec.reserved_output - self.overhead
        if len(text) <= room // 4:  # no text has more than 4 tokens a character
            return None
        tokens = self.calibration[spec.name].apply(await asyncio.to_thread(self.counter.text, text))
        if tokens <= room:
            return None
        if room <= 0:
            return (
                f"The system prompt and the tools alone take about {self.overhead:,} tokens, and the model's window "
                f"has {spec.context_length:,}. Choose a model with a larger window (/model), a shorter persona, or "
                "fewer tools."
            )
        return (
            f"Your message is too long for the model. It has about {tokens:,} tokens, but only {room:,} fit. "
            "Send the message in parts, or only the part that matters."
        )

    # -- what a turn changes ----------------------------------------------------------------

    def add(self, message: Message, at: float) -> None:
        """Append a message, which is measured once for ever."""
        message = noted(message if "tokens" in note_of(message) else self.measured(message), at=at)
        self.fresh = replace(self.fresh, messages=(*self.fresh.messages, message))

    def reword(self, change: Callable[[Message], Message]) -> None:
        """Replace fresh messages by others."""
        self.fresh = replace(self.fresh, messages=tuple(map(change, self.fresh.messages)))

    def absorb(self, items: Iterable[str]) -> None:
        """Note that the conversation holds the messages of these items of the lane."""
        self.fresh = replace(self.fresh, absorbed=(*self.fresh.absorbed, *items))

    def announce(self, marks: tuple[str, ...]) -> None:
        """Note what the person has been told: the session's marks are these from now on."""
        self.fresh = replace(self.fresh, announced=marks)

    def quote(self, quotes: Quotes | None, marks: tuple[str, ...]) -> None:
        """Put these quotes into the turn's requests, and among the session's marks."""
        self.quotes, self.fresh = quotes, replace(self.fresh, announced=marks)

    def drop_quotes(self) -> None:
        """Leave quotes out of the turn's requests from now on: they are what it can best do without."""
        self.quotes = None

    def flush(self, through: int) -> None:
        """Note that memory has been given the messages before this position."""
        self.fresh = replace(self.fresh, flushed=max(self.fresh.flushed, through))

    def after_tools(self, todos: tuple[Todo, ...], tools: tuple[str, ...]) -> None:
        """Go on with the list and the tools that calls of tools have left."""
        self.fresh = replace(self.fresh, todos=todos, tools=tools)

    def show(self, tools: tuple[str, ...], schema_tokens: int) -> None:
        """Show the model these tools from now on. The provider's last report is changed as if the old prompt had been
        the new one."""
        more, reported = schema_tokens - self.schema_tokens, self.fresh.reported_tokens
        if more and reported:
            change = self.calibration[self.spec.name].apply(abs(more))
            reported = max(1, reported + (change if more > 0 else -change))
        self.fresh = replace(self.fresh, tools=tools, reported_tokens=reported)
        self.overhead, self.schema_tokens = self.overhead + more, schema_tokens

    def answer_by(self, spec: ModelSpec) -> None:
        """Go on with another model, or with another window of the same."""
        self.spec = spec

    def answered(self, request: ModelRequest, spec: ModelSpec, usage: CanonicalUsage, at: float) -> int:
        """Note that the model answered `request`, which held everything up to here, and what the provider counted.
        `spec`: the model as it was asked; `at`: when, on the monotonic clock. Returns our own count of the request, to
        learn from."""
        tokens, counted = usage.prompt_tokens, self.counted_tokens()
        session, length = self.stored.session, len(self.stored.messages) + len(self.fresh.messages)
        self.prefix.sent = Sent(
            session=session.ref,
            spec=spec,
            system_prompt=session.system_prompt,
            tools=request.tools,
            tool_choice=request.tool_choice,
            count=length,
            tokens=tokens or self.prompt_tokens(),
            at=at,
            caches=self.prefix.caches(self.spec, usage),
            aside=self.aside() if self.quotes else None,
        )
        if tokens:
            # Rough counts are never too low, so a lower report of them says nothing of the model's tokenizer.
            few = counted - self.overhead < _MOSTLY_EXACT * self.spec.context_length
            if self.rough or (self.counter.began_rough and few):
                counted = min(counted, tokens)
            self.calibration.learn(self.spec.name, reported=tokens, counted=counted)
            self.fresh = replace(self.fresh, reported_tokens=tokens, reported_messages=length)
        return counted

    # -- what is stored ---------------------------------------------------------------------

    def record(self, at: float, expires_at: float | None, engine_state: Mapping[str, Any]) -> StepRecord:
        """Return everything that is not stored yet as one record."""
        session, fresh, ledger = self.stored.session, self.fresh, tuple(self.ledger)
        patch = Patch(
            at=at,
            usage=usage_of(ledger),
            cost_usd=sum(filter(None, map(_COST, ledger)), 0.0),
            last_prompt_tokens=fresh.reported_tokens,
            reported_messages=fresh.reported_messages,
            engine_state=engine_state,
            todos=fresh.todos,
            announced=fresh.announced,
            tools=fresh.tools if fresh.tools != session.tools else None,
            expires_at=expires_at,
            flushed_messages=fresh.flushed if fresh.flushed != session.flushed_messages else None,
        )
        return StepRecord(
            messages=fresh.messages,
            patch=patch,
            ledger=ledger,
            absorbed=fresh.absorbed,
            after=len(self.stored.messages),
        )

    def settle(self, record: StepRecord, messages: Sequence[Message]) -> None:
        """Note that a record is durable; `messages` are its own with their ids. What came since stays fresh."""
        stored, fresh = self.stored, self.fresh
        tokens = stored.tokens + noted_tokens(record.messages)
        self.stored = replace(stored, messages=stored.messages + tuple(messages), tokens=tokens)
        left, absorbed = fresh.messages[len(record.messages) :], fresh.absorbed[len(record.absorbed) :]
        self.fresh = replace(fresh, messages=left, absorbed=absorbed)
        del self.ledger[: len(record.ledger)]

    def adopt(self, session: Session, messages: tuple[Message, ...], overhead: int, schema_tokens: int) -> None:
        """Go on in `session`, with its transcript and the tokens of its prompt. No message may be fresh."""
        absorbed = self.fresh.absorbed
        self.stored, fresh = opened(session, messages)
        self.fresh = replace(fresh, absorbed=absorbed)
        self.overhead, self.schema_tokens = overhead, schema_tokens
