"""Context engines in memory: one instance for each session that was used lately."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import structlog

from gateway.agent.auxiliary import AuxiliaryModel
from gateway.agent.files.references import References
from gateway.agent.metering import Metering
from gateway.agent.prefix import Prefix
from gateway.context.engine import ContextEngine
from gateway.context.guard import GuardedEngine
from gateway.domain.session import Session
from gateway.domain.usage import LedgerEntry
from gateway.providers.base import ModelSpec
from gateway.runtime.clock import Clock
from gateway.runtime.errors import ProviderUnavailable

StartReason = Literal["new", "resume", "compression", "reset", "switch", "preparation"]

log = structlog.get_logger(__name__)


@dataclass(slots=True, kw_only=True)
class EngineSession:
    """A session's engine, the model it works for, what that was last sent, where the transcript refers
    to files, and the calls the engine caused that no record holds yet."""

    session: Session
    engine: GuardedEngine
    spec: ModelSpec
    auxiliary: AuxiliaryModel
    prefix: Prefix
    references: References = field(default_factory=References)
    ledger: list[LedgerEntry] = field(default_factory=list)


class Engines:
    """Gives every session its own engine; the least recently used ones are let go, because their
    state is on the session row."""

    def __init__(
        self,
        *,
        factory: Callable[[], ContextEngine],
        metering: Metering,
        clock: Clock,
        home: Path,
        capacity: int = 1_024,
    ) -> None:
        self._factory = factory
        self._models = metering.models
        self._metering = metering
        self._clock = clock
        self._home = home
        self._capacity = capacity
        self._held: OrderedDict[str, EngineSession] = OrderedDict()

    async def of(self, session: Session, reason: StartReason | None = None) -> EngineSession:
        """The session's engine, made and started if it is not in memory.

        `reason` None means "new" for a session without messages and "resume" otherwise.
        """
        spec = self._models.spec(session.model)
        held = self._held.get(session.id)
        if held is None:
            held = self._make(session, spec)
            self._held[session.id] = held
            await held.engine.load(session.engine_state)
            await self._start(held, session, reason or ("resume" if session.message_count else "new"))
            self._shrink()
        elif held.spec != spec:
            held.spec = spec
            await adopt(held.engine, spec)
        held.session = session
        self._held.move_to_end(session.id)
        return held

    async def move(self, parent: Session, child: Session, reason: StartReason) -> None:
        """The parent's engine goes on with the child."""
        held = self._held.pop(parent.id, None)
        if held is None:
            held = self._make(child, self._models.spec(child.model))
            await held.engine.load(parent.engine_state)
        held.session = child
        self._held[child.id] = held
        await self._start(held, child, reason)
        self._shrink()

    async def stand_in(
        self, session: Session, state: Mapping[str, Any], charge: Callable[[LedgerEntry], None] | None
    ) -> GuardedEngine:
        """A fresh engine that works for the session beside its own, from that one's state; its calls
        are handed to `charge` (None: it may make none)."""
        beside = self._held.get(session.id)
        spec, prefix = self._models.spec(session.model), beside.prefix if beside else None
        held = self._make(session, spec, charge, prefix)
        await held.engine.load(state)
        await self._start(held, session, "preparation", asks=charge is not None)
        return held.engine

    def drop(self, session_id: str) -> None:
        """Let go of an ended session's engine."""
        self._held.pop(session_id, None)

    def _make(
        self,
        session: Session,
        spec: ModelSpec,
        charge: Callable[[LedgerEntry], None] | None = None,
        prefix: Prefix | None = None,
    ) -> EngineSession:
        ledger: list[LedgerEntry] = []
        prefix = prefix or Prefix()
        held: EngineSession
        auxiliary = AuxiliaryModel(
            metering=self._metering,
            purpose="compression",
            session=lambda: held.session,
            live=lambda: held.spec,
            prefix=prefix,
            charge=charge or ledger.append,
            clock=self._clock,
        )
        engine = GuardedEngine(self._factory(), log=log, clock=self._clock)
        held = EngineSession(
            session=session, engine=engine, spec=spec, auxiliary=auxiliary, prefix=prefix, ledger=ledger
        )
        return held

    async def _start(self, held: EngineSession, session: Session, reason: StartReason, *, asks: bool = True) -> None:
        await adopt(held.engine, held.spec)
        await held.engine.start(
            session.id,
            platform=session.key.platform,
            model=held.spec.name,
            context_length=held.spec.context_length,
            max_output_tokens=held.spec.max_output_tokens,
            auxiliary_context_length=held.auxiliary.context_length,
            home=self._home / held.engine.engine.name,
            parent_session_id=session.parent_id,
            reason=reason,
            call_model=held.auxiliary if asks else _no_model,
            call_aligned=held.auxiliary.aligned if asks else None,
        )

    def _shrink(self) -> None:
        while len(self._held) > self._capacity:
            self._held.popitem(last=False)


async def _no_model(*_: object) -> str:
    raise ProviderUnavailable("No model is asked for a preview.")


async def adopt(engine: GuardedEngine, spec: ModelSpec) -> None:
    """Tell an engine which model its session uses from now on."""
    await engine.update_model(
        spec.name,
        spec.context_length,
        base_url=spec.base_url or "",
        api_key=spec.api_key or "",
        provider=spec.provider,
        max_output_tokens=spec.max_output_tokens,
    )
