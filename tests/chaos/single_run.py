"""Runs of one process on SQLite: what they found, and the figures."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway.telemetry.points import POINTS
from tests.chaos.answers import model
from tests.chaos.check import problems
from tests.chaos.drive import Evidence, Launcher, carry_out, last_words
from tests.chaos.script import Plan
from tests.emulators.llm import LlmServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One run: the points it was killed at, the lines it repeated, what was wrong, and how long it
    took in seconds. `log` is the end of the gateway's log where something was wrong."""

    plan: Plan
    killed_at: tuple[str, ...]
    repeated: int
    refusals: int
    problems: tuple[str, ...]
    seconds: float
    log: tuple[str, ...] = ()

    @property
    def seed(self) -> int:
        """What it can be shown again by."""
        return self.plan.seed

    def described(self) -> list[str]:
        """What was to happen."""
        return self.plan.described()


class Bench:
    """A launcher and a model, reused from run to run."""

    def __init__(self, launcher: Launcher, server: LlmServer) -> None:
        self._launcher = launcher
        self._server = server

    async def run(self, plan: Plan) -> Result:
        """One run in a folder of its own, which is removed."""
        started = time.monotonic()
        folder = Path(tempfile.mkdtemp(prefix=f"legato-chaos-{plan.seed}-"))
        evidence: Evidence | None = None
        try:
            evidence = await carry_out(plan, folder, self._launcher, self._server)
            found = problems(evidence)
        except TimeoutError:
            found = ["a process neither ended nor reached the point it was to be killed at"]
        except BaseException as error:
            error.add_note(f"in the run of seed {plan.seed}, whose files are in {folder}")
            raise
        words = tuple(last_words(folder, 10_000))
        shutil.rmtree(folder)
        lines = evidence.lines if evidence else []
        return Result(
            plan=plan,
            killed_at=tuple(str(kill) for kill in plan.kills[: evidence.kills if evidence else 0]),
            repeated=len(lines) - len({line.fields["id"] for line in lines}),
            refusals=sum('"store_unavailable"' in word for word in words),
            problems=tuple(found),
            seconds=time.monotonic() - started,
            log=words[-30:] if found else (),
        )


@asynccontextmanager
async def benches() -> AsyncIterator[Callable[[Plan], Awaitable[Result]]]:
    """A laboratory for `campaign`."""
    launcher = Launcher()
    try:
        async with LlmServer(model) as server:
            yield Bench(launcher, server).run
    finally:
        launcher.close()


def report(results: Sequence[Result]) -> list[str]:
    """The figures of a campaign."""
    kills = Counter(point for result in results for point in result.killed_at)
    failed = [result for result in results if result.problems]
    seconds = sorted(result.seconds for result in results)
    full = sum(result.plan.full is not None for result in results)
    return [
        f"{len(results)} runs of one process on SQLite, "
        f"{sum(len(result.plan.events) for result in results):,} messages, "
        f"{kills.total()} kills, {full} full disks ({sum(result.refusals for result in results)} writes refused), "
        f"{sum(result.repeated for result in results)} lines repeated, {len(failed)} runs with problems",
        "kills by point: "
        + ", ".join(f"{point} {kills[point]}" for point in POINTS)
        + f", anywhere {kills.total() - sum(kills[point] for point in POINTS)}",
        f"a run took {seconds[len(seconds) // 2]:.1f} s (median), {seconds[-1]:.1f} s at most",
    ]
