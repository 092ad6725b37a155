"""One gateway process of the crash laboratory: `python -m tests.chaos.node --config PATH`.

What `legato run` is, with the tests' own adapter, tools that leave a trace, a hurried clock, short
leases, and the strikes that its configuration asks for. Everything else is the product's.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from adapters.console.adapter import JsonConsole
from adapters.console.platform import LIMITS
from gateway.app.build import Parts, build
from gateway.context.engine import ContextEngine
from gateway.domain.adapter import Adapter
from gateway.domain.chat import Outbound
from gateway.runtime.clock import Clock, SystemIds
from gateway.runtime.logs import configure_logs
from gateway.runtime.points import Point
from gateway.runtime.redaction import Redactor
from gateway.store.redis import RedisStore
from tests.chaos.clocks import LATE, LEASE, PACE, SHORT_PAUSES, HurriedClock, Shift, StoreClock
from tests.chaos.parts import Record, RecordingEngine, configuration, subject, tools
from tests.chaos.socket_adapter import PollingSocketAdapter, SocketAdapter
from tests.chaos.terminal import pipes
from tests.support.hosts import host

_TICK: Final = 0.1
_WELL: Final = b"+PONG\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """A signal to itself at the `passing`-th time that a process passes `point`: whichever process that is
    told to is the first to do so, once in a run."""

    name: str
    point: Point
    passing: int
    signal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The order of a node: its number among the run's processes, its slot (which survives a restart), where
    everything is, and how the run is configured. `server`: the port of the store's server, which `store` may reach by
    way of a proxy; `terminal`: it is one, and no worker."""

    number: int
    slot: int
    store: str
    server: int
    model: str
    platform: str
    origin: float
    polls: bool
    terminal: bool
    groups: str
    busy_mode: str
    window: int
    strikes: tuple[Strike, ...] = ()

    def write(self, folder: Path) -> Path:
        """Make its file."""
        path = folder / f"node-{self.number}.json"
        path.write_text(json.dumps(asdict(self)))
        return path

    @classmethod
    def read(cls, path: Path) -> Setting:
        """Return the setting that `write` wrote."""
        fields: dict[str, Any] = json.loads(path.read_text())
        strikes = tuple(Strike(**each) for each in fields.pop("strikes"))
        return cls(**fields, strikes=strikes)


class Trace:
    """The deeds of this process with their times (monotonic seconds, the same for all processes of a machine)."""

    def __init__(self, folder: Path, number: int) -> None:
        self._record = Record(folder / "trace", number)

    def add(self, *words: str) -> None:
        """Keep one entry; it outlives the process."""
        self._record.add(f"{time.monotonic():.6f}", *words)


class StrikingPoints:
    """The `Points` that keeps a trace and strikes this very process."""

    def __init__(self, folder: Path, strikes: Sequence[Strike], trace: Trace) -> None:
        self._folder = folder
        self._left = {strike: strike.passing for strike in strikes}
        self._trace = trace

    def __call__(self, point: Point, /) -> None:
        self._trace.add(point, *subject(point))
        for strike in self._left:
            if strike.point != point:
                continue
            self._left[strike] -= 1
            if self._left[strike] <= 0 and self._is_first(strike):
                self._trace.add("struck", strike.name)
                os.kill(os.getpid(), strike.signal)

    def _is_first(self, strike: Strike) -> bool:
        try:
            os.close(os.open(self._folder / f"strike-{strike.name}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            return False
        return True


class NodeStore(RedisStore):
    """The product's store. Leases and retries are asked for in the node's hurried seconds and
    kept by the server in real ones; what was marked is noted, when it is certain."""

    def __init__(self, url: str, *, clock: Clock, trace: Trace) -> None:
        super().__init__(url, clock=clock, lease_seconds=LEASE, timeout=3.0, patience=3.0, attempt_pauses=SHORT_PAUSES)
        self._trace = trace
        self._owns = False

    async def hold(self, name: str, holder: str, seconds: float) -> bool:
        held = await super().hold(name, holder, seconds / PACE)
        if held != self._owns:
            self._owns = held
            self._trace.add("owns" if held else "lost", name)
        return held

    async def mark_retry(self, outbound_id: str, seconds: float, **how: Any) -> None:
        await super().mark_retry(outbound_id, seconds / PACE, **how)
        self._trace.add("retried", outbound_id)

    async def next_due(self) -> float | None:
        due = await super().next_due()
        return None if due is None else due * PACE

    async def mark_sent(self, outbound_id: str, platform_message_id: str | None) -> Outbound | None:
        sent = await super().mark_sent(outbound_id, platform_message_id)
        self._trace.add("marked", outbound_id)
        return sent

    async def hook_done(self, session_id: str) -> None:
        await super().hook_done(session_id)
        self._trace.add("hook_done", session_id)


async def _watch(trace: Trace, server: int) -> None:
    """Note when this process had no word of the server for so long that its leases may have lapsed: it could not run,
    or the server did not answer. It asks by a connection of its own, whatever the store does with its."""
    heard = time.monotonic()
    while True:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", server)
            try:
                while answer := await _asked(reader, writer):
                    if answer == _WELL:
                        late, heard = time.monotonic() - heard - _TICK, time.monotonic()
                        if late > LATE:
                            trace.add("late", f"{late:.3f}")
                    await asyncio.sleep(_TICK)
            finally:
                writer.close()
        await asyncio.sleep(_TICK)


async def _asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(b"PING\r\n")
    return await reader.readline()


def _adapter(setting: Setting, folder: Path, clock: Clock) -> Adapter:
    if setting.terminal:
        entrance, exit_ = pipes(folder, setting.number)
        return JsonConsole(os.open(entrance, os.O_RDONLY), os.open(exit_, os.O_WRONLY), host(clock))
    reads = PollingSocketAdapter if setting.polls else SocketAdapter
    return reads(setting.platform, process=setting.number, clock=clock)


async def run(setting: Setting, folder: Path) -> int:
    """Be the gateway until asked to stop; the exit code."""
    config = configuration(
        number=setting.number,
        model=setting.model,
        window=setting.window,
        store=setting.store,
        sessions={"busy_mode": setting.busy_mode, "groups": setting.groups},
    )
    clock = HurriedClock(setting.origin, Shift(folder / f"clock-{setting.slot}"))
    trace = Trace(folder, setting.number)

    def engine() -> ContextEngine:
        return RecordingEngine(config, Record(folder / "hooks", setting.number), trace)

    parts = Parts(
        clock=clock,
        ids=SystemIds(),
        points=StrikingPoints(folder, setting.strikes, trace),
        engine=engine,
        tools=tools(folder, setting.number),
        store=NodeStore(setting.store, clock=StoreClock(clock), trace=trace),
        also_runs={} if setting.terminal else {JsonConsole.name: LIMITS},
    )
    gateway = build(config, [_adapter(setting, folder, clock)], parts)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, gateway.stop)
    trace.add("began")
    watching = asyncio.create_task(_watch(trace, setting.server))
    try:
        return 0 if await gateway.run() else 1
    finally:
        watching.cancel()


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the configuration, run; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.node", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="a file that `Setting.write` made")
    path = parser.parse_args(arguments).config
    configure_logs(level="info", form="json", redact=Redactor(()))
    return asyncio.run(run(Setting.read(path), path.parent))


if __name__ == "__main__":
    raise SystemExit(main())
