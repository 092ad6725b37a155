"""The gateway's health: the signs that the watchdog judges, and the same for people and for Prometheus.

Nothing of it is kept for each message: times and counts that are there anyway are compared at each look.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import structlog
from msgspec import Struct, field

from gateway import __version__
from gateway.agent.metering import CALLS, CAPS_MET
from gateway.agent.models import COST, TOKENS, Models
from gateway.agent.pressure import PRESSURE
from gateway.agent.running import RunningTurns
from gateway.app.hours import Hours
from gateway.app.problems import ASK_SECONDS, LOOK_SECONDS, MOVES_ON, PlatformSigns, Problem, Signs
from gateway.app.readers import Readers
from gateway.delivery.outbox import SENDS
from gateway.domain.adapter import CountsUnread, IsTerminal
from gateway.domain.views import Hour
from gateway.domain.wording import utc
from gateway.runtime.clock import Clock
from gateway.runtime.errors import AdapterError, StoreError, StoreUnavailable
from gateway.runtime.metrics import Gauge, Metrics
from gateway.runtime.structs import replace
from gateway.runtime.tasks import Background
from gateway.store.port import PROCESSES_LOST, Store
from gateway.store.records import Backlog, Pile
from gateway.turns.lanes import Lanes
from gateway.turns.turn import TURNS

if TYPE_CHECKING:
    from gateway.app.backup.schedule import DailyBackups

log = structlog.get_logger(__name__)

_BUILD: Final = Gauge(name="build_info", text="Always 1, with the running version as the label.", labels=("version",))
_UP: Final = Gauge(
    name="platform_up", text="1 if this process reads the platform, 0 if another process does.", labels=("platform",)
)
_HEARD: Final = Gauge(
    name="platform_last_update_timestamp_seconds", text="When the platform last sent an update.", labels=("platform",)
)
_PENDING: Final = Gauge(name="outbox_pending", text="Messages not yet sent, by state.", labels=("platform", "state"))
_OUTBOX_AGE: Final = Gauge(name="outbox_oldest_seconds", text="How long the oldest unsent message has waited.")
_INBOX_AGE: Final = Gauge(
    name="inbox_oldest_seconds", text="How long the oldest message without an outcome has waited."
)
_DEAD: Final = Gauge(name="dead_letters", text="Messages that Legato gave up on.")
_LAG: Final = Gauge(name="event_loop_lag_seconds", text="The seconds by which the last watchdog check was late.")
_COMMIT: Final = Gauge(name="store_commit_seconds", text="How long a small write to the store took, or takes.")
_WAITING: Final = Gauge(name="messages_waiting", text="Accepted messages without an outcome.")
_RUNNING: Final = Gauge(name="lanes_running", text="Conversations in which this process is working.")

_NOTES: Final = "watchdog"  # the account of its small write
_NO_FAILURE: Final = ("sent", "broken_off", "rate_limited")  # outcomes of an attempt to show something
_FAILS_REMEMBERED: Final = 60.0  # seconds
_ASKED_FOR: Final = 5.0  # seconds for the store's answer


class _Unread(Struct, frozen=True, kw_only=True):
    """A server that keeps updates: asked first and last, with nothing heard meanwhile."""

    first: float
    last: float
    heard: float | None


class _Failures(Struct, frozen=True, kw_only=True):
    """Attempts to show something that failed, with the looks that saw the first and the last of them."""

    first: float
    last: float
    count: float


class Health(Struct, kw_only=True):
    """Looks at the parts of a gateway. `folder`: where the store's disk is; None: elsewhere. `backups`: those that the
    program makes by itself. `problems`, with the moment since when each is there, are the watchdog's."""

    store: Store
    readers: Readers
    lanes: Lanes
    running_turns: RunningTurns
    models: Models
    metrics: Metrics
    clock: Clock
    background: Background
    folder: Path | None = None
    backups: DailyBackups | None = None
    state: Literal["starting", "serving", "draining"] = "starting"
    problems: Mapping[Problem, float] = field(default_factory=dict)
    _hours: Hours = field(default_factory=lambda: Hours(bounds=TURNS.bounds, shares=PRESSURE.bounds))
    _began: float = 0.0
    _looked_at: float | None = None
    _lag: float = 0.0
    _unread: dict[str, _Unread] = field(default_factory=dict)
    _asked_at: dict[str, float] = field(default_factory=dict)
    _shown: dict[str, float] = field(default_factory=dict)  # sent messages by platform, as they were counted
    _shown_at: dict[str, float] = field(default_factory=dict)
    _failed: dict[str, _Failures] = field(default_factory=dict)  # since the last message that was shown
    _failures: dict[str, float] = field(default_factory=dict)  # failed attempts by platform, as they were counted
    _lost: float = 0.0
    _calls: dict[bool, float] = field(default_factory=dict)  # model calls by whether they were answered
    _called_at: dict[bool, float] = field(default_factory=dict)
    _moved: object = None
    _writing_since: float | None = None
    _write_took: float = 0.0
    _write_error: str | None = None

    def __post_init__(self) -> None:
        self._began = self.clock.monotonic()

    # -- a look ---------------------------------------------------------------------------------

    async def look(self, ended: Collection[str]) -> Signs:
        """The signs as they are now; `ended` are jobs that were started again."""
        now = self.clock.monotonic()
        self._lag = 0.0 if self._looked_at is None else max(0.0, now - self._looked_at - LOOK_SECONDS)
        self._looked_at = now
        self._note_counts(now)
        self._note_hour()
        self._ask_servers(now)
        lost, self._lost = self._lost, sum(self.metrics.counts(PROCESSES_LOST).values())
        backlog, error = await self._backlog()
        writes_for = 0.0 if self._writing_since is None else now - self._writing_since
        wall = self.clock.now()
        return Signs(
            at=now,
            platforms={name: self._of_platform(name, backlog, now) for name in self._platforms()},
            idle={}
            if self.lanes.is_full
            else {name: wall - at for name, at in backlog.idle.items() if name in self.readers.accounts.runs},
            lag=self._lag,
            writes_for=writes_for,
            store_error=error or self._write_error,
            free=None if self.folder is None else shutil.disk_usage(self.folder).free,
            backup_error=None if self.backups is None else self.backups.error,
            ended=tuple(ended),
            dead=backlog.dead,
            caps_met=sum(self.metrics.counts(CAPS_MET).values()),
            model=self.models.main.name,
            away=self.models.absence(self.models.main),
            silent_for=self._silent_for(now),
            patience=self.models.patience,
            lost=self._lost - lost,
        )

    def _silent_for(self, now: float) -> float:
        since = self.running_turns.silent_since(now)
        return 0.0 if since is None or self._called_at.get(True, since) > since else now - since

    def _platforms(self) -> list[str]:
        """The platforms, without a person's own terminal, which ends with its input."""
        return [name for name, each in self.readers.adapters.items() if not isinstance(each, IsTerminal)]

    def _of_platform(self, name: str, backlog: Backlog, now: float) -> PlatformSigns:
        unread, failed = self._unread.get(name), self._failed.get(name)
        return PlatformSigns(
            state=self.readers.state(name),
            still_for=self.readers.silent_for(name),
            deaf_for=unread.last - unread.first
            if unread and unread.heard == self.readers.reception.heard_at.get(name)
            else 0.0,
            failed_sends=round(failed.count) if failed else 0,
            fails_for=failed.last - failed.first if failed and now - failed.last < _FAILS_REMEMBERED else 0.0,
            unsent=sum(pile.count for (platform, _), pile in backlog.unsent.items() if platform == name),
        )

    async def _backlog(self) -> tuple[Backlog, str | None]:
        try:
            async with self.clock.limit(_ASKED_FOR):
                return await self.store.backlog(), None
        except TimeoutError:
            return Backlog(), "The store does not answer."
        except StoreError as error:
            return Backlog(), str(error)

    def _note_counts(self, now: float) -> None:
        """Compare what was counted, and begin a small write if anything moved: an idle disk may sleep."""
        sends = self.metrics.counts(SENDS)
        shown = {platform: sum_ for (platform, outcome), sum_ in sends.items() if outcome == "sent"}
        failures: dict[str, float] = {}
        for (platform, outcome), count in sends.items():
            if outcome not in _NO_FAILURE:
                failures[platform] = failures.get(platform, 0.0) + count
        for platform, count in failures.items():
            if more := count - self._failures.get(platform, 0.0):
                before = self._failed.get(platform) or _Failures(first=now, last=now, count=0)
                self._failed[platform] = replace(before, last=now, count=before.count + more)
        self._failures = failures
        for platform in [each for each, count in shown.items() if count > self._shown.get(each, 0)]:
            self._failed.pop(platform, None)
        calls = {True: 0.0, False: 0.0}
        for (*_, outcome), count in self.metrics.counts(CALLS).items():
            calls[outcome == "answered"] += count
        self._shown_at |= {name: now for name, count in shown.items() if count > self._shown.get(name, 0)}
        self._called_at |= {kind: now for kind, count in calls.items() if count > self._calls.get(kind, 0)}
        self._shown, self._calls = shown, calls
        moved = (shown, calls, dict(self.readers.reception.heard_at))
        if moved != self._moved or self._write_error is not None:
            self._moved = moved
            self.background.start_once(self._write(), name="watchdog's write")

    async def _write(self) -> None:
        self._writing_since = began = self.clock.monotonic()
        try:
            await self.store.set_notes(_NOTES, {"looked_at": f"{self.clock.now():.0f}"})
            self._write_took, self._write_error = self.clock.monotonic() - began, None
        except StoreUnavailable as error:
            self._write_error = str(error)
        finally:
            self._writing_since = None

    def _ask_servers(self, now: float) -> None:
        """Ask the servers of silent platforms whether they keep anything for the bot."""
        heard_at = self.readers.reception.heard_at
        for name, adapter in self.readers.adapters.items():
            silent_since = max(heard_at.get(name, self._began), self._asked_at.get(name, self._began))
            is_silent = now - silent_since >= ASK_SECONDS
            if is_silent and isinstance(adapter, CountsUnread) and self.readers.state(name) == "reads":
                self._asked_at[name] = now
                self.background.start_once(self._ask(name, adapter, now), name=f"unread {name}")

    async def _ask(self, name: str, adapter: CountsUnread, now: float) -> None:
        heard = self.readers.reception.heard_at.get(name)
        try:
            unread = await adapter.unread()
        except AdapterError as error:
            log.info("unread_not_known", adapter=name, error=str(error))
            return
        before = self._unread.get(name)
        if not unread or heard != self.readers.reception.heard_at.get(name):
            self._unread.pop(name, None)
        elif before is None or before.heard != heard:
            self._unread[name] = _Unread(first=now, last=now, heard=heard)
        else:
            self._unread[name] = _Unread(first=before.first, last=now, heard=heard)

    def hours(self) -> Sequence[Hour]:
        """What was done in the last hours, oldest first, up to now."""
        self._note_hour()
        return self._hours.all()

    def _note_hour(self) -> None:
        turns, windows = [self.metrics.series.get(each, {}).values() for each in (TURNS, PRESSURE)]
        usd, tokens = [sum(self.metrics.counts(each).values()) for each in (COST, TOKENS)]
        self._hours.note(self.clock.now(), turns, windows, usd, tokens)

    # -- for people and programs ----------------------------------------------------------------

    async def is_ready(self) -> str | None:
        """Return why the gateway cannot take messages now; None: it can."""
        if self.state != "serving":
            return f"The gateway is {self.state}."
        unwritable = (each.text for each in self.problems if each.kind in ("store_away", "writer_still"))
        return next(unwritable, None) or (await self._backlog())[1]

    async def measure(self) -> None:
        """Note every gauge."""
        backlog, _ = await self._backlog()
        _BUILD.note(1, __version__)
        for name in self._platforms():
            _UP.note(self.readers.state(name) == "reads", name)
            if (heard := self.readers.reception.heard_at.get(name)) is not None:
                _HEARD.note(self._wall(heard), name)
        for state in ("streaming", "pending", "sending"):
            for name in {*self.readers.accounts.runs, *(platform for platform, _ in backlog.unsent)}:
                _PENDING.note(backlog.unsent.get((name, state), Pile()).count, name, state)
        _OUTBOX_AGE.note(_age(backlog.unsent, self.clock.now()))
        _INBOX_AGE.note(_age(backlog.waiting, self.clock.now()))
        _DEAD.note(backlog.dead)
        _LAG.note(self._lag)
        _COMMIT.note(self._write_age())
        _WAITING.note(sum(pile.count for pile in backlog.waiting.values()))
        _RUNNING.note(self.lanes.active)

    async def report(self) -> dict[str, Any]:
        """Everything for /statusz and `legato status`, without people and their words."""
        backlog, error = await self._backlog()
        main = self.models.main
        return {
            "version": __version__,
            "worker": self.lanes.worker,
            "state": self.state,
            "moves": self.state == "serving" and all(each.kind in MOVES_ON for each in self.problems),
            "uptime_seconds": round(self.clock.monotonic() - self._began),
            "platforms": {
                name: {
                    "reader": self.readers.state(name),
                    "last_update": self._time(self.readers.reception.heard_at.get(name)),
                    "last_answer": self._time(self._shown_at.get(name)),
                }
                for name in self._platforms()
            },
            **backlog_report(backlog, self.clock.now()),
            "turns_running": self.lanes.active,
            "store": {"write_seconds": round(self._write_age(), 4), "error": error or self._write_error},
            "event_loop_lag_seconds": round(self._lag, 3),
            "model": {
                "name": main.name,
                "last_answer": self._time(self._called_at.get(True)),
                "last_failure": self._time(self._called_at.get(False)),
                "away": self.models.absence(main),
            },
            "backup": None if self.backups is None else self.backups.report(),
            "problems": [
                {"kind": each.kind, "about": each.about, "since": utc(since), "text": each.text}
                for each, since in self.problems.items()
            ],
        }

    def _write_age(self) -> float:
        return self._write_took if self._writing_since is None else self.clock.monotonic() - self._writing_since

    def _wall(self, moment: float) -> float:
        """A monotonic time by the clock on the wall."""
        return self.clock.now() - (self.clock.monotonic() - moment)

    def _time(self, moment: float | None) -> str | None:
        return None if moment is None else utc(self._wall(moment))


def backlog_report(backlog: Backlog, now: float) -> dict[str, Any]:
    """The part of a report that only the store knows."""
    by: dict[str, dict[str, int]] = {}
    for (platform, state), pile in backlog.unsent.items():
        by.setdefault(platform, {})[state] = pile.count
    waiting = {platform: pile.count for platform, pile in backlog.waiting.items()}
    return {
        "inbox": {
            "waiting": sum(waiting.values()),
            "oldest_seconds": round(_age(backlog.waiting, now)),
            "platforms": waiting,
        },
        "outbox": {
            "unsent": sum(pile.count for pile in backlog.unsent.values()),
            "oldest_seconds": round(_age(backlog.unsent, now)),
            "platforms": by,
        },
        "dead_letters": backlog.dead,
    }


def _age(piles: Mapping[Any, Pile], now: float) -> float:
    """The seconds since the oldest of all came; 0: nothing waits."""
    oldest = [pile.oldest for pile in piles.values() if pile.oldest is not None]
    return max(0.0, now - min(oldest)) if oldest else 0.0
