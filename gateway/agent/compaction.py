"""One compaction: the engine is asked, its result judged, and published as a continuation.

Every trigger takes this path: the loop's threshold, hygiene, overflow recovery and `/compress`.
"""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final, Literal

import structlog
from msgspec import Struct

from gateway.agent.conversation import Conversation
from gateway.agent.memory.flush import Flushes, Started
from gateway.agent.ports import TranscriptWriter
from gateway.agent.preparation import Preparations, Prepared
from gateway.context.assembly import sanitize
from gateway.context.engine import Outcome
from gateway.context.guard import GuardedEngine
from gateway.context.policy import EFFECTIVE_SAVING, HygieneRules
from gateway.context.prompts import foreign, unframed
from gateway.domain.message import Message, is_request, is_summary, note_of, noted, noted_tokens, same, text_of, wire
from gateway.domain.session import Compaction, PassWork
from gateway.domain.usage import LedgerEntry
from gateway.runtime.clock import Clock
from gateway.runtime.metrics import Counter
from gateway.runtime.points import Points
from gateway.runtime.structs import replace
from gateway.runtime.tokens import TokenCounter

if TYPE_CHECKING:
    from gateway.agent.plugged import Plugged

log = structlog.get_logger(__name__)

Trigger = Literal["threshold", "preflight", "hygiene", "overflow", "manual", "emergency", "plugin"]

COMPACTIONS: Final = Counter(
    name="compactions", text="Compaction attempts, and how they ended.", labels=("trigger", "outcome")
)

_FORCED: Final = ("manual", "overflow", "plugin")  # whatever the engine's thresholds and cooldowns say
_GREW = "the context engine's result is far longer than the conversation; nothing was changed"
_MOST_GROWTH: Final = 4_000  # tokens; the notes on a few short turns may be longer than the turns
_REQUEST_LOST = "The context engine dropped the message that is to be answered."


class CompactionReport(Struct, frozen=True, kw_only=True):
    """The outcome of one compaction. `compaction` is None when nothing changed."""

    before: Sequence[Message]
    after: Sequence[Message]
    tokens_before: int  # of the next request
    tokens_after: int
    outcome: Outcome
    compaction: Compaction | None = None

    @property
    def changed(self) -> bool:
        """Whether the conversation continues in a new session."""
        return self.compaction is not None


