"""The auxiliary model: bounded calls beside the conversation (summaries, later memory and titles).

A call stands alone, or is aligned with the conversation: it repeats what the session's own model was
sent last, so that the provider reads most of it from its cache (`prefix`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog

from gateway.agent.metering import Metering
from gateway.agent.prefix import Prefix, obstacle, repeated
from gateway.context.state import classify
from gateway.domain.message import Message, user
from gateway.domain.session import Session
from gateway.domain.usage import CanonicalUsage, LedgerEntry, Purpose
from gateway.providers.base import Completed, ModelRequest, ModelSpec
from gateway.runtime.clock import Clock
from gateway.runtime.errors import (
    ContextOverflow,
    OutputCapTooLarge,
    ProviderError,
    ProviderRejected,
    ProviderUnavailable,
    SpendCapReached,
    SummaryRefused,
)

log = structlog.get_logger(__name__)


class Helped(str):
    """An answer's text, and the model that should have given it but failed."""

    __slots__ = ("failed_model",)
    failed_model: str | None


class AuxiliaryModel:
    """`await auxiliary(messages, max_tokens)` gives the text of one helper call.

    Asks the purpose's own model first and the conversation's live one when that fails; the text
    then names the model that failed. Every call is handed to `charge` for the ledger.
    """

    def __init__(
        self,
        *,
        metering: Metering,
        purpose: Purpose,
        session: Callable[[], Session],
        live: Callable[[], ModelSpec],
        prefix: Prefix,
        charge: Callable[[LedgerEntry], None],
        clock: Clock,
    ) -> None:
        self._models = metering.models
        self._metering = metering
        self._purpose: Purpose = purpose
        self._session = session
        self._live = live
        self._prefix = prefix
        self._charge = charge
        self._clock = clock

    @property
    def context_length(self) -> int:
        """The smallest window among the models that may be asked, in tokens."""
        return min(spec.context_length for spec in self._models.helpers(self._purpose, self._live()))

    async def __call__(self, messages: Sequence[Message], max_tokens: int) -> Helped:
        """The answer's text. Raises ProviderError if every candidate failed, SummaryRefused if the
        answer was cut off or refused, and SpendCapReached if none can be paid."""
        failed: str | None = None
        candidates = self._models.helpers(self._purpose, self._live())
        for spec in candidates:
            try:
                request = ModelRequest(messages=messages, max_tokens=max_tokens)
                helped = Helped((await self._ask(spec, request)).text)
            except (ProviderError, SummaryRefused, SpendCapReached) as error:
                if spec is candidates[-1]:
                    raise
                log.warning("auxiliary_failed", model=spec.name, purpose=self._purpose, error=str(error))
                failed = spec.name
            else:
                helped.failed_model = failed
                return helped
        raise AssertionError("there is always a live model")

    async def aligned(self, messages: Sequence[Message], instruction: str, max_tokens: int) -> Helped | None:
        """The session's own model's answer to its transcript, sent to the letter as it was before, and
        one instruction after it. None where that would meet no warm cache or was refused as a request:
        then nothing was spent, and a call that stands alone may do. Raises as a call does."""
        sent, live = self._prefix.sent, self._live()
        since = messages[sent.count :] if sent else ()
        added = self._models.calibration.correct(live.name, self._metering.count([*since, user(instruction)]))
        reason = obstacle(
            sent,
            session=self._session(),
            spec=live,
            helpers=self._models.helpers(self._purpose, live),
            count=len(messages),
            added=added + max_tokens,
            now=self._clock.monotonic(),
        )
        if sent is None or reason is not None:
            log.debug("not_aligned", purpose=self._purpose, reason=reason)
            return None
        request = repeated(sent, messages, instruction, max_tokens)
        try:
            completed = await self._ask(live, request, prompt_tokens=sent.tokens + added)
        except (ContextOverflow, OutputCapTooLarge, ProviderRejected, SpendCapReached) as error:
            if classify(error) == "refused":
                raise
            log.info("aligned_call_refused", model=sent.spec.name, purpose=self._purpose, error=str(error))
            return None
        usage = completed.usage or CanonicalUsage()
        read, prompt = usage.cache_read_tokens, usage.prompt_tokens
        if not read:
            self._prefix.missed = live
        log.info("aligned_call", model=live.name, purpose=self._purpose, prompt_tokens=prompt, cached_tokens=read)
        if completed.tool_calls:
            raise SummaryRefused("the model called a tool instead of writing")
        helped = Helped(completed.text)
        helped.failed_model = None
        return helped

    async def _ask(self, spec: ModelSpec, request: ModelRequest, *, prompt_tokens: int | None = None) -> Completed:
        completed: Completed | None = None
        call = self._metering.call(spec, request, self._session(), self._purpose, prompt_tokens=prompt_tokens)
        async with call as events:
            async for event in events:
                if isinstance(event, Completed):
                    completed = event
        if completed is None:
            raise ProviderUnavailable("the model's answer ended without a result", malformed=True)
        self._charge(self._models.entry(self._clock.now(), self._purpose, spec, completed.usage or CanonicalUsage()))
        if completed.stop == "length":
            raise SummaryRefused("the answer was cut off at its length limit")
        if completed.stop == "refused":
            raise SummaryRefused("the model refused to answer")
        return completed
