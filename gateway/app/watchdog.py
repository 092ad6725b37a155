"""The watchdog: looks every few seconds whether messages move, says what is wrong, and mends what a restart of a part
mends. `problems` decides; here is what follows from it."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import Final

import structlog
from msgspec import Struct, field

from gateway.app.alerts import Alerts
from gateway.app.health import Health
from gateway.app.problems import KINDS, MOST_LOOKS, Kind, Problem, Signs, is_hopeless, problems
from gateway.app.readers import Readers
from gateway.domain.wording import counted
from gateway.runtime.clock import Clock
from gateway.runtime.metrics import Counter
from gateway.runtime.supervisor import Supervisor

log = structlog.get_logger(__name__)

FOUND: Final = Counter(name="watchdog", text="Problems that the watchdog found.", labels=("kind",))

_MENDED_BY_RESTART: Final = frozenset[Kind]({"reader_still", "deaf"})
_AGAIN: Final = 120.0  # seconds after which a reader is begun anew once more


class Watchdog(Struct, kw_only=True):
    """Looks when asked to; where it `runs`, the gateway asks every few seconds."""

    health: Health
    readers: Readers
    alerts: Alerts
    supervisor: Supervisor
    clock: Clock
    runs: bool = False
    _looks: deque[Signs] = field(default_factory=lambda: deque(maxlen=MOST_LOOKS))
    _known: dict[tuple[Kind, str], tuple[Problem, float]] = field(default_factory=dict)  # and since when (wall time)
    _restarted: dict[tuple[Kind, str], float] = field(default_factory=dict)

    def begin(self) -> None:
        """Count from zero: Prometheus does not see a counter rise that begins at one."""
        for kind in KINDS:
            FOUND.count(kind, by=0)
        self.supervisor.alive("serving")

    async def look(self, ended: Collection[str] = ()) -> None:
        """Look once. `ended`: jobs that had ended and were started again."""
        signs = await self.health.look(ended)
        found = {each.name: each for each in problems(signs, self._looks)}
        self._looks.append(signs)
        new = [each for name, each in found.items() if name not in self._known]
        self._note(found)
        for each in new:
            FOUND.count(each.kind)
            log.error("watchdog", kind=each.kind, about=each.about, text=each.text)
        for each in found.values():
            self._mend(each, signs.at)
        self.alerts.tell(new, signs)
        listed = ", ".join(f"{each.kind} {each.about}".strip() for each in found.values())
        self.supervisor.alive(f"{counted(len(found), 'problem')}: {listed}" if found else "serving")
        if is_hopeless(signs):
            log.critical("watchdog_ends_process", kind="writer_still")
            self.supervisor.end(
                "The store has not finished a write for minutes, so this process ends and can be started again."
            )

    def _note(self, found: dict[tuple[Kind, str], Problem]) -> None:
        now = self.clock.now()
        for name in [each for each in self._known if each not in found]:
            problem, since = self._known.pop(name)
            self._restarted.pop(name, None)
            log.warning("watchdog_over", kind=problem.kind, about=problem.about, seconds=round(now - since))
        for name, problem in found.items():
            self._known[name] = (problem, self._known[name][1] if name in self._known else now)
        self.health.problems = dict(self._known.values())

    def _mend(self, problem: Problem, now: float) -> None:
        """Restart a reader, which helps or does no harm."""
        last = self._restarted.get(problem.name)
        if problem.kind in _MENDED_BY_RESTART and (last is None or now - last >= _AGAIN):
            self._restarted[problem.name] = now
            self.readers.restart(problem.about, "stood_still" if problem.kind == "reader_still" else problem.kind)