class Compactor(Struct, frozen=True, kw_only=True):
    """Runs compactions for one turn."""

    writer: TranscriptWriter
    clock: Clock
    points: Points
    preparations: Preparations
    flushes: Flushes
    rescuer: Callable[[Conversation], Awaitable[GuardedEngine | None]]
    plugged: Plugged | None = None

    async def run(
        self,
        conversation: Conversation,
        trigger: Trigger,
        *,
        focus: str | None = None,
        keep: int = 0,
        engine: GuardedEngine | None = None,
    ) -> CompactionReport:
        """Compact all but the last `keep` messages once, with another `engine` than the session's if one is given.

        If it is cancelled before publication, nothing has changed. An automatic compaction publishes a prepared one, if
        there is one. If it saves less than a tenth, it changes nothing.
        """
        if conversation.fresh.messages:
            # The engine may fold any message away, so every message must be stored first.
            await self.writer.record_step(conversation)
        messages = conversation.all()
        tokens = conversation.prompt_tokens()
        if self.plugged is not None:
            await self.plugged.compacting(conversation.stored.session, trigger, tokens, messages)
        prepared = None if engine else await self._prepared(conversation, trigger)
        began, paid = self.clock.monotonic(), len(conversation.ledger)
        flush: Started | None = None
        if prepared is not None:
            result, outcome = prepared.applied(messages), prepared.outcome
            await conversation.engine.load(prepared.engine_state)
        else:
            kept = len(messages) - keep
            flush = self.flushes.before_compaction(conversation.stored.session, messages, conversation.fresh.flushed)
            try:
                result, outcome = await (engine or conversation.engine).compress(
                    messages[:kept], current_tokens=tokens, focus_topic=focus, force=trigger in _FORCED
                )
            except asyncio.CancelledError:
                self.flushes.stop(flush)
                raise
            result += messages[kept:]
        self.points("compaction.summarised")
        transcript = reconcile(messages, sanitize(result), conversation.counter)
        if (error := _unusable(messages, transcript, automatic=trigger != "manual")) is not None:
            transcript, outcome = messages, Outcome(error=error, aborted=True)
        report = CompactionReport(
            before=messages, after=messages, tokens_before=tokens, tokens_after=tokens, outcome=outcome
        )
        if not _worth_it(messages, transcript, automatic=trigger != "manual"):
            COMPACTIONS.count(trigger, "failed" if outcome.error else "unchanged")
            return report
        took, calls = self.clock.monotonic() - began, tuple(conversation.ledger[paid:])
        if prepared is not None:
            took, calls = prepared.seconds, prepared.calls
        compaction = self._compaction(conversation, report, transcript, trigger, focus)
        compaction = replace(compaction, work=_work(messages, transcript, calls, took))
        await self._note_flushed(conversation, flush, prepared)
        await self.writer.continue_(conversation, transcript, compaction)
        self.points("compaction.published")
        COMPACTIONS.count(trigger, "fallback" if outcome.fallback else "published")
        return replace(report, after=transcript, tokens_after=compaction.tokens_after, compaction=compaction)

    def _compaction(
        self,
        conversation: Conversation,
        report: CompactionReport,
        transcript: Sequence[Message],
        trigger: Trigger,
        focus: str | None,
    ) -> Compaction:
        request = conversation.overhead + noted_tokens(transcript)
        return Compaction(
            at=self.clock.now(),
            parent_id=conversation.stored.session.id,
            child_id="",
            trigger=trigger,
            messages_before=len(report.before),
            messages_after=len(transcript),
            tokens_before=report.tokens_before,
            tokens_after=conversation.calibration[conversation.spec.name].apply(request),
            focus=focus,
            fallback=report.outcome.fallback,
            error=report.outcome.error,
        )

    async def _note_flushed(self, conversation: Conversation, flush: Started | None, prepared: Prepared | None) -> None:
        """Note how far the memory has read the conversation, once its findings are kept."""
        if flush is not None:
            conversation.flush(await self.flushes.ended(flush))
        elif prepared is not None and prepared.findings is not None:
            await self.flushes.publish(prepared.findings)
            conversation.flush(prepared.findings.through)

    async def _prepared(self, conversation: Conversation, trigger: Trigger) -> Prepared | None:
        """The preparation to publish. One that later messages have outgrown is published, too, if it saves enough: the
        next pass starts from it. After a refusal that could come too late."""
        if trigger == "manual":  # for the present transcript, perhaps with a topic
            self.preparations.forget(conversation.stored.session)
            return None
        prepared = await self.preparations.take(conversation)
        if prepared is None or prepared.helps(conversation):
            return prepared
        messages = conversation.all()
        saves = trigger != "overflow" and _worth_it(messages, prepared.applied(messages), automatic=True)
        return prepared if saves else None


def reconcile(stored: Sequence[Message], result: Iterable[Message], counter: TokenCounter) -> list[Message]:
    """Return the engine's result with references to stored messages restored.

    An element that equals a stored message *is* that message (with its id). Any other element is a new message,
    counted, derived from the message whose id it still carries. For engines that drop the host's notes, messages are
    matched by content, in order.
    """
    by_id = {note_of(message).get("id"): message for message in stored if note_of(message).get("id")}
    by_content: dict[str, list[int]] = {}
    position = 0
    transcript: list[Message] = []
    used: set[str] = set()
    for message in result:
        note = note_of(message)
        original = by_id.get(note.get("id"))
        if original is None and "summary" not in note and "derived_from" not in note:
            by_content = by_content or _places(stored)  # to look at all of it for each message would hold others up
            same_content = by_content.get(_content(message), [])
            if (found := bisect_left(same_content, position)) < len(same_content):
                position = same_content[found] + 1
                original = stored[position - 1]
        if original is not None and same(original, message) and note_of(original)["id"] not in used:
            used.add(note_of(original)["id"])
            transcript.append(original)
            continue
        transcript.append(_as_new(message, counter))
    return transcript


def _work(
    before: Sequence[Message], after: Sequence[Message], calls: Iterable[LedgerEntry], seconds: float
) -> PassWork:
    """Return the account of a pass with the calls that were made for its notes."""
    done: PassWork = import_module("gateway.context.account").account(before, after)  # most turns compact nothing
    calls = [each for each in calls if each.purpose != "memory"]
    costs = [each.cost_usd for each in calls]
    cost = None if None in costs else sum(filter(None, costs), 0.0)
    return replace(
        done, model=calls[-1].model if calls else "", tries=len(calls), seconds=round(seconds, 1), cost_usd=cost
    )


