"""One message, from receipt to reply.

Read it top to bottom: `receive` (an adapter hands over what it read), `run` (the lane's turn has
come), then what an item can be: a message, a command, or the gateway's own request to end a session.
An item always ends in `finish`, which stores the outcome and the reply in one step; nothing before
that can lose the item, because a crash only makes the lane run it again from its last stored step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import structlog

from gateway.agent.conversation import Conversation
from gateway.agent.factory import AgentFactory
from gateway.agent.files.intake import FileIntake
from gateway.agent.hygiene import Hygiene
from gateway.agent.loop import close_open_calls
from gateway.agent.pressure import announce
from gateway.agent.running import RunningTurns
from gateway.agent.sessions import Sessions
from gateway.commands.base import Answer, CommandContext, CommandRegistry, Services
from gateway.commands.pins import is_rule
from gateway.delivery.outbox import Outbox
from gateway.domain.adapter import Accepted, Adapter
from gateway.domain.chat import Inbound, Outbound, readable
from gateway.domain.command import CommandCall, parse_command
from gateway.domain.session import Session
from gateway.people.approvals import Approvals
from gateway.runtime.clock import Clock
from gateway.runtime.errors import SessionConflict, StoreUnavailable
from gateway.runtime.metrics import Histogram, Metrics
from gateway.runtime.points import Points
from gateway.runtime.tasks import Background
from gateway.store.insist import insist
from gateway.store.port import Store
from gateway.store.records import MOST_ATTEMPTS, InboxItem, ItemOutcome, Lease, TurnJournal
from gateway.turns.attempt import Attempt, Shown, sentence_for
from gateway.turns.notices import Throttle
from gateway.turns.observer import TurnObserver
from gateway.turns.parts import following, joined, patience
from gateway.turns.reception import Reception, TurnRules
from gateway.turns.recorder import TurnRecorder
from gateway.turns.turn_files import TurnFiles

log = structlog.get_logger(__name__)

_NOTICE_EVERY = 30.0  # seconds between two sentences about the store to one key

TURNS = Histogram(
    name="turn_seconds",
    text="Time from a message's acceptance to its stored outcome.",
    labels=("platform", "outcome"),
)

EMPTY = "That message was empty; write something and I will answer."
FILES_LEFT = "I did not look at the file that came with this command; send it again without one."
DEAD = (
    "I could not answer a message of yours: each of {attempts} attempts at it ended in a crash. It is kept, "
    "but I will not try it again; please put it differently."
)
UNREADABLE = "A message of yours was damaged in my store, so I cannot answer it; please send it again."
PUT_AWAY = (
    "This conversation was put away after a long silence. Your next message starts fresh; /resume goes back to it."
)


@dataclass(slots=True, kw_only=True)
class Turns:
    """The story's cast. Only `_notices` changes: when a key was last told that the store is away."""

    reception: Reception
    store: Store
    sessions: Sessions
    outbox: Outbox
    agents: AgentFactory
    hygiene: Hygiene
    files: FileIntake
    commands: CommandRegistry
    services: Services
    approvals: Approvals
    running_turns: RunningTurns
    background: Background
    clock: Clock
    points: Points
    metrics: Metrics
    rules: TurnRules
    adapters: dict[str, Adapter]
    _notices: Throttle = field(default_factory=lambda: Throttle(every=_NOTICE_EVERY))

    # -- 1. receipt -------------------------------------------------------------------------

    async def receive(self, adapter: Adapter, batch: Sequence[Inbound]) -> list[Accepted]:
        """Store what an adapter read: see `Reception.receive`."""
        return await self.reception.receive(adapter, batch, at_once=self.run_bypassed)

    # -- 2. commands that do not wait -------------------------------------------------------

    def run_bypassed(self, item: InboxItem) -> Awaitable[str]:
        """Carry out a command that must reach a running turn, or a press, at once and beside the lane. Gives
        what the person is told, once that is known."""
        said: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.background.start(self._bypass(item, said), name=f"command {item.key} {item.id}")
        return said

    async def _bypass(self, item: InboxItem, said: asyncio.Future[str]) -> None:
        rows: list[Outbound] = []
        if item.inbound.kind == "press":  # its platform has a way of its own to tell who pressed
            said.set_result(await self._pressed(item))
        else:
            call = parse_command(item.inbound.text)
            assert call is not None, "only commands and presses bypass the lane"
            answer = _with_files(await self._answer(call, item, None), item.inbound)
            said.set_result(answer.text)
            rows = self.outbox.answer(item, answer.kind, answer.text)
        with suppress(SessionConflict):  # another process took this one for dead and has answered
            answered = await insist(
                lambda: self.store.finish_bypassed(item, rows),
                clock=self.clock,
                what="finish_bypassed",
                failed=lambda error: self._cannot_store(item, error),
            )
            self.outbox.deliver(answered)

    async def _pressed(self, item: InboxItem) -> str:
        try:
            return await self.approvals.pressed(item.inbound)
        except StoreUnavailable as error:
            return str(error)

    # -- 3. the lane has come to an item ----------------------------------------------------

    async def run(self, lease: Lease, item: InboxItem) -> InboxItem | None:
        """Bring one item to its end. Returns the lane's next item, already claimed."""
        recorder = TurnRecorder(
            store=self.store,
            sessions=self.sessions,
            lease=lease,
            item=item,
            clock=self.clock,
            failed=lambda error: self._cannot_store(item, error),
        )
        try:
            if item.attempts > MOST_ATTEMPTS or item.inbound.kind == "unreadable":
                return await self._bury(recorder, item)
            self.points("turn.claimed")
            if item.inbound.kind == "expiry":
                return await self._expire(recorder, item)
            if item.attempts == 1 and not await self.services.pairing.lets_in(item.inbound.source):
                log.info("shown_out_meanwhile", key=str(item.key), item=item.id)  # what has begun is ended, no more
                return await self._finish(recorder, item, None, "refused", [])
            call = parse_command(item.inbound.text) if item.inbound.kind == "message" else None
            if call is not None:
                return await self._command(recorder, item, call)
            if is_rule(item):
                await self._pin(recorder, item)
            return await self._converse(recorder, item, item.inbound)
        except SessionConflict:
            raise
        except StoreUnavailable as error:
            # What is stored is enough to go on with when the store is back.
            if self._notices.due(item.key, self.clock.monotonic()):
                self._cannot_store(item, error)
            raise
        except Exception as error:
            # Whatever broke, the item ends and the person is told; the next message works.
            return await self._finish(recorder, item, None, "failed", [("error", sentence_for(error))])

    # -- 4. a message -----------------------------------------------------------------------

    async def _converse(self, recorder: TurnRecorder, item: InboxItem, said: Inbound) -> InboxItem | None:
        journal = await self.store.journal(item)
        resumed = journal is not None and journal.begun
        parts = [] if resumed else await self._parts(item)
        session = await self._present(recorder, item, may_expire=not resumed)
        self.points("turn.session_opened")
        conversation = await self.sessions.conversation(session)
        if not resumed:
            said = joined(said, [part.inbound for part in parts])
            text = readable(said)
            conversation.absorbed += [part.id for part in parts]
            refusal = conversation.too_long(text) if text.strip() else EMPTY
            if refusal:
                touched = conversation if parts else None
                return await self._finish(recorder, item, touched, "refused", [("error", refusal)])
            # A turn that a bug ended may have left calls without results.
            close_open_calls(conversation, self.clock.now())
        return await self._turn(recorder, item, conversation, journal, None if resumed else said)

    async def _parts(self, item: InboxItem) -> list[InboxItem]:
        """The other parts of a message that its client had to send in several, once all have come. They
        end with the step that stores their words; until then the lane would find them again."""
        while item.inbound.part_of is not None:
            behind = await self.store.waiting(item.key, self.rules.lane_cap)
            seconds = patience(item, behind, self.clock.now())
            if not seconds:
                return following(item, behind)
            await self.clock.sleep(seconds)
        return []

    async def _present(self, recorder: TurnRecorder, item: InboxItem, *, may_expire: bool) -> Session:
        """The key's session; one whose time is over ends here, by the same path as in the sweep."""
        present = await self.store.tip(item.key)
        if present is not None:
            if not may_expire or not self.sessions.is_due(present):
                return present
            await self._put_away(recorder.lease, item, present)
        return await insist(
            lambda: self.sessions.open(recorder.lease, item.inbound.source.chat_type),
            clock=self.clock,
            what="open_session",
            failed=recorder.failed,
        )

    async def _turn(
        self,
        recorder: TurnRecorder,
        item: InboxItem,
        conversation: Conversation,
        journal: TurnJournal | None,
        said: Inbound | None,
    ) -> InboxItem | None:
        attempt = self._attempt(recorder, item, journal)
        waiting = {intent.call_id for intent in journal.intents if intent.waits} if journal else set()
        shown: Shown
        outcome: ItemOutcome = "answered"
        try:
            shown = [("reply", await attempt.converse(conversation, said, waiting))]
            shown += [
                ("notice", told) for told in announce(conversation, self.metrics, automatic=self.agents.automatic)
            ]
        except TimeoutError:
            outcome, shown = attempt.cut_short()
            attempt.agent.interrupt(conversation)
        except (SessionConflict, StoreUnavailable):
            raise
        except Exception as error:
            outcome, shown = "failed", [("error", sentence_for(error))]
            attempt.agent.interrupt(conversation)
        attempt.observer.phase("finishing")
        unanswered = await self.approvals.withdrawn(item) if attempt.questions.known else []
        reply_id = attempt.observer.reply_id
        return await self._finish(recorder, item, conversation, outcome, shown, reply_id=reply_id, first=unanswered)

    def _attempt(self, recorder: TurnRecorder, item: InboxItem, journal: TurnJournal | None = None) -> Attempt:
        observer = TurnObserver(
            item=item,
            adapter=self.adapters.get(item.inbound.source.platform),
            store=self.store,
            outbox=self.outbox,
            clock=self.clock,
            takes_messages=self.rules.busy_mode == "steer",
            lease=recorder.lease,
            reply_id=journal.reply.id if journal and journal.reply else self.outbox.new_id(),
            inactivity=self.rules.inactivity,
            files=self.files,
        )
        questions = self.approvals.of_turn(recorder.lease, item, journal.approvals if journal else ())
        return Attempt(
            agent=self.agents.build(
                writer=recorder,
                observer=observer,
                questions=questions,
                recall=lambda words, limit: self.store.search(words, item.key, limit),
                files=TurnFiles(item=item, store=self.store, outbox=self.outbox, clock=self.clock),
                admin=self.approvals.access.is_admin(item.inbound.source),
            ),
            observer=observer,
            files=self.files,
            questions=questions,
            hygiene=self.hygiene,
            running_turns=self.running_turns,
            store=self.store,
            clock=self.clock,
            deadline=self.rules.deadline,
            inactivity=self.rules.inactivity,
        )

    # -- 5. a command -----------------------------------------------------------------------

    async def _command(self, recorder: TurnRecorder, item: InboxItem, call: CommandCall) -> InboxItem | None:
        answer = await self._answer(call, item, recorder)
        if answer.then is not None:
            files = (*item.inbound.attachments, *answer.files)
            return await self._converse(recorder, item, replace(item.inbound, text=answer.then, attachments=files))
        answer = _with_files(answer, item.inbound)
        return await self._finish(recorder, item, answer.conversation, "answered", [(answer.kind, answer.text)])

    async def _pin(self, recorder: TurnRecorder, item: InboxItem) -> None:
        """Pin a message that is a rule for good, as if /pin stood before it, and tell its person."""
        answer = await self._answer(CommandCall(name="pin", argument=item.inbound.text.strip()), item, recorder)
        await self.outbox.emit(self.outbox.answer(item, "notice", answer.text))

    async def _answer(self, call: CommandCall, item: InboxItem, recorder: TurnRecorder | None) -> Answer:
        command = self.commands.get(call.name)
        if command is None:
            return Answer(kind="error", text=self.commands.unknown(call.name))
        scene = CommandContext(
            services=self.services,
            registry=self.commands,
            item=item,
            lease=recorder.lease if recorder else None,
            argument=call.argument,
            compress=None if recorder is None else self._attempt(recorder, item).compress,
        )
        try:
            return await command.run(scene)
        except SessionConflict:
            raise
        except StoreUnavailable as error:
            if recorder is not None:  # it has a lane, which comes to it again
                raise
            return Answer(kind="error", text=str(error))
        except Exception as error:
            return Answer(kind="error", text=sentence_for(error))

    # -- 6. the end of a quiet session ------------------------------------------------------

    async def _expire(self, recorder: TurnRecorder, item: InboxItem) -> InboxItem | None:
        """End the session named by the sweep, if it is still open and still due."""
        session = await self.store.session(item.inbound.text)
        if session.ended_at is None and self.sessions.is_due(session):
            await self._put_away(recorder.lease, item, session)
        elif session.ended_at is None:
            due = self.sessions.policy(session).deadline(session.last_active_at) if session.message_count else None
            await self.store.update_session(recorder.lease, session.ref, expires_at=due)
        return await self._finish(recorder, item, None, "answered", [])

    async def _put_away(self, lease: Lease, item: InboxItem, session: Session) -> None:
        """End a session whose time is over, and tell its chat. Told first, under the session's own id:
        after a crash in between it is neither forgotten nor told again."""
        if self.sessions.policy(session).notify:
            rows = self.outbox.answer(item, "notice", PUT_AWAY, first_id=f"o_{session.id}")
            await insist(lambda: self.outbox.emit(rows), clock=self.clock, what="put_away")
        await self.sessions.end(lease, session, "expired")

    # -- 7. the end of an item --------------------------------------------------------------

    async def _bury(self, recorder: TurnRecorder, item: InboxItem) -> InboxItem | None:
        """A message that keeps killing the process ends as a dead letter, visibly."""
        log.error("dead_letter", key=str(item.key), item=item.id, attempts=item.attempts)
        conversation, parts = None, list[InboxItem]()
        journal = await self.store.journal(item)
        if journal is None or not journal.begun:  # its parts, which would only do the same again
            parts = following(item, await self.store.waiting(item.key, self.rules.lane_cap))
        if journal is not None or parts:
            session = await self.sessions.open(recorder.lease, item.inbound.source.chat_type)
            conversation = await self.sessions.conversation(session)
            close_open_calls(conversation, self.clock.now())
            conversation.absorbed += [part.id for part in parts]
        text = UNREADABLE if item.inbound.kind == "unreadable" else DEAD.format(attempts=item.attempts - 1)
        shown: Shown = [] if item.inbound.kind == "expiry" else [("error", text)]  # a sweep asked, no person did
        unanswered = await self.approvals.withdrawn(item) if journal is not None and journal.approvals else []
        return await self._finish(recorder, item, conversation, "dead", shown, first=unanswered)

    async def _finish(
        self,
        recorder: TurnRecorder,
        item: InboxItem,
        conversation: Conversation | None,
        outcome: ItemOutcome,
        shown: Shown,
        *,
        reply_id: str | None = None,
        first: Sequence[Outbound] = (),
    ) -> InboxItem | None:
        session_id = conversation.session.id if conversation else None
        rows = list(first)
        for kind, text in shown:
            first_id = reply_id if kind == "reply" else None
            rows += self.outbox.answer(item, kind, text, session_id=session_id, first_id=first_id)
        end = await recorder.finish(conversation, outcome, rows)
        self.points("turn.finished")
        if item.inbound.kind != "expiry":
            took = max(0.0, self.clock.now() - item.accepted_at)
            self.metrics.observe(TURNS, took, item.key.platform, outcome)
        self.outbox.deliver(end.outbound)
        if conversation is not None and outcome == "answered":
            self.agents.preparations.consider(conversation)
        return end.next

    def _cannot_store(self, item: InboxItem, error: StoreUnavailable) -> None:
        """The turn waits for the store; say so directly, since nothing can be stored first."""
        text = f"I cannot store my work right now ({error}); I keep it and try again until it works."
        self.outbox.announce(self.outbox.answer(item, "error", text)[0])


def _with_files(answer: Answer, inbound: Inbound) -> Answer:
    """What a command says that had files with it, for which it has no use."""
    return replace(answer, text=f"{answer.text}\n{FILES_LEFT}") if inbound.attachments else answer
