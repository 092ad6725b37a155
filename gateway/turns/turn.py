"""One message, from its lane to its reply.

Read from top to bottom: the lane comes to an item (`run`), which is a message, a command, or the gateway's own
request to end a session. Each of these gives an `Ending`: how the item ends, and what its chat is shown. `_finish`
stores the ending in one step with everything that is not stored yet. Nothing before that can lose the item: after a
crash the lane runs it again from its last stored step.

How a message comes into its lane is told in `reception`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Literal

import structlog
from msgspec import Struct, field

from gateway.agent.agents import Agents
from gateway.agent.caps import millionths, of_key
from gateway.agent.compaction import CompactionReport
from gateway.agent.conversation import Conversation
from gateway.agent.delegation import order_in
from gateway.agent.files.message import without_files
from gateway.agent.fitting import Fitting
from gateway.agent.forgetting import NOT_UNDONE
from gateway.agent.loop import Agent
from gateway.agent.metering import Metering
from gateway.agent.pressure import announce
from gateway.agent.running import RunningTurn, RunningTurns
from gateway.agent.sessions import opened_by
from gateway.agent.steps import close_open_calls, open_calls, take_results
from gateway.agent.tools.base import Question
from gateway.agent.tools.offer import Caller
from gateway.agent.waking import woken
from gateway.commands.base import HeldLane
from gateway.commands.runner import CommandRunner, sentence_for, with_choices
from gateway.context import feedback
from gateway.context.standing import ended
from gateway.delivery.outbox import Outbox
from gateway.domain.adapter import Adapter, HasTopics
from gateway.domain.approval import LABELS, Labels
from gateway.domain.chat import (
    ENDED,
    HEARTBEAT,
    NO_TERMS,
    SCHEDULED,
    Inbound,
    Outbound,
    OutboundKind,
    Returns,
    SessionKey,
    Source,
    Terms,
    readable,
)
from gateway.domain.command import CommandCall, Proposal
from gateway.domain.message import Message, note_of
from gateway.domain.session import Session
from gateway.domain.turn import STOPPED, BusyMode, TurnRules
from gateway.people.approvals import TurnQuestions
from gateway.people.people import People
from gateway.people.reminders import row_of_run
from gateway.runtime.clock import Clock
from gateway.runtime.errors import (
    NothingSaid,
    ProviderRejected,
    SessionConflict,
    SessionNotFound,
    SpendCapReached,
    StoreUnavailable,
    UserError,
)
from gateway.runtime.metrics import Histogram
from gateway.runtime.points import Points
from gateway.runtime.structs import replace
from gateway.store.insist import insist
from gateway.store.port import Store
from gateway.store.records import MOST_ATTEMPTS, Beginning, Cap, CapName, InboxItem, ItemOutcome, Lease, TurnJournal
from gateway.turns.growing import GrowingReply
from gateway.turns.limits import TurnTime
from gateway.turns.notices import Throttle
from gateway.turns.observer import TurnObserver
from gateway.turns.parts import following, joined, patience
from gateway.turns.recorder import TurnRecorder
from gateway.turns.reminded import reminded
from gateway.turns.steering import NOT_FETCHED, Steering
from gateway.turns.turn_files import TurnFiles, TurnPolls

if TYPE_CHECKING:
    from gateway.turns.delegated import HelperTurn
    from gateway.turns.overheard import Overheard
    from gateway.turns.reactions import Reactions
    from gateway.turns.suggestions import Suggestions
    from gateway.turns.voice import Voice

log = structlog.get_logger(__name__)

TURNS = Histogram(
    name="turn_seconds", text="Time from accepting a message to storing its outcome.", labels=("platform", "outcome")
)

_RUN_REMEMBERED = 86_400.0  # seconds that the cost of a scheduled prompt's run is known, at least

EMPTY = "Your message has no text. What can I do for you?"
DEAD = (
    "I could not answer one of your messages, because each of {attempts} attempts crashed. I keep the message, but "
    "will not try to answer it again. Please put it differently."
)
UNREADABLE = "One of your messages was damaged in my store, so I cannot answer it. Please send the message again."
PUT_AWAY = (
    "I closed this session after a long silence. Your next message starts a fresh session, and /resume goes back to "
    "the old one."
)
DELETED = "Your temporary chat ended after a long silence, and I deleted it. " + NOT_UNDONE
NOT_CLEANED = "I could not compress the earlier conversation ({reason}), so I am going on with all of it."
RULE_ENDED = "This rule no longer holds: “{rule}” To restore it, send: /pin {rule}"
RULE_PINNED = "This rule is pinned and still holds: “{rule}” To remove it, send: /unpin {number}"
NOT_WAITING = "The conversation went on without the tool calls of this answer. Ask again if you need the results."
WOKEN = "I am continuing on my own: {what}."
KEPT_ASIDE = "I kept the message you added while I worked, but did not answer it. Ask again if you need an answer."
_RULES_TOLD: Final = 5  # of those that one message takes back, the newest
_CONFIRMED = "command"  # the name of a command's question among those of its item
_TAKES: Final[Mapping[BusyMode, Literal["never", "at first", "always"]]] = {
    "queue": "never",
    "collect": "at first",
    "steer": "always",
    "interrupt": "never",
}
_SILENT: Final = ("expiry", "forget", "helper", "speak", "withdrawn")  # kinds of items whose end nobody is told
COMPACTION_STOPPED = "The compression was stopped. The conversation is unchanged."


class Ending(Struct, frozen=True, kw_only=True):
    """How an item ends, and the texts that its chat is shown."""

    outcome: ItemOutcome
    shown: Sequence[tuple[OutboundKind, str]] = ()
    conversation: Conversation | None = None  # with everything that is not stored yet
    reply_id: str | None = None  # of a reply that was shown while it grew
    has_asked: bool = False  # its chat may show questions that are not answered
    returns: Returns | None = None  # with its reply
    choices: Sequence[Proposal] = ()  # buttons under a command's answer


class Beside(Struct, frozen=True, kw_only=True):
    """What a gateway does besides answering, if it is wanted."""

    overheard: Overheard | None = None
    reactions: Reactions | None = None
    suggestions: Suggestions | None = None
    voice: Voice | None = None
    topics: bool = False  # the tool for them is on


class Turns(Struct, kw_only=True):
    """The parts that every turn needs. `began`: when this process began (monotonic). Only `_outages` changes: when each
    key was last told that the store is away."""

    store: Store
    agents: Agents
    people: People
    commands: CommandRunner
    running_turns: RunningTurns
    outbox: Outbox
    adapters: Mapping[str, Adapter]
    rules: TurnRules
    clock: Clock
    points: Points
    began: float
    beside: Beside
    _outages: Throttle = field(default_factory=Throttle)

    # -- 1. the lane has come to an item ----------------------------------------------------

    async def run(self, lease: Lease, item: InboxItem, begins: Beginning | None = None) -> InboxItem | None:
        """Bring one item to its end. Returns the lane's next item, already claimed. `begins`: what its turn begins
        with, if the store has just looked."""
        recorder = TurnRecorder(
            store=self.store,
            sessions=self.agents.sessions,
            outbox=self.outbox,
            clock=self.clock,
            lease=lease,
            item=item,
        )
        try:
            ending = await self._ending(recorder, begins)
            if item.inbound.kind == "schedule":
                shown = await self.people.firing.judged(item, ending.outcome, ending.shown)
                ending = replace(ending, shown=shown)
            return await self._finish(recorder, ending)
        except SessionConflict:
            raise
        except StoreUnavailable as error:
            # The stored part is enough to go on with when the store is back.
            if self._outages.due(item.key, self.clock.monotonic()):
                recorder.tell_of_outage(error)
            raise
        except Exception as error:
            # After any bug the item ends and the person is told, and the next message works.
            failure = Ending(outcome="failed", shown=[("error", sentence_for(error))])
            return await self._finish(recorder, failure)

    async def _ending(self, recorder: TurnRecorder, begins: Beginning | None) -> Ending:
        """Do what the item asks for."""
        item = recorder.item
        if item.inbound.kind == "helper":
            return await self._help(recorder)
        if item.attempts > MOST_ATTEMPTS or item.inbound.kind == "unreadable":
            return await self._give_up(recorder)
        self.points("turn.claimed")
        if item.inbound.kind == "withdrawn":
            if item.inbound.text:
                await self.agents.forgetter.forget_taken_back(recorder.lease, item)
            return Ending(outcome="withdrawn")
        if item.inbound.kind == "expiry":
            return await self._expire(recorder)
        if item.inbound.kind == "forget":
            await self.agents.forgetter.forget_person(recorder.lease, item)
            return Ending(outcome="answered")
        if not await self.people.pairing.lets_in(item.inbound.source):
            return await self._shut_out(item)
        if item.inbound.kind == "speak":
            if self.beside.voice is not None:
                await self.beside.voice.run(item, self._metering(item.inbound.source))
            return Ending(outcome="answered")
        if item.inbound.kind == "ended" and not await self.store.sessions(item.key, 1):
            return Ending(outcome="refused")  # what it was begun for is forgotten
        if (call := item.inbound.command) is not None:
            return await self._command(recorder, call)
        if (implied := self.commands.registry.implied(item)) is not None and not await self._is_temporary(item.key):
            answer = await self.commands.answer(item, implied, self._held(recorder))
            await self.outbox.tell(item, answer.text)
            begins = None
        return await self._converse(recorder, item.inbound, begins)

    async def _is_temporary(self, key: SessionKey) -> bool:
        """Whether a chat is one of which nothing is kept, such as a rule for other chats."""
        tip = await self.store.tip(key)
        return tip is not None and tip.temporary

    async def _shut_out(self, item: InboxItem) -> Ending:
        """End the item of somebody who may no longer talk here; if a crash interrupted its turn, say so."""
        log.info("shown_out_meanwhile", key=str(item.key), item=item.id)
        journal = await self.store.journal(item)
        if journal is None or not journal.begun:
            return Ending(outcome="refused")
        return Ending(
            outcome="stopped",
            shown=[("notice", STOPPED)],
            reply_id=journal.reply.id if journal.reply else None,
            has_asked=bool(journal.approvals),
        )

    # -- 2. a command -----------------------------------------------------------------------

    async def _command(self, recorder: TurnRecorder, call: CommandCall) -> Ending:
        item = recorder.item
        answer = await self.commands.answer(item, call, self._held(recorder))
        if answer.then is not None:
            files = (*item.inbound.attachments, *answer.files)
            told = replace(item.inbound, text=answer.then, own=answer.own, attachments=files, after=None)
            return await self._converse(recorder, told)
        return Ending(
            outcome="answered",
            shown=[(answer.kind, answer.text)],
            conversation=answer.conversation,
            choices=answer.choices if self.outbox.has_buttons(item.inbound.source.platform) else (),
        )

    def _held(self, recorder: TurnRecorder) -> HeldLane:
        compress, confirm = partial(self._compress, recorder), partial(self._confirm, recorder)
        return HeldLane(lease=recorder.lease, compress=compress, confirm=confirm)

    async def _compress(
        self, recorder: TurnRecorder, conversation: Conversation, focus: str | None, keep: int
    ) -> CompactionReport:
        """Compact for /compress. New messages wait for it, whatever the busy mode."""
        observer = self._observer(recorder)
        observer.time.turn.interruptible = False
        try:
            async with observer:
                await observer.begin()
                observer.phase("compacting")
                compactor = self.agents.compactor(writer=recorder)
                return await compactor.run(conversation, "manual", focus=focus, keep=keep)
        except TimeoutError:
            raise UserError(COMPACTION_STOPPED) from None
        raise AssertionError("a limit that strikes raises")

    async def _confirm(self, recorder: TurnRecorder, question: str, labels: Labels) -> bool:
        """Ask the person whose command this is, and wait in the lane for the yes. A /stop is a no. After a crash, the
        question and its answer are still there."""
        journal = await self.store.journal(recorder.item) or TurnJournal(session_id="")
        questions = self._questions(recorder, journal, labels)
        observer = self._observer(recorder)
        observer.time.turn.interruptible = False
        with suppress(TimeoutError):
            async with observer:
                await observer.begin()
                if not questions.has_asked(_CONFIRMED):
                    await questions.ask(_CONFIRMED, Question(question, ""), "", None)
                async with observer.asking():
                    return await questions.answer(_CONFIRMED) == "approved"
        if (asked := questions.known.get(_CONFIRMED)) is not None:
            await self.people.approvals.decide(asked, "denied", None)
        return False

    # -- 3. a message -----------------------------------------------------------------------

    async def _converse(self, recorder: TurnRecorder, said: Inbound, begins: Beginning | None = None) -> Ending:
        item = recorder.item
        begins = begins or await self.store.beginning(item)
        journal = begins.journal or TurnJournal(session_id="")
        begun = begins.journal is not None and journal.begun
        parts = [] if begun or item.inbound.part_of is None else await self._parts(item)
        session = await self._session(recorder, begins.tip, resumed=begun or bool(said.after))
        self.points("turn.session_opened")
        conversation = await self.agents.sessions.conversation(session)
        if said.after is not None and not begun:
            conversation = await self._behind(recorder, conversation, said.after)
        if begun:  # the conversation holds the message already
            return await self._turn(recorder, conversation, journal, None, reminders=begins.reminders)
        if parts:
            said = joined(said, [part.inbound for part in parts])
            conversation.absorb(part.id for part in parts)
        text, results = readable(said), dict(said.terms.results) if said.terms else {}
        long = "\n".join([text, *results.values()]) if results else text
        refusal = await conversation.too_long(long) if long.strip() else EMPTY
        if (plugged := self.agents.sessions.hooks.plugged) is not None and text.strip() and not (refusal or said.woke):
            heard = await plugged.message(session, said)
            said, refusal = heard.said, heard.refusal
        if results and not refusal and not await take_results(conversation, results, said.event_id, self.clock.now()):
            refusal = NOT_WAITING
        if refusal:
            shown: list[tuple[OutboundKind, str]] = [("error", refusal)]
            returns = Returns(fault="request" if refusal in (EMPTY, NOT_WAITING) else "length") if said.terms else None
            return Ending(outcome="refused", shown=shown, conversation=conversation if parts else None, returns=returns)
        close_open_calls(conversation, self.clock.now())  # a turn that a bug ended may have left some
        new = said if text.strip() else None  # results alone: the turn goes on where it was
        return await self._turn(recorder, conversation, journal, new, reminders=begins.reminders)

    async def _parts(self, item: InboxItem) -> list[InboxItem]:
        """The other parts of a message that its client had to split, once all have come. They end with the step that
        stores their words; until then the lane would find them again."""
        while item.inbound.part_of is not None:
            behind = await self.store.waiting(item.key, self.rules.turns.lane_cap)
            seconds = patience(item, behind, self.clock.now(), self.clock.monotonic() - self.began)
            if not seconds:
                return following(item, behind)
            await self.clock.sleep(seconds)
        return []

    async def _behind(self, recorder: TurnRecorder, present: Conversation, after: str) -> Conversation:
        """The conversation after the exchange that its client names."""
        sessions = self.agents.sessions
        session = await sessions.behind(recorder.lease, present, after, opened_by(recorder.item))
        if session is None:
            return present
        return await sessions.conversation(await recorder.follow(session))

    async def _session(self, recorder: TurnRecorder, present: Session | None, *, resumed: bool) -> Session:
        """The key's session. If its time is over, it ends here just as in the sweep, unless it is `resumed`."""
        if present is not None and (resumed or not self.agents.sessions.is_due(present)):
            return await recorder.follow(present)
        begun = None if present is None else await self._put_away(recorder, present)
        return await recorder.open_session() if begun is None else await recorder.follow(begun)

    async def _turn(
        self,
        recorder: TurnRecorder,
        conversation: Conversation,
        journal: TurnJournal,
        said: Inbound | None,
        *,
        reminders: bool,
    ) -> Ending:
        """Let the agent answer the message `said`, or continue a turn that a crash interrupted. `reminders`: the key
        has some."""
        if self.beside.reactions is not None and self.beside.reactions.signs:
            self.beside.reactions.put(recorder.item, "taken")
        observer = self._observer(recorder, journal.reply)
        observer.reply.conversation = conversation
        questions = self._questions(recorder, journal)
        questions.session = conversation.stored.session.id
        steering = self._steering(recorder.item, observer)
        hidden = recorder.item.key if conversation.stored.session.temporary else None
        agent = self._agent(recorder, observer, questions, steering, hidden)
        shown: list[tuple[OutboundKind, str]]
        returns: Returns | None = None
        try:
            async with observer:
                await self._add_message(observer, conversation, said, reminders=reminders)
                # A compaction would take calls that wait for their results for lost: the loop makes room behind them.
                if self.agents.hygiene.due(conversation) and not open_calls(conversation):
                    await self._clean(observer, conversation, agent.fitting)
                outcome: ItemOutcome = "answered"
                reply = await self.agents.invoke(agent, conversation, journal.intents)
                asides = f"\n\n{questions.footer}" if questions.footer else ""
                shown = [("reply", reply + asides + agent.footer(conversation, reply))]
                if recorder.item.inbound.terms is not None:
                    returns = agent.returns(conversation)
            for text in await agent.remarks(conversation):
                shown.append(("notice", text))
            for text in announce(conversation, automatic=agent.fitting.automatic):
                shown.append(("notice", text))
        except TimeoutError:
            outcome, sentence = observer.time.why_ended()
            if outcome == "failed":
                log.warning("turn_given_up", key=str(recorder.item.key), sentence=sentence)
            begun = _begun(await agent.interrupt(conversation))
            await self.agents.sessions.helpers.stop(recorder.item.key, background=sentence == STOPPED)
            shown = [*begun, ("notice" if outcome == "stopped" else "error", sentence)]
            if sentence == STOPPED and await steering.put_aside(conversation, observer.time.stopped_at):
                shown.append(("notice", KEPT_ASIDE))
        except NothingSaid:
            outcome, shown = "withdrawn", []
        except (SessionConflict, StoreUnavailable):
            raise
        except Exception as error:
            sentence = sentence_for(error, details=agent.fitting.details)
            await self.agents.sessions.helpers.stop(recorder.item.key, background=False)
            outcome, shown = "failed", [*_begun(await agent.interrupt(conversation)), ("error", sentence)]
            returns = _returns(error, recorder.item.inbound.terms)
        observer.phase("finishing")
        return Ending(
            outcome=outcome,
            shown=shown,
            conversation=conversation,
            reply_id=observer.reply.id,
            has_asked=bool(questions.known),
            returns=returns,
        )

    async def _add_message(
        self, observer: TurnObserver, conversation: Conversation, said: Inbound | None, *, reminders: bool
    ) -> None:
        """Add the message to the conversation, after what reminders said since the last one. If the turn is ended
        meanwhile, at least its words are added."""
        if said is None:
            return await observer.begin()
        key = conversation.stored.session.key
        new = [woken(said) if said.woke else without_files(key, said, NOT_FETCHED)]
        try:
            await observer.begin()
            if said.woke:
                await observer.tell_once("woken", WOKEN.format(what=said.woke))
            if said.attachments:
                observer.phase("fetching files")
                new = [await self.agents.files.message(conversation, said, observer.alive, observer.tell_once)]
            message = await conversation.measured_aside(new[0])
            new = [*await reminded(self.store, conversation), message] if reminders else [message]
            if note_of(message).get("instructions"):
                await self._tell_of_rules(observer, conversation, message)
        except NothingSaid:
            new = []
            raise
        finally:
            for each in new:
                conversation.add(each, self.clock.now())

    async def _tell_of_rules(self, observer: TurnObserver, conversation: Conversation, message: Message) -> None:
        """Tell which rules a message takes back. Pinned ones stay."""
        rules = ended([*conversation.stored.messages, *conversation.fresh.messages], message)[-_RULES_TOLD:]
        if rules:
            pinned = [each.text for each in (await self.store.pins(conversation.stored.session.key)).rules]
            told = [
                RULE_PINNED.format(rule=each.text, number=pinned.index(each.text) + 1)
                if each.text in pinned
                else RULE_ENDED.format(rule=each.text)
                for each in rules
            ]
            await observer.tell_once("rules", "\n".join(told))

    async def _clean(self, observer: TurnObserver, conversation: Conversation, fitting: Fitting) -> None:
        """Compact before the turn, if its own loop would come too late."""
        await fitting.begin(conversation)
        result = await self.agents.hygiene.run(conversation, fitting.compactor)
        if result.failure:
            fitting.compact_no_more()
            unspoken = result.technical and not fitting.details
            reason = feedback.NO_SUMMARISER if unspoken else result.failure.rstrip(".")
            await observer.tell(NOT_CLEANED.format(reason=reason))
        if result.report:
            await fitting.tell(result.report.outcome)

    async def _help(self, recorder: TurnRecorder) -> Ending:
        """Let a helper do what a turn has handed on, or continue it."""
        item, access = recorder.item, self.people.pairing.access
        order, source = order_in(item.inbound.text), item.inbound.source
        metering = self._within_budget(self._metering(source), order.event)
        if (budget := self.agents.sessions.helpers.budget_usd) is not None:
            ends = self.clock.now() + _RUN_REMEMBERED
            own = Cap(name="helper", account=item.inbound.event_id, limit=millionths(budget), resets_at=ends)
            metering = metering.within(*metering.beside, own)
        caller = await self.store.session(order.session, item.key.caller)
        # By name: most turns call no helper.
        turn: HelperTurn = import_module("gateway.turns.delegated").HelperTurn(
            store=self.store,
            agents=self.agents,
            recorder=recorder,
            outbox=self.outbox,
            caller=Caller(source=source, admin=access.is_admin(source)),
            metering=metering.helping(caller),
            reminders=self.people.reminders.of(item),
            welcome=await self.people.pairing.lets_in(source),
            time=self._time(item),
            clock=self.clock,
            points=self.points,
        )
        return Ending(outcome=await turn.run())

    # -- 4. the end of a quiet session ------------------------------------------------------

    async def _expire(self, recorder: TurnRecorder) -> Ending:
        """End the session that the sweep named, if it is still open and still due."""
        try:
            session = await self.store.session(recorder.item.inbound.text)
        except SessionNotFound:  # a temporary chat that is deleted already
            return Ending(outcome="answered")
        if session.ended_at is not None and session.temporary:  # a crash came before this
            await self.agents.forgetter.delete_temporary(recorder.lease, session, recorder.item)
        elif session.ended_at is None and self.agents.sessions.is_due(session):
            await self._put_away(recorder, session)
        elif session.ended_at is None:
            deadline = self.agents.sessions.policy.deadline(session.last_active_at, session.temporary)
            due = deadline if session.message_count or session.temporary else None
            await self.store.update_session(recorder.lease, session.ref, expires_at=due)
        return Ending(outcome="answered")

    async def _put_away(self, recorder: TurnRecorder, session: Session) -> Session | None:
        """End a session whose time is over, and tell its chat. The notice comes first, under an id made from the
        session's: after a crash in between, it is neither forgotten nor repeated. One of a person's chats goes on when
        they write there again, so nothing ends for them, unless the chat was temporary. Returns the next
        session, if it begins at once."""
        if self.agents.sessions.policy.notify and not session.key.is_own:
            text = DELETED if session.temporary else PUT_AWAY
            rows = self.outbox.rows(recorder.item, "notice", text, first_id=f"o_{session.id}")
            await insist(lambda: self.outbox.emit(rows), clock=self.clock, what="put_away")
        following = await self.agents.sessions.expire(recorder.lease, session)
        if session.temporary:
            ended = await self.store.session(session.id)
            await self.agents.forgetter.delete_temporary(recorder.lease, ended, recorder.item)
        return following

    # -- 5. the end of an item --------------------------------------------------------------

    async def _give_up(self, recorder: TurnRecorder) -> Ending:
        """A message that kills the process again and again ends visibly, as a dead letter."""
        item = recorder.item
        log.error("dead_letter", key=str(item.key), item=item.id, attempts=item.attempts)
        conversation, parts = None, list[InboxItem]()
        journal = await self.store.journal(item)
        if journal is None or not journal.begun:  # its other parts would only do the same again
            parts = following(item, await self.store.waiting(item.key, self.rules.turns.lane_cap))
        if journal is not None or parts:
            session = await self.agents.sessions.open(recorder.lease, item.inbound.source)
            conversation = await self.agents.sessions.conversation(session)
            close_open_calls(conversation, self.clock.now())
            conversation.absorb(part.id for part in parts)
        text = UNREADABLE if item.inbound.kind == "unreadable" else DEAD.format(attempts=item.attempts - 1)
        return Ending(
            outcome="dead",
            shown=[] if item.inbound.kind in _SILENT else [("error", text)],
            conversation=conversation,
            has_asked=journal is not None and bool(journal.approvals),
        )

    async def _finish(self, recorder: TurnRecorder, ending: Ending) -> InboxItem | None:
        """Store the ending, and send what it shows."""
        item, conversation = recorder.item, ending.conversation
        rows = await self.people.approvals.withdrawn(item) if ending.has_asked else []
        session_id = conversation.stored.session.id if conversation else None
        # Where there is no reply, the first sentence takes the place of what was shown of it.
        kinds = list(map(itemgetter(0), ending.shown))
        at = kinds.index("reply") if "reply" in kinds else 0
        for number, (kind, text) in enumerate(ending.shown):
            first_id = ending.reply_id if number == at else None
            rows += await self.outbox.written(item, kind, text, session_id=session_id, first_id=first_id)
            if ending.returns is not None and kind == ("error" if ending.returns.fault else "reply"):
                rows[-1] = replace(rows[-1], returns=ending.returns)
        if ending.choices and rows and item.inbound.command is not None:
            rows[-1] = with_choices(rows[-1], ending.choices, item.inbound.command)
        asked_back = ending.returns is not None and bool(ending.returns.calls)
        goes_on = conversation if ending.outcome == "answered" and not asked_back else None
        titles, metering = self.agents.sessions.titles, self.agents.metering
        named = goes_on is not None and titles is not None and titles.due(goes_on, item.inbound, metering)
        if self.beside.voice is not None and conversation is not None and ending.outcome == "answered":
            await self.beside.voice.ask(item, conversation.stored.session, rows)
        end = await recorder.finish(conversation, ending.outcome, rows)
        self.points("turn.finished")
        if item.inbound.kind not in _SILENT:
            took = max(0.0, self.clock.now() - item.accepted_at)
            TURNS.observe(took, item.key.platform, ending.outcome)
        self.outbox.deliver(end.outbound)
        if self.beside.reactions is not None and self.beside.reactions.signs and ending.outcome != "withdrawn":
            self.beside.reactions.put(item, "done" if ending.outcome == "answered" else "failed")
        if goes_on is not None:
            self.agents.sessions.preparations.consider(goes_on)
            if self.beside.suggestions is not None and end.next is None and item.inbound.terms is None:
                self.beside.suggestions.begin(goes_on, rows, self._metering(item.inbound.source))
            if titles is not None and named:
                titles.begin(goes_on, self._metering(item.inbound.source))
        return end.next

    # -- 6. the parts of one turn -----------------------------------------------------------

    def _observer(self, recorder: TurnRecorder, reply: Outbound | None = None) -> TurnObserver:
        item = recorder.item
        if reply is not None:
            reply_id = reply.id
        elif item.inbound.kind == "schedule":  # found by the row of its run
            reply_id = row_of_run(item.inbound.event_id)
        else:
            reply_id = self.outbox.new_id()
        source, time = item.inbound.source, self._time(item)
        growing = GrowingReply(
            item=item, time=time, lease=recorder.lease, id=reply_id, outbox=self.outbox, clock=self.clock
        )
        return TurnObserver(
            item=item,
            time=time,
            reply=growing,
            adapter=self.adapters.get(source.platform),
            store=self.store,
            outbox=self.outbox,
            clock=self.clock,
        )

    def _time(self, item: InboxItem) -> TurnTime:
        now, source = self.clock.monotonic(), item.inbound.source
        return TurnTime(
            turn=RunningTurn(key=item.key, source=source, started_at=now, alive_at=now, end=lambda _: None),
            running_turns=self.running_turns,
            clock=self.clock,
            deadline=self.rules.turns.deadline,
            inactivity=self.rules.turns.inactivity,
        )

    def _questions(self, recorder: TurnRecorder, journal: TurnJournal, labels: Labels = LABELS) -> TurnQuestions:
        known = {each.call: each for each in journal.approvals} if journal.approvals else {}
        return TurnQuestions(
            approvals=self.people.approvals, lease=recorder.lease, item=recorder.item, known=known, labels=labels
        )

    def _metering(self, source: Source) -> Metering:
        """The meter of a turn that answers somebody."""
        metering = self.agents.metering.answering(source.user)
        return metering.within(of_key(source.cap, self.clock.now())) if source.cap is not None else metering

    def _within_budget(self, metering: Metering, event: str) -> Metering:
        """The meter of what ran by the clock, which has its own budget: each run of a prompt, and all looks of a day
        with what they start."""
        name: CapName = "schedule"
        budget, account = None, event
        if event.startswith(SCHEDULED):
            budget = self.people.reminders.rules.budget_usd
        elif event.startswith((HEARTBEAT, f"{ENDED}{HEARTBEAT}")):
            name, budget = "heartbeat", self.agents.sessions.helpers.looks_usd
            account = event.partition(HEARTBEAT)[2].partition(":")[0]
        if budget is None:
            return metering
        account, ends = f"{name} {account}", self.clock.now() + _RUN_REMEMBERED
        return metering.within(
            *metering.beside, Cap(name=name, account=account, limit=millionths(budget), resets_at=ends)
        )

    def _steering(self, item: InboxItem, observer: TurnObserver) -> Steering:
        return Steering(
            item=item,
            store=self.store,
            files=self.agents.files,
            clock=self.clock,
            takes_messages=_TAKES[self.rules.busy(item.inbound.source)],
            alive=observer.alive,
            show=observer.tell_once,
            lets_in=self.people.pairing.lets_in,
            shut_out=partial(self.running_turns.deliver, item.key, "stop"),
            plugged=self.agents.sessions.hooks.plugged,
        )

    def _agent(
        self,
        recorder: TurnRecorder,
        observer: TurnObserver,
        questions: TurnQuestions,
        steering: Steering,
        hidden: SessionKey | None,
    ) -> Agent:
        item, access = recorder.item, self.people.pairing.access
        metering = self._metering(item.inbound.source)
        if item.inbound.kind in ("schedule", "ended"):
            metering = self._within_budget(metering, item.inbound.event_id)
        source = item.inbound.source
        is_group = source.chat_type != "direct"
        overheard = self.beside.overheard if is_group else None
        talk = overheard.lines(item.inbound, item.key) if overheard else ()
        questions.overhears = bool(talk)
        adapter = self.adapters.get(source.platform) if self.beside.topics and is_group else None
        return self.agents.of_turn(
            item.key,
            writer=recorder,
            observer=observer,
            reply=observer.reply,
            metering=metering,
            steer=steering,
            details=access.sees_details(source),
            terms=item.inbound.terms or NO_TERMS,
            talk=talk,
            caller=Caller(source=source, admin=access.is_admin(source)),
            turn=item.id,
            questions=questions,
            files=TurnFiles(item=item, store=self.store, outbox=self.outbox, clock=self.clock),
            polls=TurnPolls(item=item, store=self.store, outbox=self.outbox, clock=self.clock),
            reminders=self.people.reminders.of(item),
            topics=adapter if adapter is not None and isinstance(adapter, HasTopics) else None,
            event=item.inbound.event_id,
            lets=item.inbound.lets if item.inbound.kind == "event" else None,
            buying=metering.buying,
            hidden=hidden,
        )


def _returns(error: Exception, terms: Terms | None) -> Returns | None:
    """What a program is told of an error, if it is caused by its request or a cap."""
    asks = terms is not None and bool(terms.settings or terms.tools)
    refused = isinstance(error, ProviderRejected) and error.status in (400, 422) and not error.away and asks
    if terms is None or not (refused or isinstance(error, UserError)):
        return None
    return Returns(fault="cap" if isinstance(error, SpendCapReached) else "request")


def _begun(text: str) -> list[tuple[OutboundKind, str]]:
    """The reply of an unfinished turn, as far as it got."""
    return [("reply", text)] if text else []
