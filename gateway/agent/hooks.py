"""Calls of `on_session_end`, in which an engine may fail: it raises, hangs, or exits.

From the end of its session on, the store owes the hook. The first call is made at once, and the end waits a moment for
it, so that an engine hears of the end before it hears of what comes next. A failed call is repeated, by a fresh engine,
after a minute, then five, then half an hour, then two hours; a note in the store keeps the count, even through
restarts. After the fifth call the hook is given up, with one line in the log. So the hook is called at least once, and
exactly once if it returns and no process is killed meanwhile.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import structlog
from msgspec import Struct, field

from gateway.agent.engines import Engines
from gateway.domain.session import Session
from gateway.runtime.clock import Clock
from gateway.runtime.points import Points
from gateway.runtime.tasks import Background, best_effort
from gateway.store.insist import insist
from gateway.store.port import Store

if TYPE_CHECKING:
    from gateway.agent.plugged import Plugged

log = structlog.get_logger(__name__)

PAUSES: Final = (60.0, 300.0, 1_800.0, 7_200.0)  # seconds after the calls that failed; one more call ends it
_WAITED: Final = 5.0  # seconds that an end waits for its hook
_LOOK: Final = 60.0  # seconds between two looks at what is owed, while anything is
_MOST: Final = 1_000  # hooks in one look
_NOTES: Final = "hooks"  # the account of the notes: by session, how many calls failed, and when the next is due
_JOB: Final = "owed hooks"


class Hooks(Struct, kw_only=True):
    """Calls the hooks that this process owes."""

    store: Store
    engines: Engines
    clock: Clock
    points: Points
    background: Background
    plugged: Plugged | None = None
    _ending: set[str] = field(default_factory=set)
    _calling: set[str] = field(default_factory=set)

    @contextmanager
    def ending(self, session: Session) -> Iterator[None]:
        """While a session ends, its hook is no debt of the past."""
        self._ending.add(session.id)
        try:
            yield
        finally:
            self._ending.discard(session.id)

    async def call(self, session: Session) -> None:
        """Call the hook of a session that ends now. Returns after a moment even if the engine hangs; the next session
        then gets an engine of its own."""
        self._calling.add(session.id)
        call = self.background.start(self._call(session), name=f"hook of {session.id}")
        try:
            async with self.clock.limit(_WAITED):
                await asyncio.wait([call])
        except TimeoutError:
            log.warning("session_end_hook_slow", session=session.id)
            self.engines.drop(session.id)

    def pay(self) -> None:
        """Call in the background what is owed, until nothing is."""
        self.background.start_once(self._pay(), name=_JOB)

    async def look(self) -> bool:
        """Call the owed hooks that are due, one after another; False: none is owed any more."""
        owed = await insist(lambda: self.store.pending_hooks(_MOST), clock=self.clock, what="pending_hooks")
        noted = await insist(self._failures, clock=self.clock, what="notes") if owed else {}
        for session in owed:
            due = noted.get(session.id, (0, 0.0))[1]
            if session.id not in self._ending | self._calling and due <= self.clock.now():
                self._calling.add(session.id)
                await best_effort(self._call_again(session), what="owed hook")
                self._calling.discard(session.id)
                self.engines.drop(session.id)
        return bool(owed)

    async def _pay(self) -> None:
        while await self.look():
            await self.clock.sleep(_LOOK)

    async def _call_again(self, session: Session) -> None:
        """Call an owed hook, unless the turn that ended the session has called it meanwhile."""
        if (await self.store.session(session.id)).hook == "pending":
            await self._call(session)

    async def _call(self, session: Session) -> None:
        """Call `on_session_end`, and `on_session_reset` after a reset, and strike out the debt."""
        try:
            returned = list[bool]()
            await best_effort(self._tell(session, returned.append), what="on_session_end")
            self.points("session.hook_called")
            if any(returned) or session.temporary:  # what is deleted is not called for again
                await self._struck_out(session)
            else:
                await self._failed(session)
        finally:
            self._calling.discard(session.id)

    async def _tell(self, session: Session, returned: Callable[[bool], None]) -> None:
        if self.plugged is not None:
            await self.plugged.ended(session)
        held = await self.engines.of(session)
        said = () if session.temporary else await self.store.transcript(session)  # an engine could keep it
        returned(await held.engine.end(session.id, list(said)))
        if session.end_reason == "reset":
            await held.engine.reset()

    async def _failed(self, session: Session) -> None:
        """Note a call that failed; after the last one give the hook up."""
        failed = (await self._failures()).get(session.id, (0, 0.0))[0] + 1
        if failed > len(PAUSES):
            log.error("session_end_hook_given_up", session=session.id, key=str(session.key), calls=failed)
            await self._struck_out(session)
            return
        note = json.dumps([failed, self.clock.now() + PAUSES[failed - 1]])
        await insist(
            lambda: self.store.set_notes(_NOTES, {session.id: note}), clock=self.clock, what="a hook that failed"
        )
        self.pay()

    async def _struck_out(self, session: Session) -> None:
        await insist(lambda: self.store.hook_done(session.id), clock=self.clock, what="hook_done")
        if session.id in await self._failures():
            await self.store.set_notes(_NOTES, {session.id: None})

    async def _failures(self) -> dict[str, tuple[int, float]]:
        """By session: how many calls failed, and when the next is due (seconds since the epoch)."""
        notes = {name: json.loads(note) for name, note in (await self.store.notes(_NOTES)).items()}
        return {name: (int(failed), float(due)) for name, (failed, due) in notes.items()}
