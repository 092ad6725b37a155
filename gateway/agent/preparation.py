"""Compactions prepared while nobody waits.

From a soft mark on, a fresh instance of the session's engine compacts a snapshot of the transcript after the reply. The
result is published only when a turn needs room, or when the provider's cache has lost the conversation, between two of
a turn's steps, and only if the transcript still begins with the snapshot; later messages follow. Until then neither the
session nor its engine has changed; with the publication the engine takes over the state of the other instance. An
unused preparation is dropped.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from msgspec import Struct, field

from gateway.agent.caching import Sent, last_pause
from gateway.agent.conversation import Conversation
from gateway.agent.engines import Engines
from gateway.agent.memory.flush import Findings, Flushes
from gateway.context.engine import Outcome
from gateway.context.plan import total_tokens
from gateway.context.policy import SMALL, CompressionSettings, HygieneRules
from gateway.domain.message import Message, noted_tokens
from gateway.domain.session import Session
from gateway.domain.usage import LedgerEntry
from gateway.runtime.clock import Clock
from gateway.runtime.tasks import Background
from gateway.store.port import SessionStore

log = structlog.get_logger(__name__)

_SOFT_MARK = 0.9  # of the compaction threshold: from here on a preparation pays
_SOFT_MARK_OF_SMALL = 0.94  # the same in a small window: what is said after it stays beside the notes and fills it
_IDLE_MARK = 0.8  # the same where it is published before the next answer, because the provider's cache is cold then
_TAIL_SHARE = CompressionSettings().target_ratio  # of the threshold: after more new text a preparation is made anew
_MOST = 256  # preparations in memory; each holds a summary and shares all other messages with the transcript


class Prepared(Struct, frozen=True, kw_only=True):
    """A fresh engine's result for `snapshot`, its tokens, the engine's state afterwards, and the `seconds`
    and `calls` that it took."""

    snapshot: Sequence[Message]
    transcript: Sequence[Message]
    tokens: int
    outcome: Outcome
    engine_state: Mapping[str, Any]
    seconds: float
    calls: tuple[LedgerEntry, ...]
    findings: Findings | None = None  # facts of the snapshot to be remembered, once this is published

    def helps(self, conversation: Conversation) -> bool:
        """Whether the preparation makes enough room, later messages included."""
        since = [*conversation.stored.messages[len(self.snapshot) :], *conversation.fresh.messages]
        after = conversation.overhead + self.tokens + noted_tokens(since)
        expected = conversation.calibration[conversation.spec.name].apply(after)
        return expected < conversation.engine.threshold_tokens

    def applied(self, messages: Sequence[Message]) -> list[Message]:
        """Return the new transcript of `messages`, which begin with the snapshot."""
        return [*self.transcript, *messages[len(self.snapshot) :]]


class _Job(Struct):
    """One preparation, running or done. `length`: of the snapshot, in messages."""

    session: Session
    length: int
    prepared: Prepared | None = None
    calls: list[LedgerEntry] = field(default_factory=list)

    def is_of(self, conversation: Conversation) -> bool:
        """Whether the conversation begins with the snapshot: under one epoch a session only grows."""
        return self.session.ref == conversation.stored.session.ref and len(conversation.stored.messages) >= self.length


class Preparations(Struct, frozen=True, kw_only=True):
    """The preparations in this process's memory, at most one for each session."""

    engines: Engines
    flushes: Flushes
    store: SessionStore
    background: Background
    clock: Clock
    compression: CompressionSettings
    hygiene: HygieneRules
    _jobs: OrderedDict[str, _Job] = field(default_factory=OrderedDict)

    def consider(self, conversation: Conversation) -> None:
        """Begin a preparation after a turn whose reply is on its way, if a later turn may need one."""
        wanted = self.compression.enabled and self.compression.background
        if not wanted or not self._pays(conversation):
            return
        session = conversation.stored.session
        job = _Job(session=session, length=len(conversation.stored.messages))
        work = self._prepare(job, conversation.stored.messages, conversation)
        if self.background.start_once(work, name=_name(session)):
            self._jobs[session.id] = job
            self._jobs.move_to_end(session.id)
            while len(self._jobs) > _MOST:
                self._jobs.popitem(last=False)

    def ready(self, conversation: Conversation) -> Prepared | None:
        """What `take` would give without a wait."""
        job = self._jobs.get(conversation.stored.session.id)
        return job.prepared if job and job.is_of(conversation) else None

    async def take(self, conversation: Conversation) -> Prepared | None:
        """The conversation's preparation, which is then forgotten; a running one is waited for."""
        job = self._jobs.get(conversation.stored.session.id)
        if job is None:
            return None
        if job.is_of(conversation):
            await self.background.ended(_name(conversation.stored.session))
        self.forget(conversation.stored.session)
        return job.prepared if job.is_of(conversation) else None

    def forget(self, session: Session) -> None:
        """Drop the preparation of a session, and stop a running one."""
        self.background.stop(_name(session))
        self._jobs.pop(session.id, None)

    def _pays(self, conversation: Conversation) -> bool:
        engine = conversation.engine
        threshold = engine.threshold_tokens
        tokens = conversation.prompt_tokens()
        if threshold <= 0 or tokens < _IDLE_MARK * threshold:
            return False
        soft = _SOFT_MARK if conversation.spec.context_length > SMALL else _SOFT_MARK_OF_SMALL
        if tokens < soft * threshold and not self._goes_cold(conversation):
            return False
        if not engine.supports_background or engine.automatic_blocked:
            return False
        job = self._jobs.get(conversation.stored.session.id)
        if job is None or job.session.ref != conversation.stored.session.ref:
            return True
        if job.prepared is not None and job.prepared.helps(conversation):
            return False
        # One is there that helps no more, or was tried in vain: only enough new text is worth the price of another.
        return noted_tokens(conversation.stored.messages[job.length :]) > _TAIL_SHARE * threshold

    def cheapens(self, conversation: Conversation, sent: Sent) -> bool:
        """Whether a preparation is better published than kept, although there is room: the provider's cache has lost
        what was `sent`, and writes anew whatever is left. Only where the settings leave the moment to the prices."""
        prepared = self.ready(conversation)
        return bool(prepared and self._loses(sent, self.clock.monotonic()) and prepared.helps(conversation))

    def _goes_cold(self, conversation: Conversation) -> bool:
        """Whether the next message is likely to come after that, because the last one did."""
        sent = conversation.prefix.sent
        return sent is not None and sent.caches and self._loses(sent, sent.at + last_pause(conversation.newest_first()))

    def _loses(self, sent: Sent, at: float) -> bool:
        return self.compression.threshold == "auto" and not sent.is_warm(at)

    async def _prepare(self, job: _Job, snapshot: Sequence[Message], conversation: Conversation) -> None:
        try:
            state = await conversation.engine.dump()
            async with self.clock.limit(self.hygiene.timeout):
                job.prepared = await self._make(job, snapshot, state, conversation)
        except TimeoutError:
            log.warning("preparation_timed_out", seconds=self.hygiene.timeout)
        finally:
            if job.calls:
                await self.store.charge(job.session, job.calls)

    async def _make(
        self, job: _Job, snapshot: Sequence[Message], state: Mapping[str, Any], conversation: Conversation
    ) -> Prepared | None:
        engine = (await self.engines.stand_in(job.session, state, charge=job.calls.append)).engine
        began = self.clock.monotonic()
        transcript, outcome = await engine.compress(snapshot, current_tokens=conversation.prompt_tokens())
        if outcome.fallback or outcome.error:
            # Nobody is in a hurry, and by the time of need the model may be back: only a real summary is kept.
            log.info("preparation_not_kept", error=outcome.error)
            return None
        seconds, calls, findings = self.clock.monotonic() - began, tuple(job.calls), None
        if self.flushes.enabled and conversation.fresh.flushed < len(snapshot) and not job.session.temporary:
            findings = await self.flushes.find(job.session, snapshot, conversation.fresh.flushed, job.calls)
        log.info("preparation_ready", before=len(snapshot), after=len(transcript))
        return Prepared(
            snapshot=snapshot,
            transcript=transcript,
            tokens=total_tokens(transcript, conversation.counter),
            outcome=outcome,
            engine_state=await engine.dump(),
            seconds=seconds,
            calls=calls,
            findings=findings,
        )


def _name(session: Session) -> str:
    return f"preparation {session.id}"
