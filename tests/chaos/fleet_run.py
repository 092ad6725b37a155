"""Runs of several processes on Redis: what they found, and the figures."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from tests.chaos.campaign import listed
from tests.chaos.check_shown import UNSEEN
from tests.chaos.findings import Findings
from tests.chaos.fleet import Stage, stage
from tests.chaos.schedule import Schedule
from tests.chaos.timeline import timeline
from tests.chaos.verdict import judge
from tests.chaos.verdict_turns import AT_ONCE


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetResult:
    """One run: what took place, what it excused, what was wrong, and how long it took in seconds. `log`
    is the run as it went, and the end of the processes' log."""

    schedule: Schedule
    faults: Counter[str]
    takeovers: int
    messages: int
    repeated: int
    excused: Counter[str]
    problems: tuple[str, ...]
    seconds: float
    log: tuple[str, ...] = field(default=())

    @property
    def seed(self) -> int:
        """Return the number that repeats the run."""
        return self.schedule.seed

    def described(self) -> list[str]:
        """Return the schedule in words."""
        return self.schedule.described()


async def perform(on: Stage, schedule: Schedule) -> FleetResult:
    """One run and the verdict on it."""
    began = time.monotonic()
    findings = await on.run(schedule)
    verdict = await asyncio.to_thread(judge, findings)
    shown = [send.row for send in findings.sends if send.shown]
    return FleetResult(
        schedule=schedule,
        faults=_faults(findings),
        takeovers=_takeovers(findings),
        messages=len(schedule.said),
        repeated=len(shown) - len(set(shown)),
        excused=verdict.excused,
        problems=tuple(verdict.problems),
        seconds=time.monotonic() - began,
        log=(*timeline(findings), *_last_words(findings)),
    )


def _faults(findings: Findings) -> Counter[str]:
    """Return the planned faults that took place, by kind."""
    faults = Counter(hit.kind for hit in (*findings.hits, *findings.starved()))
    faults.update(f"send {send.fault}" for send in findings.sends if send.fault)
    faults.update(f"model {call.fault}" for call in findings.calls if call.fault)
    return faults


def _takeovers(findings: Findings) -> int:
    """Return how often an account changed hands."""
    owners = Counter(words[1] for _, _, words in findings.trace() if words[0] == "owns")
    return sum(times - 1 for times in owners.values())


def _last_words(findings: Findings, most: int = 60) -> list[str]:
    path = findings.folder / "log"
    return path.read_text().splitlines()[-most:] if path.exists() else []


@asynccontextmanager
async def fleets() -> AsyncIterator[Callable[[Schedule], Awaitable[FleetResult]]]:
    """A laboratory for `campaign`."""
    async with stage() as one:
        yield partial(perform, one)


def fleet_report(results: Sequence[FleetResult]) -> list[str]:
    """The figures of a campaign."""
    faults, excused = Counter[str](), Counter[str]()
    for result in results:
        faults += result.faults
        excused += result.excused
    seconds = sorted(result.seconds for result in results)
    failed = [result for result in results if result.problems]
    at_once = sum(count for name, count in excused.items() if name.startswith(AT_ONCE))
    return [
        "faults by kind: " + listed(faults),
        "excused by a fault that struck the very row, turn, hook or poll: " + (listed(excused) or "nothing"),
        f"a run took {seconds[len(seconds) // 2]:.1f} s (median), {seconds[-1]:.1f} s at most",
        f"{len(results)} runs of several processes on Redis, {sum(result.messages for result in results):,} messages, "
        f"{faults.total()} faults, {sum(result.takeovers for result in results)} takeovers of an account, "
        f"{sum(result.repeated for result in results)} messages shown twice, {len(failed)} runs with problems; "
        f"excused: {at_once} model calls made at once by a process that had been stopped, "
        f"{excused[UNSEEN]} messages never seen after two struck attempts",
    ]
