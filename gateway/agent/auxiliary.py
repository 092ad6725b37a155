"""The auxiliary model: bounded calls beside the conversation (summaries, later memory and titles)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing

import structlog

from gateway.agent.metering import Metering
from gateway.clock import Clock
from gateway.domain.message import Message
from gateway.domain.session import Session
from gateway.domain.usage import CanonicalUsage, LedgerEntry, Purpose
from gateway.errors import ProviderError, ProviderUnavailable, SpendCapReached, SummaryRefused
from gateway.providers.base import Completed, ModelRequest, ModelSpec

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
        charge: Callable[[LedgerEntry], None],
        clock: Clock,
    ) -> None:
        self._models = metering.models
        self._metering = metering
        self._purpose: Purpose = purpose
        self._session = session
        self._live = live
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
                helped = Helped(await self._ask(spec, messages, max_tokens))
            except (ProviderError, SummaryRefused, SpendCapReached) as error:
                if spec is candidates[-1]:
                    raise
                log.warning("auxiliary_failed", model=spec.name, purpose=self._purpose, error=str(error))
                failed = spec.name
            else:
                helped.failed_model = failed
                return helped
        raise AssertionError("there is always a live model")

    async def _ask(self, spec: ModelSpec, messages: Sequence[Message], max_tokens: int) -> str:
        request = ModelRequest(messages=messages, max_tokens=max_tokens)
        completed: Completed | None = None
        async with aclosing(self._metering.stream(spec, request, self._session())) as events:
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
        return completed.text
