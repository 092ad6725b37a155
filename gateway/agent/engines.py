"""Context engines in memory: one instance for each session in recent use."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import structlog
from msgspec import Struct, field

from gateway.agent.auxiliary import AuxiliaryModel
from gateway.agent.caching import Prefix
from gateway.agent.conversation import Conversation
from gateway.agent.files.references import References
from gateway.agent.metering import Metering
from gateway.context.engine import ContextEngine
from gateway.context.guard import GuardedEngine, is_ours
from gateway.domain.session import Session
from gateway.domain.usage import LedgerEntry
from gateway.providers.base import ModelSpec
from gateway.runtime.errors import ProviderUnavailable

StartReason = Literal["new", "resume", "compression", "reset", "switch", "preparation"]

log = structlog.get_logger(__name__)


class EngineSession(Struct, kw_only=True):
    """A session's engine and what it works with: the model, that model's last request (`prefix`), the transcript's
    references to files, and the engine's own calls that are not stored yet (`ledger`)."""

    session: Session
    engine: GuardedEngine
    spec: ModelSpec
    auxiliary: AuxiliaryModel
    prefix: Prefix
    references: References = field(default_factory=References)
    ledger: list[LedgerEntry] = field(default_factory=list)
    used: bool = True  # since the last rest


class Engines(Struct, frozen=True, kw_only=True):
    """Gives every session its own engine, by `factory`; `builtin` makes the one that helps a stranger's out. The least
    recently used engines are dropped, because their state is on the session row."""

    factory: Callable[[], ContextEngine]
    builtin: Callable[[], ContextEngine]
    metering: Metering
    home: Path
    capacity: int = 1_024
    _held: OrderedDict[str, EngineSession] = field(default_factory=OrderedDict)

    async def of(self, session: Session, reason: StartReason | None = None) -> EngineSession:
        """Return the session's engine, made and started if it is not in memory.

        `reason` None means "new" for a session without messages and "resume" otherwise.
        """
        await self.metering.models.know_window(session)
        spec = self.metering.models.of(session)
        held = self._held.get(session.id)
        if held is None or held.session.rewritten != session.rewritten:
            held = self._make(session, spec)
            self._held[session.id] = held
            await held.engine.load(session.engine_state)
            await self._start(held, reason or ("resume" if session.message_count else "new"))
            self._shrink()
        elif held.spec != spec:
            held.spec = spec
            await adopt(held.engine, spec)
        held.session, held.used = session, True
        held.engine.system_prompt = session.system_prompt
        self._held.move_to_end(session.id)
        return held

    async def move(
        self, parent: Session, child: Session, reason: StartReason, *, spec: ModelSpec | None = None
    ) -> None:
        """Let the parent's engine continue with the child. `spec`: the model that answers at present, if it may be
        another than the session's own."""
        held = self._held.pop(parent.id, None)
        if held is None:
            held = self._make(child, self.metering.models.of(child))
            if reason != "reset":
                await held.engine.load(parent.engine_state)
        held.session = child
        held.spec = spec or held.spec
        self._held[child.id] = held
        await self._start(held, reason)
        self._shrink()

    async def stand_in(
        self, session: Session, state: Mapping[str, Any], charge: Callable[[LedgerEntry], None] | None
    ) -> EngineSession:
        """A fresh engine that works for the session beside its own one, starting from that one's state. Its calls go to
        `charge` (None: it may make no calls)."""
        await self.metering.models.know_window(session)
        beside = self._held.get(session.id)
        spec, prefix = self.metering.models.of(session), beside.prefix if beside else None
        held = self._make(session, spec, charge, prefix)
        await held.engine.load(state)
        await self._start(held, "preparation", asks=charge is not None)
        return held

    async def rescuer(self, conversation: Conversation) -> GuardedEngine | None:
        """Return an engine that comes with Legato, for one compaction of a session whose own engine is a stranger's;
        None where it is not."""
        if conversation.engine.is_ours:
            return None
        held = self._make(conversation.stored.session, conversation.spec, conversation.ledger.append, make=self.builtin)
        await self._start(held, "preparation")
        return held.engine

    @property
    def keeps_copies(self) -> bool:
        """Whether the engine may keep texts of its own, as a foreign one may."""
        return not is_ours(self.factory())

    @property
    def out_of_reach(self) -> str:
        """The name of an engine that may keep copies and has no way to forget them; "": there are none."""
        engine = GuardedEngine(self.factory(), log=log, clock=self.metering.clock)
        return "" if engine.can_forget else engine.engine.name

    async def forget(self, session: Session, texts: Sequence[str]) -> None:
        """Have a session's engine forget texts, if it may keep any and can."""
        if self.keeps_copies:
            await (await self.of(session)).engine.forget(texts)

    def drop(self, session_id: str) -> None:
        """Drop an ended session's engine."""
        self._held.pop(session_id, None)

    def _make(
        self,
        session: Session,
        spec: ModelSpec,
        charge: Callable[[LedgerEntry], None] | None = None,
        prefix: Prefix | None = None,
        make: Callable[[], ContextEngine] | None = None,
    ) -> EngineSession:
        ledger: list[LedgerEntry] = []
        prefix = prefix or Prefix()
        held: EngineSession
        auxiliary = AuxiliaryModel(
            metering=self.metering,
            purpose="compression",
            session=lambda: held.session,
            live=lambda: held.spec,
            prefix=prefix,
            charge=charge or ledger.append,
        )
        engine = GuardedEngine((make or self.factory)(), log=log, clock=self.metering.clock)
        held = EngineSession(
            session=session, engine=engine, spec=spec, auxiliary=auxiliary, prefix=prefix, ledger=ledger
        )
        return held

    async def _start(self, held: EngineSession, reason: StartReason, *, asks: bool = True) -> None:
        session, spec = held.session, held.spec
        home = held.engine.engine.home or self.home / held.engine.engine.name
        # An engine that never compacted has nothing to carry over, and some lock themselves out in the attempt.
        carries = reason == "compression" and held.engine.has_compacted
        continues = {"old_session_id": session.parent_id, "boundary_reason": reason} if carries else {}
        held.engine.system_prompt = session.system_prompt
        await adopt(held.engine, spec)
        await held.engine.start(
            session.id,
            platform=session.key.platform,
            model=spec.name,
            context_length=spec.context_length,
            max_output_tokens=spec.max_output_tokens,
            auxiliary_context_length=held.auxiliary.context_length,
            home=home,
            hermes_home=str(home),
            conversation_id=str(session.key),
            **continues,
            parent_session_id=session.parent_id,
            reason=reason,
            rates=self.metering.models.rates,
            call_model=held.auxiliary if asks else _no_model,
            call_aligned=held.auxiliary.aligned if asks else None,
        )

    def rest(self) -> int:
        """Drop the engines that nobody asked for since the last call; return how many."""
        idle = [session_id for session_id, held in self._held.items() if not held.used]
        for session_id in idle:
            del self._held[session_id]
        for held in self._held.values():
            held.used = False
        return len(idle)

    def _shrink(self) -> None:
        while len(self._held) > self.capacity:
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
