"""Keeps the prompt of a turn inside the window: by compactions before a call, and after a provider's refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import structlog
from msgspec import Struct

from gateway.agent.compaction import CompactionReport, Compactor, Trigger
from gateway.agent.conversation import BLOCKED_MARK, RESCUED_MARK, Conversation
from gateway.agent.engines import adopt
from gateway.agent.metering import Metering
from gateway.agent.ports import Observer
from gateway.context import feedback
from gateway.context.engine import Outcome
from gateway.domain.message import text_of
from gateway.domain.usage import is_emergency, reserved_output
from gateway.providers.base import Completed, ModelSpec
from gateway.runtime.errors import ContextOverflow, OutputCapTooLarge, ProviderRejected, UserError
from gateway.runtime.structs import replace

if TYPE_CHECKING:
    from gateway.agent.plugged import Plugged

log = structlog.get_logger(__name__)

_NEEDED = ("overflow", "emergency")  # without room the turn ends
_WISHED: Final = 0.5  # of the threshold: from here on a plug-in's wish for a compaction is followed
_MOST_PASSES = 3  # automatic compactions in a turn that do not bring its prompt under the mark; then the person is told
MOST_ATTEMPTS = 3  # compactions for overflow in one turn
_SMALLEST_OUTPUT = 256  # tokens; an answer shorter than that helps nobody
_MARGIN = 64  # tokens left free of the room that the provider reports

MOST_EXTENSIONS = 2  # times that one answer is asked for again with more room
_EXTENSION = 4  # times the room

NO_WAY_OUT = (
    "This conversation no longer fits into the model's window and could not be compressed any further. "
    "Send /compress to try again, or /new to start fresh. I still keep every word."
)

SWITCHED_OFF = (
    "This conversation no longer fits into the model's window, and automatic compression is switched off here. Send "
    "/compress to make room now; the operator can set compression.enabled: true to have conversations compressed "
    "automatically."
)

TOO_LARGE_ALONE = (
    "Your message is too large for the model, and there is nothing before it to compress. Send less text at a time, or "
    "fewer and smaller files."
)

NO_ROOM = (
    "The model's output limit is too small for what it was about to do. Ask for the work in smaller parts. The "
    "operator can also raise model.max_output_tokens."
)


class Fitting(Struct, kw_only=True):
    """The compactions of one turn. `automatic`: compression.enabled. `details`: whether the person may read why a
    compaction failed."""

    compactor: Compactor
    metering: Metering
    observer: Observer
    automatic: bool
    details: bool
    plugged: Plugged | None = None
    _passes: int = 0
    _overflows: int = 0
    _guessed: bool = False  # that the prompt is too long, because it was refused without a reason

    # -- before a call ----------------------------------------------------------------------

    async def fit(self, conversation: Conversation) -> None:
        """Compact until the next call has room, or no compaction helps any more."""
        while self._passes < _MOST_PASSES:
            trigger = await self._trigger(conversation)
            if trigger is None:
                self._passes = 0  # it fits, and a turn of hundreds of steps may fill the window again and again
                return
            self._passes += 1
            if not await self._compact(conversation, trigger):
                return

    def compact_no_more(self) -> None:
        """Let the turn compact no more by itself, because a pass just before it failed. The recovery from a prompt that
        is too long still compacts."""
        self._passes = _MOST_PASSES

    async def begin(self, conversation: Conversation) -> None:
        """Note that a compaction begins, and tell the person if it may take a while."""
        self.observer.phase("compacting")
        if self.compactor.preparations.ready(conversation) is None:  # else it publishes at once
            await self.observer.tell(feedback.compressing(conversation.stored.session.compaction_count + 1))

    async def tell(self, outcome: Outcome) -> None:
        """Tell the person what they should know of a compaction's outcome."""
        for remark in feedback.remarks(outcome, details=self.details):
            await self.observer.tell(remark)

    async def _trigger(self, conversation: Conversation) -> Trigger | None:
        """Return the reason to compact before the next call, or None."""
        if not self.automatic:
            return None
        tokens, engine = conversation.prompt_tokens(), conversation.engine
        first = not conversation.fresh.reported_tokens
        sent, prepared = conversation.prefix.sent, self.compactor.preparations
        if await engine.wants(tokens) or (sent and sent.caches and prepared.cheapens(conversation, sent)):
            return "preflight" if first else "threshold"
        if is_emergency(tokens, conversation.spec.context_length):
            return "emergency"
        if tokens >= engine.threshold_tokens and engine.automatic_blocked:
            await self._tell_once(conversation, BLOCKED_MARK, feedback.BLOCKED)
        if self.plugged is not None and self.plugged.wish(conversation.stored.session):
            return "plugin" if tokens >= _WISHED * engine.threshold_tokens else None
        return "preflight" if first and await engine.wants_preflight(conversation.all()) else None

    async def _compact(self, conversation: Conversation, trigger: Trigger) -> bool:
        await self.begin(conversation)
        report = None if conversation.engine.rests else await self.compactor.run(conversation, trigger)
        helped = report is not None and report.changed
        if conversation.engine.rests or (trigger in _NEEDED and not (helped and self._has_room(conversation))):
            report = await self._rescued(conversation, trigger) or report
        if report is not None and (report.changed or report.outcome.aborted):
            await self.tell(report.outcome)
        return report is not None and report.changed

    def _has_room(self, conversation: Conversation) -> bool:
        return not is_emergency(conversation.prompt_tokens(), conversation.spec.context_length)

    async def _rescued(self, conversation: Conversation, trigger: Trigger) -> CompactionReport | None:
        """Let the built-in engine compact where a stranger's could not make room, and say so once. None: no stranger's
        engine, or nothing changed either."""
        engine = await self.compactor.rescuer(conversation)
        report = None if engine is None else await self.compactor.run(conversation, trigger, engine=engine)
        if report is None or not report.changed:
            return None
        rescued = feedback.RESCUED.format(name=conversation.engine.engine.name)
        await self._tell_once(conversation, RESCUED_MARK, rescued)
        return report

    async def _tell_once(self, conversation: Conversation, mark: str, text: str) -> None:
        if mark not in conversation.fresh.announced:
            conversation.announce((*conversation.fresh.announced, mark))
            await self.observer.tell(text)

    # -- after a refusal --------------------------------------------------------------------

    async def recover(
        self, conversation: Conversation, error: ContextOverflow | OutputCapTooLarge, max_tokens: int | None
    ) -> int | None:
        """Make room and return the output cap for the retry. Raises UserError when there is no way left."""
        spec = conversation.spec
        todo = remedy(
            error,
            attempts=self._overflows,
            context_length=spec.context_length,
            max_tokens=max_tokens,
            prompt_tokens=conversation.prompt_tokens(),
        )
        log.info("overflow_met", model=spec.name, because=error.because, action=todo.action, limit=todo.limit)
        self._overflows += 1
        conversation.drop_quotes()
        if todo.action == "lower_output":
            if isinstance(error, OutputCapTooLarge) and error.limit:
                await self._adopt(conversation, error.limit)
            return todo.max_tokens
        compacts = todo.action != "give_up" and self.automatic
        if compacts and await self._compact_to(conversation, error, todo.limit):
            return max_tokens
        if self.metering.view.put_aside(conversation.spec, conversation.all()):
            return max_tokens
        asked = [text_of(message) for message in conversation.all() if message["role"] == "user"]
        if len(asked) < 2:
            raise UserError(await conversation.too_long("".join(asked)) or TOO_LARGE_ALONE) from error
        raise UserError(NO_WAY_OUT if self.automatic else SWITCHED_OFF) from error

    async def shorten(self, conversation: Conversation, error: ProviderRejected) -> bool:
        """Compact after a refusal that gives no reason, where the prompt may be too long; once in a turn. Say whether
        that made room."""
        spec, learned = conversation.spec, self.metering.models.learned
        if not error.unexplained or not self.automatic:
            return False
        if self._guessed:
            learned.was_not_length(spec)
            return False
        assumed = self.metering.models.is_assumed(spec)
        if not learned.may_exceed(spec, conversation.prompt_tokens(), assumed=assumed):
            return False
        self._guessed = await conversation.engine.has_content(conversation.all())
        return self._guessed and await self._compact(conversation, "overflow")

    async def _compact_to(
        self, conversation: Conversation, error: ContextOverflow | OutputCapTooLarge, limit: int | None
    ) -> bool:
        """Compact after a refusal. The limit that it stated counts from now on, or for this call only where it is not
        the model's window."""
        if isinstance(error, ContextOverflow) and error.lasting:
            await self._adopt(conversation, limit)
        spec = conversation.spec
        if limit is None or limit >= spec.context_length:
            return await self._compact(conversation, "overflow")
        await change_model(conversation, replace(spec, context_length=limit))
        try:
            return await self._compact(conversation, "overflow")
        finally:
            await change_model(conversation, spec)

    async def _adopt(self, conversation: Conversation, limit: int | None) -> None:
        """Go on with the window that the provider stated, also in later processes."""
        spec, learned = conversation.spec, self.metering.models.learned
        known = learned.meet(spec, conversation.stored.session.key, limit)
        if known != spec:
            await learned.keep(spec)
            await change_model(conversation, known)


