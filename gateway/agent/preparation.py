"""Compactions prepared while nobody waits.

From a soft mark on, a compaction is made after the reply, from a snapshot of the transcript, by a
fresh instance of the session's engine. It is published only when a turn needs room, between two of
its steps, and only if the transcript still begins with the snapshot; what was said since follows it.
Until then nothing has happened: not to the session, and not to its engine, which takes over what the
other instance learnt with the publication. A preparation that is not used is dropped.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from gateway.agent.conversation import Conversation
from gateway.agent.engines import Engines
from gateway.agent.ports import Jobs
from gateway.context.engine import Outcome
from gateway.context.policy import CompressionSettings
from gateway.domain.message import Message, note_of
from gateway.domain.session import Session
from gateway.domain.usage import LedgerEntry
from gateway.runtime.clock import Clock
from gateway.store.port import Store

log = structlog.get_logger(__name__)

_SOFT_MARK = 0.8  # of the compaction threshold: from here on it pays to have one ready
_TAIL_SHARE = CompressionSettings().target_ratio  # of the threshold: after more new text a preparation is made anew
_MOST = 256  # preparations kept; each holds a summary, the rest is shared with the transcript


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What a fresh engine made of `snapshot`, of how many tokens, and the state it was in afterwards."""

    snapshot: Sequence[Message]
    transcript: Sequence[Message]
    tokens: int
    outcome: Outcome
    engine_state: Mapping[str, Any]

    def helps(self, conversation: Conversation) -> bool:
        """Whether it makes enough room, with all that was said since."""
        since = [*conversation.messages[len(self.snapshot) :], *conversation.fresh]
        after = conversation.overhead + self.tokens + _tokens(since)
        expected = conversation.calibration.correct(conversation.spec.name, after)
        return expected < conversation.engine.threshold_tokens

    def applied(self, messages: Sequence[Message]) -> list[Message]:
        """The transcript that `messages`, which begin with the snapshot, become."""
        return [*self.transcript, *messages[len(self.snapshot) :]]


@dataclass(slots=True)
class _Job:
    """One preparation, running or done. `length`: of the snapshot, in messages."""

    session: Session
    length: int
    prepared: Prepared | None = None
    calls: list[LedgerEntry] = field(default_factory=list)

    def is_of(self, conversation: Conversation) -> bool:
        """Whether the conversation begins with the snapshot: a session only grows, and under another
        epoch it is another one."""
        return self.session.ref == conversation.session.ref and len(conversation.messages) >= self.length


class Preparations:
    """One preparation a session at most, in this process's memory."""

    def __init__(
        self, *, engines: Engines, store: Store, background: Jobs, clock: Clock, timeout: float, enabled: bool
    ) -> None:
        self._engines = engines
        self._store = store
        self._background = background
        self._clock = clock
        self._timeout = timeout
        self._enabled = enabled
        self._jobs: OrderedDict[str, _Job] = OrderedDict()

    def consider(self, conversation: Conversation) -> None:
        """A turn has ended and its reply is on its way: prepare what a later one may need."""
        if not self._enabled or not self._pays(conversation):
            return
        session = conversation.session
        job = _Job(session=session, length=len(conversation.messages))
        work = self._prepare(job, tuple(conversation.messages), conversation)
        if self._background.start_once(work, name=_name(session)):
            self._jobs[session.id] = job
            self._jobs.move_to_end(session.id)
            while len(self._jobs) > _MOST:
                self._jobs.popitem(last=False)

    def is_ready(self, conversation: Conversation) -> bool:
        """Whether `take` gives one without a wait."""
        job = self._jobs.get(conversation.session.id)
        return bool(job and job.is_of(conversation) and job.prepared and job.prepared.helps(conversation))

    async def take(self, conversation: Conversation) -> Prepared | None:
        """The conversation's preparation, if it helps; one that is being made is waited for. It is
        used up by this."""
        job = self._jobs.get(conversation.session.id)
        if job is None:
            return None
        if not job.is_of(conversation):
            self.forget(conversation.session)
            return None
        await self._background.ended(_name(conversation.session))
        self.forget(conversation.session)
        return job.prepared if job.prepared and job.prepared.helps(conversation) else None

    def forget(self, session: Session) -> None:
        """Drop what was prepared for a session, and stop what is."""
        self._background.stop(_name(session))
        self._jobs.pop(session.id, None)

    def _pays(self, conversation: Conversation) -> bool:
        engine = conversation.engine
        threshold = engine.threshold_tokens
        if not engine.supports_background or engine.automatic_blocked or threshold <= 0:
            return False
        if conversation.prompt_tokens() < _SOFT_MARK * threshold:
            return False
        job = self._jobs.get(conversation.session.id)
        if job is None or job.session.ref != conversation.session.ref:
            return True
        # One is there, or was tried in vain: only what was said since may make another one worth it.
        return _tokens(conversation.messages[job.length :]) > _TAIL_SHARE * threshold

    async def _prepare(self, job: _Job, snapshot: Sequence[Message], conversation: Conversation) -> None:
        try:
            state = await conversation.engine.dump()
            async with self._clock.limit(self._timeout):
                job.prepared = await self._make(job, snapshot, state, conversation)
        except TimeoutError:
            log.warning("preparation_timed_out", seconds=self._timeout)
        finally:
            if job.calls:
                await self._store.charge(job.session, job.calls)

    async def _make(
        self, job: _Job, snapshot: Sequence[Message], state: Mapping[str, Any], conversation: Conversation
    ) -> Prepared | None:
        engine = await self._engines.stand_in(job.session, state, charge=job.calls.append)
        transcript, outcome = await engine.compress(snapshot, current_tokens=conversation.prompt_tokens())
        if outcome.fallback or outcome.aborted:
            # Who needs room may find the model back; without a hurry there is no reason for less than a summary.
            log.info("preparation_not_kept", error=outcome.error)
            return None
        log.info("preparation_ready", before=len(snapshot), after=len(transcript))
        return Prepared(
            snapshot=snapshot,
            transcript=transcript,
            tokens=sum(note_of(each).get("tokens") or conversation.counter.message(each) for each in transcript),
            outcome=outcome,
            engine_state=await engine.dump(),
        )


def _name(session: Session) -> str:
    return f"preparation {session.id}"


def _tokens(messages: Sequence[Message]) -> int:
    return sum(note_of(message).get("tokens", 0) for message in messages)
