"""The flush: before words leave view, a model picks the facts that are worth remembering.

It reads a stretch of a session once (`Session.flushed_messages`), in one bounded call beside the conversation, and
leaves no trace in it. Nobody waits long: the conversation continues without a slow flush, and a failed one only loses
its findings. If a session ended without one, because its process died, the next session makes up for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final

import structlog
from msgspec import Struct, field

from gateway.agent.auxiliary import standing_alone
from gateway.agent.memory.memories import Memories
from gateway.agent.memory.review import MOST_CHARS, Step, applied, review_of
from gateway.agent.metering import Metering
from gateway.agent.tools.base import schema
from gateway.agent.tools.memory import CHANGES, PROPERTIES, MemoryTool
from gateway.domain.chat import SessionKey
from gateway.domain.memory import is_alone, scope_of
from gateway.domain.message import Message
from gateway.domain.session import Session
from gateway.domain.usage import LedgerEntry
from gateway.providers.base import ModelRequest
from gateway.runtime.errors import GatewayError, StoreUnavailable, ToolError
from gateway.runtime.metrics import Counter
from gateway.runtime.tasks import Background

log = structlog.get_logger(__name__)

FLUSHES: Final = Counter(
    name="memory_flushes", text="Attempts to collect facts, and how they ended.", labels=("outcome",)
)

_SECONDS: Final = 60.0  # for the whole of a flush
_LEASE: Final = 20.0  # seconds that other processes leave a session alone; most flushes take a few
_LOOK_AGAIN: Final = 0.2  # seconds between two looks at a flush of another process
_PATIENCE: Final = 5.0  # seconds that a new session waits for the flush of the one before
_MOST_OUTPUT: Final = 2_000  # tokens
_LOOKED_AT: Final = 5  # sessions of a key among which the last that ended is looked for
_ROOM: Final = 3  # the model's window has that many times the material, in tokens at most one a character

_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "function",
    "function": {
        "name": MemoryTool.name,
        "description": "Changes what is remembered. Call it once for each fact.",
        "parameters": schema(
            "action",
            "message",
            **{
                **{name: each for name, each in PROPERTIES.items() if name != "words"},
                "action": {"type": "string", "enum": list(CHANGES)},
                "message": {"type": "integer", "description": "The number of the person's message that says it."},
            },
        ),
    },
}


class Findings(Struct, frozen=True, kw_only=True):
    """The findings of a flush in the first `through` messages of a session."""

    session: Session
    through: int
    steps: Sequence[Step] = ()


class Started(Struct):
    """A flush of a session that continues. `through`: how many messages it has read, once it ended well."""

    session: Session
    through: int = 0


class Flushes(Struct, frozen=True, kw_only=True):
    """Starts flushes, at most one for each session at a time."""

    memories: Memories
    metering: Metering
    background: Background
    holder: str  # this process, among those that share the store
    _running: dict[str, SessionKey] = field(default_factory=dict)  # scopes by session

    @property
    def enabled(self) -> bool:
        """Whether memory is filled by flushes at all."""
        return self.memories.settings.flush

    # -- at the end of a session ------------------------------------------------------------

    def at_end(self, session: Session) -> None:
        """Begin the flush of a session that has ended, in the background."""
        if self.enabled and session.flushed_messages < session.message_count and not session.temporary:
            self._begin(session, self._of_ended(session))

    async def before_opening(self, session: Session) -> None:
        """Wait a moment for flushes that a new session should know of. One that an earlier process did not finish is
        begun again."""
        if not self.enabled:
            return
        for last in await self.memories.store.sessions(session.key, _LOOKED_AT):
            if last.ended_at is not None and last.end_reason != "compression":
                if last.end_reason != "undone":
                    self.at_end(last)
                break
        await self._settled(scope_of(session.key, session.chat_type))

    async def _of_ended(self, session: Session) -> None:
        """Flush a session, unless another process is at it: then only wait for that."""
        store, lease = self.memories.store, _name(session.id)
        if not await store.hold(lease, self.holder, _LEASE):
            await self._elsewhere(session)
            return
        try:
            session = await store.session(session.id)
            if session.flushed_messages >= session.message_count:
                return  # by a flush that ended after the session was read
            transcript = await store.transcript(session)
            await self._flush(Started(session), transcript, session.flushed_messages)
        finally:
            self._running.pop(session.id, None)
            await store.let_go(lease, self.holder)

    async def _elsewhere(self, session: Session) -> None:
        try:
            async with self.metering.clock.limit(_LEASE):
                while (await self.memories.store.session(session.id)).flushed_messages < session.message_count:
                    await self.metering.clock.sleep(_LOOK_AGAIN)
        except TimeoutError:
            log.info("flush_elsewhere_not_ended", session=session.id)
        finally:
            self._running.pop(session.id, None)

    # -- before a compaction ----------------------------------------------------------------

    def before_compaction(self, session: Session, messages: Sequence[Message], start: int) -> Started:
        """Begin the flush of the stored messages from `start` on, alongside the summary."""
        started = Started(session)
        is_heard = session.key.helper is None and not session.temporary  # a helper hears nobody
        if self.enabled and start < len(messages) and is_heard:
            self._begin(session, self._flush(started, tuple(messages), start))
        return started

    async def ended(self, started: Started) -> int:
        """Wait a moment for a flush; how many messages it has read then, 0 if it has not ended well."""
        await self._settled(scope_of(started.session.key, started.session.chat_type))
        return started.through

    def stop(self, started: Started) -> None:
        """Break a flush off."""
        self.background.stop(_name(started.session.id))

    # -- one flush --------------------------------------------------------------------------

    async def find(
        self, session: Session, messages: Sequence[Message], start: int, calls: list[LedgerEntry]
    ) -> Findings | None:
        """Ask a model for the facts worth remembering in the messages from `start` on; nothing is changed. None if it
        could not be asked. `calls` takes the entries for the ledger."""
        scope, alone = scope_of(session.key, session.chat_type), is_alone(session.key, session.chat_type)
        live = self.metering.models.of(session)
        auxiliary = standing_alone(self.metering, "memory", session, live, calls.append)
        memory = await self.memories.store.memory(scope)
        room = min(MOST_CHARS, auxiliary.context_length // _ROOM)
        redact = self.memories.redact
        # In a thread, because all of a long stretch is looked at.
        review = await asyncio.to_thread(review_of, session, messages[start:], memory.barred, redact, room)
        through = len(messages)
        if review.is_trivial:
            FLUSHES.count("trivial")
            return Findings(session=session, through=through)
        now, zone = self.metering.clock.now(), self.memories.zone
        asked = review.request(memory, redact, now, zone, alone=alone)
        request = ModelRequest(messages=asked, tools=[_SCHEMA], max_tokens=_MOST_OUTPUT)
        try:
            completed, _ = await auxiliary.completed(request)
        except GatewayError as error:
            FLUSHES.count("failed")
            log.info("flush_failed", session=session.id, error=str(error))
            return None
        steps = review.steps(completed.tool_calls)
        FLUSHES.count("found" if steps else "nothing")
        return Findings(session=session, through=through, steps=steps)

    async def publish(self, findings: Findings) -> None:
        """Change the memory by the findings that came with a compaction, which is published now. A store that is away
        does not hold the compaction up."""
        try:
            await self.apply(findings)
        except StoreUnavailable as error:
            log.warning("findings_lost", session=findings.session.id, error=str(error))

    async def apply(self, findings: Findings) -> None:
        """Change the memory as a model asked for. Changes that cannot be made are left out."""
        if not findings.steps:
            return
        session = findings.session
        key, chat_type = session.key, session.chat_type
        edits = [self.memories.edit(key, chat_type, step.source, step.origin) for step in findings.steps]

        def refused(error: ToolError) -> None:
            log.info("flush_refused", session=session.id, error=str(error))

        scope = scope_of(key, chat_type)
        await self.memories.change(scope, lambda memory: applied(memory, findings.steps, edits, refused))

    def _begin(self, session: Session, work: Coroutine[Any, Any, None]) -> None:
        """Run one flush of a session, or join the one that is running."""
        if self.background.start_once(work, name=_name(session.id)):
            self._running[session.id] = scope_of(session.key, session.chat_type)

    async def _flush(self, started: Started, messages: Sequence[Message], start: int) -> None:
        session, calls = started.session, list[LedgerEntry]()
        try:
            async with self.metering.clock.limit(_SECONDS):
                findings = await self.find(session, messages, start, calls)
                if findings is not None:
                    await self.apply(findings)
                    await self.memories.store.note_flushed(session, findings.through)
                    started.through = findings.through
        except TimeoutError:
            FLUSHES.count("failed")
            log.warning("flush_timed_out", session=session.id, seconds=_SECONDS)
        finally:
            self._running.pop(session.id, None)
            if calls:
                await self.memories.store.charge(session, calls)

    async def _settled(self, scope: SessionKey) -> None:
        names = [_name(session_id) for session_id, of in self._running.items() if of == scope]
        try:
            async with self.metering.clock.limit(_PATIENCE):
                for name in names:
                    await self.background.ended(name)
        except TimeoutError:
            log.info("flush_not_awaited", scope=str(scope))


def _name(session_id: str) -> str:
    return f"flush {session_id}"
