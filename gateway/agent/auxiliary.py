"""The auxiliary model: bounded calls beside the conversation, as for summaries.

A call stands alone or is aligned with the conversation: an aligned call repeats the last request to the session's own
model, so the provider reads most of it from its cache (`caching`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import structlog
from msgspec import Struct

from gateway.agent.caching import Prefix, obstacle, repeated
from gateway.agent.metering import Metering
from gateway.context.engine import ModelText
from gateway.context.state import classify
from gateway.domain.message import Message, user
from gateway.domain.session import Session
from gateway.domain.usage import CanonicalUsage, LedgerEntry, Purpose
from gateway.providers.base import READ_TIMEOUT, Completed, ModelRequest, ModelSpec
from gateway.runtime.errors import (
    ContextOverflow,
    GatewayError,
    OutputCapTooLarge,
    ProviderError,
    ProviderRejected,
    ProviderUnavailable,
    SpendCapReached,
    SummaryRefused,
)
from gateway.runtime.structs import replace

log = structlog.get_logger(__name__)

_ASIDE_SECONDS: Final = 60.0


class AuxiliaryModel(Struct, frozen=True, kw_only=True):
    """`await auxiliary(messages, max_tokens)` gives the text of one call.

    The purpose's own model is asked first. If it fails, the conversation's live model is asked, and the text names the
    one that failed. Every call goes to `charge`, for the ledger.
    """

    metering: Metering
    purpose: Purpose
    session: Callable[[], Session]
    live: Callable[[], ModelSpec]
    prefix: Prefix
    charge: Callable[[LedgerEntry], None]

    @property
    def context_length(self) -> int:
        """The smallest window among the models that may be asked, in tokens."""
        return min(spec.context_length for spec in self.metering.models.helpers(self.purpose, self.live()))

    async def __call__(self, messages: Sequence[Message], max_tokens: int) -> ModelText:
        """Return the answer's text. Raises as `completed` does."""
        completed, failed = await self.completed(ModelRequest(messages=messages, max_tokens=max_tokens))
        return ModelText(completed.text, failed_model=failed)

    async def completed(self, request: ModelRequest) -> tuple[Completed, str | None]:
        """Return the answer to a request that stands alone, and the model that failed before. Raises ProviderError if
        every model failed, SummaryRefused if the answer was cut off or refused, and SpendCapReached if none can be
        paid."""
        failed: str | None = None
        candidates = self.metering.models.helpers(self.purpose, self.live())
        for spec in candidates:
            try:
                return await self._ask(_unhurried(spec) if spec is candidates[-1] else spec, request), failed
            except (ProviderError, SummaryRefused, SpendCapReached) as error:
                if spec is candidates[-1]:
                    raise
                log.info("auxiliary_failed", model=spec.name, purpose=self.purpose, error=str(error))
                failed = spec.name
        raise AssertionError("there is always a live model")

    async def aligned(self, messages: Sequence[Message], instruction: str, max_tokens: int) -> ModelText | None:
        """The answer of the session's own model to its transcript, repeated letter for letter, with one instruction at
        the end. None, free of charge, if no warm cache is expected or the request was refused; a call that stands alone
        can be made then. Raises as a call does."""
        sent, live = self.prefix.sent, self.live()
        since = messages[sent.count :] if sent else ()
        added = self.metering.models.calibration[live.name].apply(self.metering.count([*since, user(instruction)]))
        reason = obstacle(
            sent,
            session=self.session(),
            spec=live,
            helpers=self.metering.models.helpers(self.purpose, live),
            count=len(messages),
            added=added + max_tokens,
            now=self.metering.clock.monotonic(),
        )
        if sent is None or reason is not None:
            log.debug("not_aligned", purpose=self.purpose, reason=reason)
            return None
        request = replace(repeated(sent, messages, instruction, max_tokens), prompt_tokens=sent.tokens + added)
        try:
            completed = await self._ask(_unhurried(live), request)
        except (ContextOverflow, OutputCapTooLarge, ProviderRejected, SpendCapReached) as error:
            if classify(error) == "refused":
                raise
            log.info("aligned_call_refused", model=sent.spec.name, purpose=self.purpose, error=str(error))
            return None
        usage = completed.usage or CanonicalUsage()
        read, prompt = usage.cache_read_tokens, usage.prompt_tokens
        if not read:
            self.prefix.missed = live
        log.info("aligned_call", model=live.name, purpose=self.purpose, prompt_tokens=prompt, cached_tokens=read)
        if completed.tool_calls:
            raise SummaryRefused("the model called a tool instead of writing")
        return ModelText(completed.text)

    async def _ask(self, spec: ModelSpec, request: ModelRequest) -> Completed:
        completed: Completed | None = None
        async with self.metering.call(spec, request, self.session(), self.purpose, self.charge) as call:
            async for event in call.events:
                call.see(event)
                if isinstance(event, Completed):
                    completed = event
        if completed is None:
            raise ProviderUnavailable("the model's answer ended without a result", malformed=True)
        if completed.stop == "length":
            raise SummaryRefused("the answer was cut off at its length limit")
        if completed.stop == "refused":
            raise SummaryRefused("the model refused to answer")
        return completed


def _unhurried(spec: ModelSpec) -> ModelSpec:
    """A model that nobody can stand in for, so its silence is tolerated as long as the connection holds."""
    return spec if spec.silence is None else replace(spec, silence=max(spec.silence, READ_TIMEOUT))


def standing_alone(
    metering: Metering, purpose: Purpose, session: Session, live: ModelSpec, charge: Callable[[LedgerEntry], None]
) -> AuxiliaryModel:
    """The auxiliary model for calls of a session that repeat none of its requests. `live`: the session's model."""
    return AuxiliaryModel(
        metering=metering, purpose=purpose, session=lambda: session, live=lambda: live, prefix=Prefix(), charge=charge
    )


async def asked_aside(
    session: Session, live: ModelSpec, metering: Metering, request: ModelRequest, purpose: Purpose = "title"
) -> str:
    """The answer to a small request beside a conversation, which pays for it; "" if there was none. `live`: the
    conversation's model. Raises StoreUnavailable."""
    calls = list[LedgerEntry]()
    auxiliary = standing_alone(metering, purpose, session, live, calls.append)
    try:
        async with metering.clock.limit(_ASIDE_SECONDS):
            completed, _ = await auxiliary.completed(request)
        return completed.text
    except (TimeoutError, GatewayError) as error:
        log.info("not_answered_aside", session=session.id, error=str(error) or "took too long")
        return ""
    finally:
        if calls:
            await metering.store.charge(session, calls)