def _places(messages: Sequence[Message]) -> dict[str, list[int]]:
    """The places of messages in a transcript by their content."""
    places: dict[str, list[int]] = {}
    for place, message in enumerate(messages):
        places.setdefault(_content(message), []).append(place)
    return places


def _content(message: Message) -> str:
    return json.dumps(wire(message), sort_keys=True, default=str)


def _unusable(before: Sequence[Message], after: Sequence[Message], *, automatic: bool) -> str | None:
    """Return the reason why a compaction cannot be used; None: it can."""
    if automatic and not _holds_request(before, after):
        return _REQUEST_LOST  # a turn is running: without its question the model would answer to nothing
    return _GREW if noted_tokens(after) > noted_tokens(before) + _MOST_GROWTH else None


def _holds_request(before: Sequence[Message], after: Sequence[Message]) -> bool:
    request = next((_own_words(message) for message in reversed(before) if is_request(message)), "")
    return any(message["role"] == "user" and request in text_of(message) for message in reversed(after))


def _own_words(message: Message) -> str:
    """Return a person's words without the notes that an earlier compaction merged in front of them; the next
    compaction replaces those, and only those."""
    text = text_of(message)
    apart = unframed(text) if is_summary(message) else None
    return text if apart is None else apart[1].strip("\n")


def _as_new(message: Message, counter: TokenCounter) -> Message:
    note = note_of(message)
    derived = note.get("derived_from") or ([note["id"]] if "id" in note else [])
    fresh = noted(message, tokens=counter.message(message), derived_from=derived)
    fresh["_legato"].pop("id", None)
    if "summary" in note or len(derived) == 1 or (told := foreign(text_of(message))) is None:
        return fresh
    return noted(fresh, summary=True, merged=bool(told[1]))  # the notes of a stranger's engine, in its own words


def _worth_it(before: Sequence[Message], after: Sequence[Message], *, automatic: bool) -> bool:
    if not after or [note_of(m).get("id") for m in before] == [note_of(m).get("id") for m in after]:
        return False
    return not automatic or noted_tokens(after) <= (1 - EFFECTIVE_SAVING) * noted_tokens(before)


# -- before a turn: overnight growth, a switch to a smaller model, or a restored backup ------------------


_TRIED: Final = "hygiene-tried-at:"


class HygieneResult(Struct, frozen=True, kw_only=True):
    """The outcome of a pass; with neither report nor failure there was nothing to do.

    `technical`: the failure is in the words of a provider.
    """

    report: CompactionReport | None = None
    failure: str | None = None
    technical: bool = False


class Hygiene(Struct, frozen=True):
    """The pass before every turn, for growth that the agent's own loop cannot foresee. It uses the same engine and the
    same continuation as every other compaction, has a deadline, and never keeps a turn from running."""

    rules: HygieneRules
    clock: Clock
    enabled: bool = True

    def due(self, conversation: Conversation) -> bool:
        """Whether the pass has something to do; the check takes constant time at any length.

        A transcript that a pass could not shrink must grow by a tenth before the next try.
        """
        rules, length = self.rules, conversation.length
        if not self.enabled or length < rules.min_messages:
            return False
        full = rules.threshold * conversation.spec.context_length
        if length < rules.max_messages and conversation.prompt_tokens() < full:
            return False
        marks = (mark for mark in conversation.fresh.announced if mark.startswith(_TRIED))
        tried_at = next((int(mark.removeprefix(_TRIED)) for mark in marks), 0)
        grown = not tried_at or length >= tried_at + max(rules.min_messages, tried_at // 10)
        return grown and not conversation.engine.rests  # the loop has the built-in engine help out

    async def run(self, conversation: Conversation, compactor: Compactor) -> HygieneResult:
        """Compact once, within the deadline. A compaction that fails raises nothing."""
        length = conversation.length
        try:
            async with self.clock.limit(self.rules.timeout):
                report = await compactor.run(conversation, "hygiene")
        except TimeoutError:
            failure = f"it took longer than {self.rules.timeout:g} seconds"
            log.warning("hygiene_timed_out")
            conversation.announce(_with_mark(conversation.fresh.announced, length))
            return HygieneResult(failure=failure)
        if report.changed:
            return HygieneResult(report=report)
        conversation.announce(_with_mark(conversation.fresh.announced, length))
        failure = report.outcome.error or "nothing could be compressed"
        return HygieneResult(failure=failure, technical=report.outcome.aborted)


def _with_mark(announced: Collection[str], length: int) -> tuple[str, ...]:
    return (*(entry for entry in announced if not entry.startswith(_TRIED)), f"{_TRIED}{length}")