async def change_model(conversation: Conversation, spec: ModelSpec) -> None:
    """Go on with another model, or with another window of the same."""
    conversation.answer_by(spec)
    await adopt(conversation.engine, spec)


# -- the remedy for "too long", and for an answer without enough room ------------------------------------


class Remedy(Struct, frozen=True, kw_only=True):
    """The action: `compact` the transcript (and adopt `limit`, if given), retry with lower `max_tokens`, or give up."""

    action: Literal["compact", "lower_output", "give_up"]
    limit: int | None = None
    max_tokens: int | None = None


def remedy(
    error: ContextOverflow | OutputCapTooLarge,
    *,
    attempts: int,
    context_length: int,
    max_tokens: int | None,
    prompt_tokens: int | None = None,
) -> Remedy:
    """Return the remedy for `error` after `attempts` remedies in this turn. A limit is adopted only if the provider
    stated it and the known window is larger. Where the limit counts the output, too, a prompt of `prompt_tokens` that
    fits it by itself is left as it is."""
    if attempts >= MOST_ATTEMPTS:
        return Remedy(action="give_up")
    if isinstance(error, ContextOverflow):
        if not error.lasting and error.limit and max_tokens and prompt_tokens is not None:
            room = error.limit - prompt_tokens - _MARGIN
            if _SMALLEST_OUTPUT <= room < max_tokens:
                return Remedy(action="lower_output", max_tokens=room)
        smaller = error.limit is not None and 0 < error.limit < context_length
        return Remedy(action="compact", limit=error.limit if smaller else None)
    room = error.available - _MARGIN if error.available else (max_tokens or context_length // 4) // 2
    if room < _SMALLEST_OUTPUT:
        return Remedy(action="compact")
    return Remedy(action="lower_output", max_tokens=room)


def more_output(completed: Completed, *, max_tokens: int | None, prompt_tokens: int, context_length: int) -> int | None:
    """Return the output cap for another try at an answer that its limit cut off; None if the window has no more room.

    `max_tokens`: the cap that the answer had, None for the provider's own.
    """
    used = max(max_tokens or 0, completed.usage.output_tokens if completed.usage else 0)
    used = used or reserved_output(context_length, None)
    room = min(_EXTENSION * used, context_length - prompt_tokens - _MARGIN)
    return room if room > used else None


def lacks_room(completed: Completed) -> bool:
    """Whether the output limit took the answer's purpose: a tool call, or all of its words (thoughts took them)."""
    said = completed.text.strip() or completed.tool_calls
    return completed.cut_call or (completed.stop == "length" and not said)
