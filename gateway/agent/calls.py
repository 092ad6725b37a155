"""`ModelCall`: one call of a model, with everything that is noted of it: its time, its failure, and what it costs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from types import TracebackType
from typing import Final, Self

import structlog
from msgspec import Struct, field

from gateway.agent.models import Models
from gateway.domain.session import Session
from gateway.domain.usage import BROKEN_OFF, CanonicalUsage, LedgerEntry, Purpose
from gateway.providers.base import Completed, ModelEvent, ModelSpec, ReasoningDelta, Restarted, TextDelta
from gateway.runtime.clock import Clock
from gateway.runtime.errors import ContextOverflow, GatewayError, OutputCapTooLarge, ProviderError
from gateway.runtime.metrics import Histogram, outcome_of

log = structlog.get_logger(__name__)

CALLS: Final = Histogram(
    name="model_call_seconds",
    text="How long model calls took, repeated attempts included.",
    labels=("provider", "model", "purpose", "outcome"),
)


class ModelCall(Struct, kw_only=True):
    """A call as a block. Its `events` are those of `Provider.stream`, and whoever reads them shows each to `see`.

    `enter` is called with a ledger line for each attempt that its vendor may bill. An attempt that was left early is
    one of them: the vendor had it. `estimate` gives the usage of an attempt that told none, by what it said. `began`:
    when, on the monotonic clock.
    """

    models: Models
    clock: Clock
    spec: ModelSpec
    session: Session
    purpose: Purpose
    events: AsyncGenerator[ModelEvent, None]
    enter: Callable[[LedgerEntry], None]
    estimate: Callable[[str], CanonicalUsage]
    began: float
    _said: list[str] = field(default_factory=list)  # by the attempt under way
    _answered: bool = False
    _billed: bool = True  # whether the attempt under way may be

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.events.aclose()
        finally:
            self._end(error)

    def see(self, event: ModelEvent) -> None:
        """Note what an event says of the attempt under way."""
        if isinstance(event, TextDelta | ReasoningDelta):
            self._said.append(event.text)
            return
        if isinstance(event, Completed):
            self._answered, self._billed = True, False
        elif not event.broke_off:
            return
        usage = event.usage or self.estimate("".join(self._said))
        line = self.purpose if event.usage or self._answered else BROKEN_OFF
        self.enter(self.models.entry(self.clock.now(), line, self.spec, usage))
        self._said.clear()

    def _end(self, error: BaseException | None) -> None:
        outcome, told = "broken_off", None
        if error is None:
            outcome = "answered"
            self.models.answered(self.spec)
        elif isinstance(error, ProviderError):
            told = error.usage
            self._billed = self._billed and bool(self._said or told or error.billable)
            self._note_failure(error)
            self.models.failed(self.spec, error)
        elif isinstance(error, GatewayError):  # of our own: it may have come before the call
            self._billed = self._billed and bool(self._said)
        if isinstance(error, GatewayError):
            outcome = outcome_of(error)
        if self._billed:
            self.see(Restarted(broke_off=True, usage=told))
        CALLS.observe(self.clock.monotonic() - self.began, self.spec.provider, self.spec.name, self.purpose, outcome)

    def _note_failure(self, error: ProviderError) -> None:
        """Tell the operator. A prompt that is too long is mended by the caller."""
        if not isinstance(error, ContextOverflow | OutputCapTooLarge):
            log.warning(
                "model_call_failed",
                provider=self.spec.provider,
                model=self.spec.name,
                purpose=self.purpose,
                status=error.status,
                cause=str(error),
                session=self.session.id,
            )
