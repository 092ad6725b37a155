"""`python -m tests.chaos.run --runs 200 [--seed N]`: many crash runs, and what they found.

Runs use the seeds N, N+1, …; one line for each failure names the seed that shows it again. The exit
code is 0 only if every run kept every promise.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from gateway.telemetry.points import POINTS
from tests.chaos.answers import model
from tests.chaos.check import problems
from tests.chaos.drive import Evidence, Launcher, carry_out, last_words
from tests.chaos.script import Plan, make_plan
from tests.emulators.llm import LlmServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One run: the points it was killed at, the lines it repeated, what was wrong, and how long it
    took in seconds. `log` is the end of the gateway's log where something was wrong."""

    seed: int
    killed_at: tuple[str, ...]
    events: int
    repeated: int
    problems: tuple[str, ...]
    seconds: float
    log: tuple[str, ...] = ()


class Bench:
    """A launcher and a model, reused from run to run."""

    def __init__(self, launcher: Launcher, server: LlmServer) -> None:
        self._launcher = launcher
        self._server = server

    async def run(self, plan: Plan) -> Result:
        """Carry a plan out in a folder of its own and check what is left."""
        folder = Path(tempfile.mkdtemp(prefix="legato-chaos-"))
        started = time.monotonic()
        self._server.context_length = plan.window
        evidence: Evidence | None = None
        try:
            evidence = await carry_out(plan, folder, self._launcher, self._server)
            found = problems(evidence)
        except TimeoutError:
            found = ["a process neither ended nor reached the point it was to be killed at"]
        except BaseException as error:
            error.add_note(f"in the run of seed {plan.seed}, whose files are in {folder}")
            raise
        log = tuple(last_words(folder)) if found else ()
        shutil.rmtree(folder)
        lines = evidence.lines if evidence else []
        return Result(
            seed=plan.seed,
            killed_at=tuple(str(kill) for kill in plan.kills[: evidence.kills if evidence else 0]),
            events=len(plan.events),
            repeated=len(lines) - len({line.fields["id"] for line in lines}),
            problems=tuple(found),
            seconds=time.monotonic() - started,
            log=log,
        )


@asynccontextmanager
async def bench() -> AsyncIterator[Bench]:
    """A bench, taken down in the end."""
    launcher = Launcher()
    try:
        async with LlmServer(model) as server:
            yield Bench(launcher, server)
    finally:
        launcher.close()


async def campaign(plans: Iterable[Plan], jobs: int) -> AsyncIterator[Result]:
    """The results of all plans as they come, `jobs` of them at a time."""
    waiting: Iterator[Plan] = iter(plans)
    results: asyncio.Queue[Result | None] = asyncio.Queue()

    async def work() -> None:
        try:
            async with bench() as one:
                for plan in waiting:
                    results.put_nowait(await one.run(plan))
        finally:
            results.put_nowait(None)

    async with asyncio.TaskGroup() as group:
        for _ in range(jobs):
            group.create_task(work())
        working = jobs
        while working:
            result = await results.get()
            if result is None:
                working -= 1
            else:
                yield result


def report(results: Sequence[Result]) -> list[str]:
    """The figures of a campaign."""
    kills = Counter(point for result in results for point in result.killed_at)
    failed = [result for result in results if result.problems]
    seconds = sorted(result.seconds for result in results)
    return [
        f"{len(results)} runs, {sum(result.events for result in results):,} messages, {kills.total()} kills, "
        f"{sum(result.repeated for result in results)} lines repeated, {len(failed)} runs with problems",
        "kills by point: "
        + ", ".join(f"{point} {kills[point]}" for point in POINTS)
        + f", anywhere {kills.total() - sum(kills[point] for point in POINTS)}",
        f"a run took {seconds[len(seconds) // 2]:.1f} s (median), {seconds[-1]:.1f} s at most",
    ]


async def _main(seeds: Sequence[int], jobs: int, console: Console) -> int:
    results: list[Result] = []
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("crash runs", total=len(seeds))
        async for result in campaign([make_plan(seed) for seed in seeds], jobs):
            results.append(result)
            progress.advance(bar)
            for problem in result.problems:
                progress.console.print(f"seed {result.seed}: {problem}", soft_wrap=True, markup=False, highlight=False)
    for line in report(results):
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    if len(seeds) == 1:
        console.print("\n".join(results[0].log), soft_wrap=True, markup=False, highlight=False)
    return int(any(result.problems for result in results))


def main() -> int:
    """Read the arguments, run, print; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.run", description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="how many runs (default: 200)")
    parser.add_argument("--seed", type=int, default=0, help="the first run's seed (default: 0)")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default: 2)")
    given = parser.parse_args()
    seeds = range(given.seed, given.seed + given.runs)
    return asyncio.run(_main(seeds, max(1, min(given.jobs, given.runs)), Console()))


if __name__ == "__main__":
    sys.exit(main())
