"""Runs of one process on SQLite: what they found, and the figures."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.campaign import listed
from tests.chaos.check import problems
from tests.chaos.check_shown import UNSEEN
from tests.chaos.check_store import Facts
from tests.chaos.drive import Evidence, carry_out, last_words
from tests.chaos.faults import by_call
from tests.chaos.script import PASSED, Plan
from tests.chaos.watched_model import Watch, WatchedModel

_HANGS = 0.4  # real seconds of a call that hangs: nobody else's lease is waited for


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One run: the points it was killed at, what else went wrong with whom it talks to, the messages it
    repeated, what that excused, what was wrong, and how long it took in seconds. `log` is the end of the
    gateway's log where something was wrong."""

    plan: Plan
    killed_at: tuple[str, ...]
    repeated: int
    faults: Counter[str]
    excused: Counter[str]
    refusals: int
    problems: tuple[str, ...]
    seconds: float
    log: tuple[str, ...] = ()

    @property
    def seed(self) -> int:
        """Return the number that repeats the run."""
        return self.plan.seed

    def described(self) -> list[str]:
        """Return the schedule in words."""
        return self.plan.described()


class Bench:
    """A model, reused from run to run."""

    def __init__(self, server: WatchedModel) -> None:
        self._server = server

    async def run(self, plan: Plan) -> Result:
        """One run in a folder of its own, which is removed."""
        started = time.monotonic()
        folder = Path(tempfile.mkdtemp(prefix=f"legato-chaos-{plan.seed}-"))
        evidence: Evidence | None = None
        watch = Watch(by_call(plan.faults, "model"), random.Random(plan.seed), hangs=_HANGS, slowest=0.0)
        self._server.watch = watch
        excused = Counter[str]()
        try:
            evidence = await carry_out(plan, folder, self._server)
            evidence.calls = watch.calls
            found = problems(evidence, excused)
        except TimeoutError:
            found = ["a process neither ended nor reached the point it was to be killed at"]
        except BaseException as error:
            error.add_note(f"in the run of seed {plan.seed}, whose files are in {folder}")
            raise
        words = tuple(last_words(folder, 10_000))
        shutil.rmtree(folder)
        shown = Facts(evidence).shown if evidence else []
        return Result(
            plan=plan,
            killed_at=tuple(str(kill) for kill in plan.kills[: evidence.kills if evidence else 0]),
            repeated=len(shown) - len({line.fields["id"] for line in shown}),
            faults=_faults(evidence) if evidence else Counter(),
            excused=excused,
            refusals=sum('"store_unavailable"' in word for word in words),
            problems=tuple(found),
            seconds=time.monotonic() - started,
            log=words[-30:] if found else (),
        )


def _faults(evidence: Evidence) -> Counter[str]:
    """Return the planned faults beside the kills that took place."""
    faults = Counter(f"send {send.fault}" for send in evidence.sends if send.fault)
    faults.update(f"model {call.fault}" for call in evidence.calls if call.fault)
    faults.update(fault.kind for fault in evidence.plan.faults if fault.at is not None)
    return faults


@asynccontextmanager
async def benches() -> AsyncIterator[Callable[[Plan], Awaitable[Result]]]:
    """A laboratory for `campaign`."""
    async with WatchedModel() as server:
        yield Bench(server).run


def report(results: Sequence[Result]) -> list[str]:
    """The figures of a campaign."""
    kills = Counter(point for result in results for point in result.killed_at)
    faults, excused = Counter[str](), Counter[str]()
    for result in results:
        faults += result.faults
        excused += result.excused
    failed = [result for result in results if result.problems]
    seconds = sorted(result.seconds for result in results)
    full = sum(result.plan.full is not None for result in results)
    return [
        "kills by point: "
        + ", ".join(f"{point} {kills[point]}" for point in PASSED)
        + f", anywhere {kills.total() - sum(kills[point] for point in PASSED)}",
        "other faults by kind: " + (listed(faults) or "none"),
        f"a run took {seconds[len(seconds) // 2]:.1f} s (median), {seconds[-1]:.1f} s at most",
        f"{len(results)} runs of one process on SQLite, "
        f"{sum(len(result.plan.events) for result in results):,} messages, {kills.total()} kills, "
        f"{full} full disks ({sum(result.refusals for result in results)} writes refused), {faults.total()} other "
        f"faults, {sum(result.repeated for result in results)} messages shown twice, {len(failed)} runs with "
        f"problems; excused: {excused[UNSEEN]} messages never seen after two struck attempts",
    ]
