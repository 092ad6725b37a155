"""The beginning, continuation and end of sessions, and the `on_session_*` calls of their engines.

A session ends once. Its end is stored first, with its hook owed; then `on_session_end` is called; then the debt is
struck out. A crash in between leaves the debt, and the next start pays it. So the hook is called at least once, and
exactly once unless the process was killed inside it. A compaction is no end: the engine hears of the child instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

import structlog

from gateway.agent.conversation import Conversation
from gateway.agent.engines import Engines
from gateway.agent.models import Models
from gateway.agent.preparation import Preparations
from gateway.agent.prompt import PromptBuilder, differ
from gateway.context.engine import Outcome
from gateway.domain.chat import ChatType, SessionKey
from gateway.domain.expiry import ExpiryPolicy
from gateway.domain.message import Message
from gateway.domain.pin import Pins
from gateway.domain.session import Compaction, EndReason, Session
from gateway.domain.usage import CanonicalUsage
from gateway.runtime.clock import Clock, Ids, lasting_id
from gateway.runtime.points import Points
from gateway.runtime.tasks import best_effort
from gateway.runtime.tokens import TokenCounter
from gateway.store.insist import insist
from gateway.store.port import Store
from gateway.store.records import InboxItem, Lease, Opening, Rebuilt, SessionChanges

log = structlog.get_logger(__name__)

_MOST_FOLLOWED = 100_000  # ids in memory


@dataclass(slots=True, kw_only=True)
class Sessions:
    """Opens, continues and ends sessions in the lane that holds the lease."""

    store: Store
    engines: Engines
    preparations: Preparations
    models: Models
    prompts: PromptBuilder
    counter: TokenCounter
    schema_tokens: int
    policy: ExpiryPolicy
    clock: Clock
    ids: Ids
    points: Points
    _followed: set[str] = field(default_factory=set)  # sessions whose prompts are the configuration's
    _ending: set[str] = field(default_factory=set)  # sessions whose hook this process owes or is calling
    _prompt_tokens: Callable[[str], int] = field(init=False)

    def __post_init__(self) -> None:
        # A prompt is long, many sessions share one, and every turn asks.
        self._prompt_tokens = lru_cache(maxsize=256)(self._count_prompt)

    # -- beginning --------------------------------------------------------------------------

    async def open(self, lease: Lease, chat_type: ChatType) -> Session:
        """Return the key's present session, or a new one. A due session is not ended here: see `is_due`."""
        present = await self.store.tip(lease.key)
        if present is not None:
            return present
        session = await self._prompted(self._blank(lease.key, chat_type))
        return await self.store.open_session(lease, Opening(session=session))

    async def follow(self, lease: Lease, session: Session) -> Session:
        """Return the session with the configured model and prompt. A model that a person chose stays.

        The configuration is read when the program starts, so a prompt is compared once.
        """
        changes: SessionChanges = {}
        if session.model != (model := self.models.of(session).name):
            changes |= {"model": model, "model_chosen_at": None}
        if session.id not in self._followed:
            prompt = self._prompt(session, await self.store.pins(session.key))
            if differ(prompt, session.system_prompt):
                changes["system_prompt"] = prompt
                if "model" not in changes:
                    changes["last_prompt_tokens"] = self._reported(session, prompt)
        if changes:
            log.info("session_follows", session=session.id, changed=sorted(changes))
            session = await self.store.update_session(lease, session.ref, **changes)
        self._note_followed(session)
        return session

    def _note_followed(self, session: Session) -> None:
        if len(self._followed) >= _MOST_FOLLOWED:
            self._followed.clear()
        self._followed.add(session.id)

    def _blank(
        self, key: SessionKey, chat_type: ChatType, *, after: Session | None = None, session_id: str | None = None
    ) -> Session:
        """Return a session to be opened under `key`, still without a prompt. A model that was chosen in the session
        `after` is chosen in this one, too. `session_id` None: a fresh id."""
        now = self.clock.now()
        chosen = after if after is not None and self.models.is_chosen(after) else None
        return Session(
            id=session_id or self.ids.new("s"),
            key=key,
            chat_type=chat_type,
            parent_id=None,
            started_at=now,
            model=chosen.model if chosen else self.models.main.name,
            model_chosen_at=chosen.model_chosen_at if chosen else None,
            system_prompt="",
            last_active_at=now,
            expires_at=self.policy.deadline(now),
        )

    async def _prompted(self, session: Session) -> Session:
        """Return the session with its prompt, which holds the present pins of its key."""
        self._note_followed(session)
        return replace(session, system_prompt=self._prompt(session, await self.store.pins(session.key)))

    def _prompt(self, session: Session, pins: Pins) -> str:
        return self.prompts.build(
            platform=session.key.platform,
            chat_type=session.chat_type,
            shared=session.key.user is None,
            compacted=session.compaction_count > 0,
            todos=session.todos,
            pins=pins.rules,
        )

    async def conversation(self, session: Session) -> Conversation:
        """Return the session in memory, ready for a turn."""
        held = await self.engines.of(session)
        transcript = await self.store.transcript(session)
        return Conversation(
            session=session,
            messages=list(transcript.messages),
            engine=held.engine,
            spec=held.spec,
            counter=self.counter,
            calibration=self.models.calibration,
            overhead=self._overhead(session),
            prefix=held.prefix,
            references=held.references,
            ledger=held.ledger,
        )

    async def glance(self, session: Session) -> Conversation:
        """Return the session as it is stored, to be looked at beside a turn that may run: its engine is a stand-in, so
        the turn's own engine is not disturbed."""
        engine = await self.engines.stand_in(session, session.engine_state, None)
        transcript = await self.store.transcript(session)
        return Conversation(
            session=session,
            messages=list(transcript.messages),
            engine=engine,
            spec=self.models.of(session),
            counter=self.counter,
            calibration=self.models.calibration,
            overhead=self._overhead(session),
        )

    async def preview(
        self, conversation: Conversation, messages: Sequence[Message], focus: str | None
    ) -> tuple[list[Message], Outcome]:
        """Return the result of a compaction of these messages without a model: the engine's own extract stands in for
        the summary. Nothing is changed."""
        engine = await self.engines.stand_in(conversation.session, await conversation.engine.dump(), None)
        tokens = conversation.prompt_tokens()
        return await engine.compress(messages, current_tokens=tokens, focus_topic=focus, force=True)

    def is_due(self, session: Session) -> bool:
        """Whether the session is over by its present policy."""
        deadline = self.policy.deadline(session.last_active_at)
        return deadline is not None and deadline <= self.clock.now() and session.message_count > 0

    # -- continuing -------------------------------------------------------------------------

    async def continue_(
        self, lease: Lease, conversation: Conversation, transcript: Sequence[Message], compaction: Compaction
    ) -> Compaction:
        """Open the continuation that holds `transcript`, under the id that the compaction names if it names
        one, move `conversation` into it and tell the engine. Raises SessionConflict, with nothing
        changed, if somebody else moved the key."""
        parent = conversation.session
        now = self.clock.now()
        child = replace(
            parent,
            id=compaction.child_id or self.ids.new("s"),
            parent_id=parent.id,
            started_at=now,
            model=self.models.of(parent).name,
            model_chosen_at=parent.model_chosen_at if self.models.is_chosen(parent) else None,
            epoch=1,
            usage=CanonicalUsage(),
            cost_usd=0.0,
            last_prompt_tokens=0,
            reported_messages=0,
            transcript_tokens=0,
            message_count=0,
            compaction_count=parent.compaction_count + 1,
            engine_state=await conversation.engine.dump(),
            todos=conversation.todos,
            last_active_at=now,
            announced=(),
        )
        child = await self._prompted(child)
        compaction = replace(compaction, child_id=child.id)
        child = await self.store.continue_session(
            lease, parent.ref, Opening(session=child, transcript=transcript), len(conversation.messages), compaction
        )
        # The conversation first, for an orderly end of the turn: an engine may be slow, and a /stop may come meanwhile.
        conversation.adopt(child, list((await self.store.transcript(child)).messages))
        conversation.overhead = self._overhead(child)
        await self.engines.move(parent, child, "compression", spec=conversation.spec)
        log.info(
            "compacted", trigger=compaction.trigger, before=compaction.tokens_before, after=compaction.tokens_after
        )
        return compaction

    async def set_pins(self, lease: Lease, present: Session | None, pins: Pins) -> None:
        """Make these the pins of the key; the prompt of its present session holds them from now on."""
        rebuilt = None
        if present is not None:
            prompt = self._prompt(present, pins)
            reported = self._reported(present, prompt)
            rebuilt = Rebuilt(ref=present.ref, system_prompt=prompt, last_prompt_tokens=reported)
        await self.store.set_pins(lease, pins, rebuilt)

    def _reported(self, session: Session, prompt: str) -> int:
        """Return the provider's last report, as it would have been with this prompt; 0: there is none."""
        before, after = self._prompt_tokens(session.system_prompt), self._prompt_tokens(prompt)
        correct = partial(self.models.calibration.correct, session.model)
        return session.last_prompt_tokens and max(1, session.last_prompt_tokens + correct(after) - correct(before))

    # -- ending -----------------------------------------------------------------------------

    async def end(
        self, lease: Lease, session: Session, reason: EndReason, opening: Opening | None = None
    ) -> Session | None:
        """End `session` for good, open the session of `opening` in the same step, and call the hook."""
        at = self.clock.now()
        self._ending.add(session.id)
        try:
            # A full disk delays an end; a failure half-way would have it done, or told, twice.
            opened = await insist(
                lambda: self.store.end_session(lease, session.ref, reason, at, opening),
                clock=self.clock,
                what="end_session",
            )
            self.points("session.ended")
            self.preparations.forget(session)
            await self._call_hook(session, reason)
        finally:
            self._ending.discard(session.id)
        if opened is not None and reason == "reset":
            await self.engines.move(session, opened, "reset")
        self.engines.drop(session.id)
        return opened

    async def reset(self, lease: Lease, session: Session, *, session_id: str | None = None) -> Session:
        """End `session` and start an empty one. A chosen model stays chosen."""
        fresh = self._blank(session.key, session.chat_type, after=session, session_id=session_id)
        opened = await self.end(lease, session, "reset", Opening(session=await self._prompted(fresh)))
        assert opened is not None
        return opened

    async def switch(
        self,
        lease: Lease,
        present: Session | None,
        origin: Session,
        messages: Sequence[Message],
        reason: EndReason,
        *,
        title: str | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Go on from `origin` in a new session whose transcript refers to `messages` of it; the present session ends.
        A session is never reopened."""
        session = replace(
            self._blank(origin.key, origin.chat_type, after=origin, session_id=session_id),
            parent_id=origin.id,
            title=title or origin.title,
            compaction_count=origin.compaction_count,
            engine_state=origin.engine_state,
            todos=origin.todos,
        )
        opening = Opening(session=await self._prompted(session), transcript=messages)
        if present is None:
            return await self.store.open_session(lease, opening)
        opened = await self.end(lease, present, reason, opening)
        assert opened is not None
        return opened

    async def pay_hooks(self, owed: Sequence[Session]) -> None:
        """Call the hooks that an earlier process owed; a hook that cannot be called stays owed."""
        for session in owed:
            if session.id in self._ending:
                continue  # no debt of the past: this process is at it
            self._ending.add(session.id)
            await best_effort(self._pay(session), what="owed hook")
            self._ending.discard(session.id)
            self.engines.drop(session.id)

    async def _pay(self, session: Session) -> None:
        """Call an owed hook, unless the turn that ended the session has called it meanwhile."""
        if (await self.store.session(session.id)).hook == "pending":
            await self._call_hook(session, session.end_reason)

    async def _call_hook(self, session: Session, reason: EndReason | None) -> None:
        """Call `on_session_end` (and `on_session_reset` after a reset) and strike out the debt."""
        held = await self.engines.of(session)
        transcript = await self.store.transcript(session)
        await held.engine.end(session.id, list(transcript.messages))
        if reason == "reset":
            await held.engine.reset()
        self.points("session.hook_called")
        await insist(lambda: self.store.hook_done(session.id), clock=self.clock, what="hook_done")

    def _overhead(self, session: Session) -> int:
        return self._prompt_tokens(session.system_prompt) + self.schema_tokens

    def _count_prompt(self, system_prompt: str) -> int:
        return self.counter.message({"role": "system", "content": system_prompt})


def opened_by(item: InboxItem) -> str:
    """Return the id of the session that a command opens. It is the same at every attempt, so an attempt recognises the
    work of an earlier attempt that a crash cut short. Times could not tell, because a session opened by the item before
    may be younger than this item, too."""
    return lasting_id("s", item.key, item.inbound.event_id, item.id, size=8)
