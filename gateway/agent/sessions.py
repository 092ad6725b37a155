"""The beginning, continuation and end of sessions, and the `on_session_*` calls of their engines.

A session ends once. Its end is stored first, with its hook owed; then `on_session_end` is called (`hooks`). A
compaction is not an end: the engine hears of the child instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING

import structlog
from msgspec import to_builtins

from gateway.agent.caps import NEAR_MARK
from gateway.agent.choices import Choices, Held, choices, held
from gateway.agent.conversation import BLOCKED_MARK, RESCUED_MARK, Conversation, opened
from gateway.agent.delegation import Helpers
from gateway.agent.engines import Engines, EngineSession
from gateway.agent.fallback import STAND_IN_MARK
from gateway.agent.hooks import Hooks
from gateway.agent.memory.flush import Flushes
from gateway.agent.memory.memories import Memories
from gateway.agent.memory.snapshot import snapshot_in
from gateway.agent.models import Models
from gateway.agent.preparation import Preparations
from gateway.agent.projects import project
from gateway.agent.prompt import PINS_MARK, WEB, PromptBuilder, bent, differ, shown_in
from gateway.agent.skills.catalogue import Skills
from gateway.agent.tools.offer import Toolbox, member
from gateway.agent.tools.web_fetch import SEARCH
from gateway.context.engine import Outcome
from gateway.domain.chat import BEGINNING, ChatType, SessionKey, Source
from gateway.domain.expiry import ExpiryPolicy
from gateway.domain.message import Message, behind, is_of, is_request, last_event, note_of, own_words
from gateway.domain.place import names, names_of, person_of
from gateway.domain.rule import Pins
from gateway.domain.session import Compaction, EndReason, Session
from gateway.domain.usage import CanonicalUsage
from gateway.providers.base import ModelSpec
from gateway.runtime.clock import Clock, Ids, lasting_id
from gateway.runtime.points import Points
from gateway.runtime.structs import replace
from gateway.runtime.tokens import TokenCounter
from gateway.store.insist import insist
from gateway.store.port import ReportStore, Store
from gateway.store.records import InboxItem, Lease, Opening, Rebuilt, SessionChanges

if TYPE_CHECKING:
    from gateway.agent.titles import Titles

log = structlog.get_logger(__name__)

_MOST_FOLLOWED = 100_000  # ids in memory
_MOST_SEARCHED = 500  # sessions of a conversation, for a place in its past
_Own = tuple[str | None, str, str]
_USUAL: _Own = (None, "", "")
_UNKNOWN: _Own = ("\0", "", "")  # no persona: nothing is known of the session's prompt


@dataclass(slots=True, kw_only=True)
class Sessions:
    """Opens, continues and ends sessions in the lane that holds the lease."""

    store: Store
    engines: Engines
    preparations: Preparations
    titles: Titles | None
    models: Models
    prompts: PromptBuilder
    memories: Memories
    skills: Skills
    flushes: Flushes
    hooks: Hooks
    helpers: Helpers
    counter: TokenCounter
    toolbox: Toolbox
    policy: ExpiryPolicy
    clock: Clock
    ids: Ids
    points: Points
    # By session: what its chat's own was when its prompt was last compared. `write_with` forgets them.
    _followed: dict[str, _Own] = field(default_factory=dict)
    _prompt_tokens: Callable[[str, bool], int] = field(init=False)
    _exact: bool = False  # whether tools are counted so

    def __post_init__(self) -> None:
        # A prompt is long, many sessions share one, and every turn asks.
        self._prompt_tokens = lru_cache(maxsize=256)(
            lambda prompt, _exact: self.counter.message({"role": "system", "content": prompt})
        )

    def write_with(self, prompts: PromptBuilder) -> None:
        """Write prompts with another builder; every session follows at its next turn."""
        self.prompts = prompts
        self._followed.clear()

    # -- beginning --------------------------------------------------------------------------

    async def open(self, lease: Lease, source: Source) -> Session:
        """Return the key's present session, or a new one. A due session is not ended here: see `is_due`."""
        present = await self.store.tip(lease.key)
        if present is not None:
            return present
        blank = self._blank(lease.key, source.chat_type, names(source))
        await self.flushes.before_opening(blank)
        if lease.key.is_own:  # one of a person's chats is gone back to, however long it rested
            for last in await self.store.sessions(lease.key, 1):
                if last.end_reason == "expired" and not last.temporary:
                    return await self.switch(lease, None, last, await self.store.transcript(last), "switched")
        return await self._opened(lease, Opening(session=await self._prompted(blank)))

    async def _opened(self, lease: Lease, opening: Opening) -> Session:
        session = await self.store.open_session(lease, opening)
        if self.hooks.plugged is not None:
            await self.hooks.plugged.began(session)
        return session

    async def open_for_helper(self, lease: Lease, caller: Session, prompt: str) -> Session:
        """Open the session of a helper, with its caller's model and a prompt of its own, and no search where its caller
        has none."""
        prompt = f"{prompt}\n\n{WEB['off']}" if WEB["off"] in caller.system_prompt else prompt
        blank = self._blank(lease.key, caller.chat_type, caller.places, after=caller)
        session = replace(blank, parent_id=caller.id, system_prompt=prompt, expires_at=None)
        return await self.store.open_session(lease, Opening(session=session))

    async def first(self, key: SessionKey, source: Source) -> Session:
        """Return the session that a first message would open; nothing is stored."""
        return await self._prompted(self._blank(key, source.chat_type, names(source)))

    async def follow(self, lease: Lease, session: Session, source: Source) -> Session:
        """The session with the model and prompt that its chat has now, by configuration or by choice.

        Prompts are compared if the chat's own persona, web search or project is another one, and once after the
        configuration was read. A session without a prompt, which a change in another chat of the person took away,
        gets one. There, and where no message was said yet, the memory snapshot is taken now, because facts may have
        been added since.
        """
        placed = replace(session, places=names(source))
        chosen = await choices(self.store, placed.key, placed.chat_type, placed.places)
        changes: SessionChanges = {"places": placed.places} if placed.places != session.places else {}
        model, chosen_at = self._model(placed, chosen)
        if (session.model, session.model_chosen_at) != (model, chosen_at):
            changes |= {"model": model, "model_chosen_at": chosen_at}
        own = await self._own(placed, chosen)
        empty, followed = session.message_count == 0, self._followed.get(session.id, _UNKNOWN)
        if empty:
            await self.flushes.before_opening(session)
        anew = empty or not session.system_prompt
        if anew or followed != own:
            memory = await self.memories.snapshot(session) if anew else snapshot_in(session.system_prompt)
            pins = await self._joining(session, await self.store.pins(session.key))
            prompt = await self._prompt(replace(session, model=model), pins, own, memory)
            if differ(prompt, session.system_prompt):
                changes["system_prompt"] = prompt
                if session.model == model:
                    changes["last_prompt_tokens"] = self._reported(session, prompt)
        if changes:
            log.info("session_follows", session=session.id, changed=sorted(changes))
            session = await self.store.update_session(lease, session.ref, **changes)
        if followed != own:
            self._note_followed(session, own)
        # It may have lost its prompt just now.
        return session if session.system_prompt else await self.follow(lease, session, source)

    def _note_followed(self, session: Session, own: _Own) -> None:
        if len(self._followed) >= _MOST_FOLLOWED:
            self._followed.clear()
        self._followed[session.id] = own

    async def choices(self, session: Session) -> Choices:
        """Return people's choices for a session's chat."""
        return await choices(self.store, session.key, session.chat_type, session.places)

    def persona(self, session: Session, chosen: Choices) -> Held | None:
        """The persona of a session's chat, if it has its own."""
        named = session.places or names_of(session.key)
        return held(chosen.persona, self.prompts.personas, session.key.platform, named)

    def web(self, session: Session, chosen: Choices) -> str:
        """Whether somebody switched the web search "on" or "off" in a session's chat; "": nobody did, or there is
        none."""
        found = held(chosen.search, {}, session.key.platform, session.places or names_of(session.key))
        return found.value if found and self.toolbox.has(SEARCH, member(session)) else ""

    async def _own(self, session: Session, chosen: Choices) -> _Own:
        """What the prompt of a session has by these choices: its chat's persona, in which a person's text cannot
        imitate other parts of the prompt, the switch of the web search, and the instructions of its project."""
        if not (chosen.persona or chosen.search or self.prompts.personas or session.project):  # as nearly everywhere
            return _USUAL
        found = self.persona(session, chosen)
        persona = found and (bent(found.value) if found.choice else found.value)
        return persona, self.web(session, chosen), await self.project(session)

    async def project(self, session: Session) -> str:
        """The part of a prompt with the instructions of a session's project."""
        found = await project(self.store, session.key.owner, session.project) if session.project else None
        return found.part if found else ""

    def model(self, session: Session, chosen: Choices) -> Held | None:
        """The model of a session's chat, if it has its own. A choice at another provider is void."""
        named, home = session.places or names_of(session.key), self.models.home(session)
        valid = {
            place: made
            for place, made in chosen.model.items()
            if made.value is None or (made.provider == home.provider and self.models.may_be(made.value, home))
        }
        configured = {place: spec.name for place, spec in self.models.of_places.items()}
        return held(valid, configured, session.key.platform, named)

    def _model(self, session: Session, chosen: Choices) -> tuple[str, str | None]:
        """Return the name of the model that a session has, and the provider at which it was chosen."""
        home = self.models.home(session)
        if not chosen.model and self.models.is_chosen(session):
            return session.model, session.model_chosen_at  # from before choices belonged to chats
        found = self.model(session, chosen) if chosen.model or self.models.of_places else None
        return (found.value, home.provider) if found and found.choice else (home.name, None)

    def _blank(
        self,
        key: SessionKey,
        chat_type: ChatType,
        places: tuple[str, ...],
        *,
        after: Session | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Return a session to be opened under `key`, still without a prompt. A model that was chosen in the session
        `after` is chosen in this one, too, and the project is the same. `session_id` None: a fresh id."""
        now = self.clock.now()
        return Session(
            id=session_id or self.ids.new("s"),
            key=key,
            chat_type=chat_type,
            parent_id=None,
            started_at=now,
            model=after.model if after else "",
            model_chosen_at=after.model_chosen_at if after else None,
            project=after.project if after else "",
            system_prompt="",
            last_active_at=now,
            expires_at=self.policy.deadline(now),
            places=places,
        )

    async def _prompted(self, session: Session) -> Session:
        """Return the session with its chat's model and its prompt, which holds the present pins and facts of its
        key."""
        chosen = await self.choices(session)
        model, chosen_at = self._model(session, chosen)
        own = await self._own(session, chosen)
        self._note_followed(session, own)
        pins, memory = await self.store.pins(session.key), await self.memories.snapshot(session)
        placed = replace(session, model=model, model_chosen_at=chosen_at)
        return replace(placed, system_prompt=await self._prompt(placed, pins, own, memory))

    async def _prompt(self, session: Session, pins: Pins, own: _Own, memory: str) -> str:
        may_load = self.toolbox.has("skill", member(session))
        window = self.models.of(session).context_length
        return self.prompts.build(
            temporary=session.temporary,
            platform=session.key.platform,
            chat_type=session.chat_type,
            shared=session.key.user is None,
            compacted=session.compaction_count > 0,
            todos=session.todos,
            memory=memory,
            skills=await self.skills.shown(session.key, window) if may_load and not session.temporary else "",
            project=own[2],
            pins=pins.rules,
            searches=self.toolbox.has("search_history", member(session)),
            persona=own[0],
            web=own[1],
            owner=bool(self.prompts.owners_files) and self._is_owners(session),
        )

    def _is_owners(self, session: Session) -> bool:
        person = replace(member(session).source, user=person_of(session.key, session.places))
        return session.chat_type == "direct" and self.prompts.is_owner(person)

    async def conversation(self, session: Session) -> Conversation:
        """Return the session in memory, ready for a turn."""
        return await self._loaded(session, await self.engines.of(session))

    async def glance(self, session: Session) -> Conversation:
        """The session as it is stored, to look at beside a turn that may be running: its engine is a stand-in, so the
        turn's own is not disturbed."""
        return await self._loaded(session, await self.engines.stand_in(session, session.engine_state, None))

    async def _loaded(self, session: Session, held: EngineSession) -> Conversation:
        overhead, schema_tokens = self._tokens(session, held.spec)
        stored, fresh = opened(session, await self.store.transcript(session))
        return Conversation(
            stored=stored,
            fresh=fresh,
            engine=held.engine,
            spec=held.spec,
            counter=self.counter,
            calibration=self.models.calibration,
            overhead=overhead,
            schema_tokens=schema_tokens,
            rough=not self._exact,
            prefix=held.prefix,
            references=held.references,
            ledger=held.ledger,
        )

    async def preview(
        self, conversation: Conversation, messages: Sequence[Message], focus: str | None
    ) -> tuple[list[Message], Outcome]:
        """The result of compacting these messages without a model: the engine's own extract replaces the summary.
        Nothing is changed."""
        held = await self.engines.stand_in(conversation.stored.session, await conversation.engine.dump(), None)
        tokens = conversation.prompt_tokens()
        return await held.engine.compress(messages, current_tokens=tokens, focus_topic=focus, force=True)

    def is_due(self, session: Session) -> bool:
        """Whether the session is over by its present policy."""
        deadline = self.policy.deadline(session.last_active_at, session.temporary)
        is_used = session.message_count > 0 or session.temporary
        return deadline is not None and deadline <= self.clock.now() and is_used

    # -- continuing -------------------------------------------------------------------------

    async def continue_(
        self, lease: Lease, conversation: Conversation, transcript: Sequence[Message], compaction: Compaction
    ) -> Compaction:
        """Open the continuation that holds `transcript`, under the id that the compaction names if it names
        one, move `conversation` into it and tell the engine. Raises SessionConflict, with nothing
        changed, if someone else moved the key."""
        parent = conversation.stored.session
        now = self.clock.now()
        child = replace(
            parent,
            id=compaction.child_id or self.ids.new("s"),
            parent_id=parent.id,
            started_at=now,
            epoch=1,
            usage=CanonicalUsage(),
            cost_usd=0.0,
            last_prompt_tokens=0,
            reported_messages=0,
            transcript_tokens=0,
            message_count=0,
            compaction_count=parent.compaction_count + 1,
            engine_state=await conversation.engine.dump(),
            todos=conversation.fresh.todos,
            flushed_messages=_flushed(conversation, transcript),
            tools=conversation.fresh.tools,
            last_active_at=now,
            announced=_kept_marks(conversation.fresh.announced, compaction.trigger),
        )
        if parent.key.helper is None:
            child = await self._prompted(child)
        compaction = replace(compaction, child_id=child.id)
        child = await self.store.continue_session(
            lease,
            parent.ref,
            Opening(session=child, transcript=transcript),
            len(conversation.stored.messages),
            compaction,
        )
        # The conversation first, for an orderly end of the turn: an engine may be slow, and a /stop may come meanwhile.
        overhead, schema_tokens = self._tokens(child, self.models.of(child))
        conversation.adopt(child, await self.store.transcript(child), overhead, schema_tokens)
        await self.engines.move(parent, child, "compression", spec=conversation.spec)
        work = to_builtins(compaction.work) if compaction.work else {}
        figures = {"before": compaction.tokens_before, "after": compaction.tokens_after}
        log.info("compacted", trigger=compaction.trigger, **figures, **work)
        return compaction

    async def _joining(self, session: Session, pins: Pins, said: str | None = None) -> Pins:
        """Return the pins that the prompt of the session is to show now. Those that are in view, because a person's
        message says just that or, as `said`, is about to, wait for the next compaction: another prompt would have the
        provider read the whole conversation anew."""
        shown = shown_in(session.system_prompt, pins.rules)
        waiting = pins.rules[len(shown) :]
        if not waiting or (not shown and PINS_MARK in session.system_prompt):  # it shows one that was taken away
            return pins
        messages = await self.store.transcript(session) if any(each.text != said for each in waiting) else ()
        spoken = {own_words(each).strip() for each in messages if is_request(each)} | {said}
        in_view = all(each.text in spoken and not each.by for each in waiting)
        return replace(pins, rules=shown) if in_view else pins

    def let_go(self, session: Session) -> None:
        """Keep nothing of the session in memory, because its transcript has changed."""
        self.preparations.forget(session)
        self.engines.drop(session.id)

    async def set_pins(
        self, lease: Lease, present: Session | None, known: Pins, pins: Pins, said: str | None = None
    ) -> None:
        """Make these the pins of the key, in place of those `known`; its present session has them in its prompt, or in
        view. `said`: the message that is about to be added to it."""
        rebuilt = None
        if present is not None:
            memory = snapshot_in(present.system_prompt) if present.system_prompt else None
            rebuilt = await self._rebuilt(present, await self._joining(present, pins, said), memory)
        await self.store.set_pins(lease, pins, rebuilt, known)

    async def show_anew(self, lease: Lease, present: Session | None) -> None:
        """Let the prompts of the present session, and of the person's other chats, show the present facts and skills: a
        person has changed them."""
        pins = await self.store.pins(lease.key)
        rebuilt = None if present is None else await self._rebuilt(present, pins, None)
        await self.store.set_pins(lease, pins, rebuilt, pins)

    async def _rebuilt(self, session: Session, pins: Pins, memory: str | None) -> Rebuilt:
        """The session's prompt with these pins, and with this memory (None: the present facts)."""
        own = await self._own(session, await self.choices(session))
        shown = await self.memories.snapshot(session) if memory is None else memory
        prompt = await self._prompt(session, pins, own, shown)
        return Rebuilt(ref=session.ref, system_prompt=prompt, last_prompt_tokens=self._reported(session, prompt))

    def _reported(self, session: Session, prompt: str) -> int:
        """Return the provider's last report, as it would have been with this prompt; 0: there is none."""
        if not session.system_prompt:  # for which prompt it was, nobody knows
            return 0
        before, after = (self._prompt_tokens(each, self.counter.is_exact) for each in (session.system_prompt, prompt))
        correct = self.models.calibration[session.model].apply
        return session.last_prompt_tokens and max(1, session.last_prompt_tokens + correct(after) - correct(before))

    # -- ending -----------------------------------------------------------------------------

    async def end(
        self,
        lease: Lease,
        session: Session,
        reason: EndReason,
        opening: Opening | None = None,
        *,
        goes_on: bool = False,
    ) -> Session | None:
        """End `session` for good, open the session of `opening` in the same step, and call the hook. `goes_on`: the
        same conversation goes on in that session, so memory is given it later."""
        at = self.clock.now()
        with self.hooks.ending(session):
            # A full disk delays an end; a failure half-way would have it done, or told, twice.
            opened = await insist(
                lambda: self.store.end_session(lease, session.ref, reason, at, opening),
                clock=self.clock,
                what="end_session",
            )
            self.points("session.ended")
            self.preparations.forget(session)
            if not goes_on:
                self.flushes.at_end(session)
            await self.hooks.call(replace(session, ended_at=at, end_reason=reason))
        if opened is not None and reason == "reset":
            await self.engines.move(session, opened, "reset")
        self.engines.drop(session.id)
        if opened is not None and self.hooks.plugged is not None:
            await self.hooks.plugged.began(opened)
        return opened

    async def expire(self, lease: Lease, session: Session) -> Session | None:
        """End a session whose time is over. In a project the next one begins at once, so that the chat stays in it; one
        of a person's further chats is gone back to, and needs none. Returns that next session."""
        opening = None
        if session.project and not session.key.is_own:
            fresh = self._blank(session.key, session.chat_type, session.places, after=session)
            opening = Opening(session=await self._prompted(replace(fresh, expires_at=None)))
        return await self.end(lease, session, "expired", opening)

    async def open_temporary(self, lease: Lease, present: Session | None, source: Source, session_id: str) -> None:
        """End the present session, and start an empty one that is temporary."""
        blank = self._blank(lease.key, source.chat_type, names(source), after=present, session_id=session_id)
        expires_at = self.policy.deadline(blank.started_at, temporary=True)
        opening = Opening(session=await self._prompted(replace(blank, temporary=True, expires_at=expires_at)))
        if present is None:
            await self._opened(lease, opening)
        else:
            await self.end(lease, present, "reset", opening)

    async def keep(self, lease: Lease, session: Session) -> None:
        """Make a temporary chat an ordinary one."""
        await self.store.keep_temporary(lease, session.ref, self.policy.deadline(session.last_active_at))
        self.let_go(session)

    async def reset(self, lease: Lease, session: Session, *, session_id: str | None = None) -> Session:
        """End `session` and start an empty one. A chosen model stays chosen."""
        fresh = self._blank(session.key, session.chat_type, session.places, after=session, session_id=session_id)
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
        A session is never reopened. In another chat than the origin's it is no version of it."""
        session = replace(
            self._blank(lease.key, origin.chat_type, origin.places, after=origin, session_id=session_id),
            parent_id=origin.id if origin.key == lease.key else None,
            temporary=origin.temporary,
            title=title or origin.title,
            compaction_count=origin.compaction_count,
            engine_state=origin.engine_state,
            todos=origin.todos,
            flushed_messages=min(origin.flushed_messages, len(messages)),
        )
        if session.temporary:
            session = replace(session, expires_at=self.policy.deadline(session.started_at, temporary=True))
        opening = Opening(session=await self._prompted(session), transcript=messages)
        if present is None:
            return await self._opened(lease, opening)
        opened = await self.end(lease, present, reason, opening, goes_on=present.id == origin.id)
        assert opened is not None
        return opened

    async def behind(self, lease: Lease, present: Conversation, after: str, session_id: str) -> Session | None:
        """Go on behind an exchange of the past, as `Inbound.after` names it, in a new session. None: the conversation
        is there already, or nobody knows the exchange. Behind another answer to its last question it is not there."""
        session, places = present.stored.session, [each.partition("/") for each in after.split(" ")]
        last = await self._last_event(session, present.stored.messages)
        for event, _, mark in places:
            if is_of(last or BEGINNING, event):
                here = behind(present.stored.messages, event)
                if here is None or mark in ("", here[1]):
                    return None
                other = await exchange_of(self.store, lease.key, event, mark, exact=True)
                return other and await self.switch(lease, session, *other, "switched", session_id=session_id)
        for event, _, mark in places:
            if event == BEGINNING:
                blank = self._blank(
                    session.key, session.chat_type, session.places, after=session, session_id=session_id
                )
                blank = replace(blank, temporary=session.temporary)
                opening = Opening(session=await self._prompted(blank))
                return await self.end(lease, session, "undone", opening, goes_on=True)
            if (found := await exchange_of(self.store, lease.key, event, mark)) is not None:
                return await self.switch(lease, session, *found, "switched", session_id=session_id)
        log.warning("place_unknown", session=session.id, after=after)
        return None

    async def _last_event(self, session: Session, messages: Sequence[Message]) -> str | None:
        """The last event of a conversation, which a compaction may have taken away."""
        last = last_event(messages)
        chain = await self.store.lineage(session.id) if last is None and session.compaction_count else ()
        for each in reversed(chain[:-1]):
            last = last or last_event(await self.store.transcript(each))
        return last

    def _tokens(self, session: Session, spec: ModelSpec) -> tuple[int, int]:
        """Return the tokens of system prompt and tool schemas together, and those of the schemas."""
        exact = self.counter.is_exact
        if exact and not self._exact:
            self._exact = True
            self.toolbox.count_anew()
        schemas = self.toolbox.tokens(session, spec.context_length)
        return self._prompt_tokens(session.system_prompt, exact) + schemas, schemas


async def exchange_of(
    store: Store, key: SessionKey, event: str, mark: str, *, exact: bool = False
) -> tuple[Session, Sequence[Message]] | None:
    """A session of a key with the exchange of an event, with this mark of its answer if there is one, else the newest,
    unless it must be `exact`; and its messages up to the end of that exchange. Notes that may know what came after it
    are second choice."""
    best, found = (False, False), None
    for each in await searched(store, key, event if mark else ""):
        messages = await store.transcript(each)
        if (place := behind(messages, event)) is None:
            continue
        end, told = place
        fits = mark in ("", told), end >= await _left_by_compaction(store, each)
        if (found is None or fits > best) and (fits[0] or not exact):
            best, found = fits, (each, messages[:end])
        if all(best):
            break
    return found


async def searched(store: ReportStore, key: SessionKey, event: str = "") -> list[Session]:
    """The sessions of a key, the newest first; of an event that was accepted, those first that were there soonest."""
    sessions = await store.sessions(key, _MOST_SEARCHED)
    fates = (await store.named(event, [key.platform])).fates if event else ()
    begun = next((each.item.accepted_at for each in fates if each.item.key == key), None)

    def away(session: Session, begun: float) -> float:
        return inf if (session.ended_at or inf) < begun else max(0.0, session.started_at - begun)

    return sessions if begun is None else sorted(sessions, key=lambda each: away(each, begun))


async def _left_by_compaction(store: ReportStore, session: Session) -> int:
    """How many messages of a session were there when its notes were made; 0 for one without."""
    made = (each for each in await store.compactions(session.id) if each.child_id == session.id)
    return next((each.messages_after for each in made), 0)


def _flushed(conversation: Conversation, transcript: Sequence[Message]) -> int:
    """Return the number of a continuation's messages that memory has read: all but those at the end that it did not
    read in the parent."""
    waiting = {note_of(message).get("id") for message in conversation.stored.messages[conversation.fresh.flushed :]}
    left = next((n for n, each in enumerate(reversed(transcript)) if note_of(each).get("id") not in waiting), None)
    return 0 if left is None else len(transcript) - left


def opened_by(item: InboxItem) -> str:
    """The id of the session that a command opens. It is the same at every attempt, so an attempt recognises what an
    earlier one did before a crash. Times could not tell, because a session that the previous item opened may be younger
    than this item."""
    return lasting_id("s", item.key, item.inbound.event_id, item.id, size=8)


def _kept_marks(announced: tuple[str, ...], trigger: str) -> tuple[str, ...]:
    """The marks of what a continuation need not say again. Only a person's own /compress gives automatic compaction a
    new chance to fail; in a small window it would otherwise be announced after every pass."""
    kept = (STAND_IN_MARK, NEAR_MARK, RESCUED_MARK, *([BLOCKED_MARK] if trigger != "manual" else []))
    return tuple(mark for mark in announced if mark.startswith(kept))
