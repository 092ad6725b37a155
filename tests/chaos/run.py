"""`python -m tests.chaos.run --runs 200 [--seed N] [--store sqlite|redis]`: many crash runs, and what they found.

On SQLite a run is one process that is killed and started again; on Redis it is several, beside a server,
a platform and a model that fail, too. Runs use the seeds N, N+1, …; the first that fails is carried out
again with less and less in it, and the shortest schedule that still fails is printed. `--runs 1 -v` shows
a run as it went. The exit code is 0 only if every run kept every promise.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from gateway.redaction import Redactor
from gateway.telemetry.logs import configure_logs
from tests.chaos.fleet import stage
from tests.chaos.fleet_run import fleet_campaign, fleet_report, perform
from tests.chaos.schedule import Schedule, make_schedule
from tests.chaos.script import Plan, make_plan
from tests.chaos.shrink import Shrinking
from tests.chaos.single_run import bench, campaign, report

JOBS = {"sqlite": 2, "redis": 3}


async def _runs(store: str, seeds: Sequence[int], jobs: int) -> AsyncIterator[Any]:
    if store == "redis":
        async for fleet_result in fleet_campaign(map(make_schedule, seeds), jobs):
            yield fleet_result
    else:
        async for result in campaign(map(make_plan, seeds), jobs):
            yield result


async def _shortest(store: str, seed: int, said: Console) -> list[str]:
    """The shortest schedule that still fails, as lines, and what is wrong with its last run."""
    problems: list[str] = []

    def judged(result: Any) -> bool:
        said.print(f"  {'fails' if result.problems else 'holds'}", end="\r")
        problems[:] = result.problems or problems
        return bool(result.problems)

    if store == "redis":
        async with stage() as one:

            async def fleet_fails(schedule: Schedule) -> bool:
                return judged(await perform(one, schedule))

            found = await Shrinking(fields=("faults", "said"), fails=fleet_fails).shortest(make_schedule(seed))
            return [*found.lines(), *problems]
    async with bench() as single:

        async def fails(plan: Plan) -> bool:
            return judged(await single.run(plan))

        plan = await Shrinking(fields=("kills", "lines"), fails=fails).shortest(make_plan(seed))
        return [*plan.described(), *problems]


async def _main(store: str, seeds: Sequence[int], jobs: int, *, verbose: bool, shrinks: bool) -> int:
    console = Console(soft_wrap=True, markup=False, highlight=False)
    results: list[Any] = []
    failed = 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task(f"crash runs on {store}", total=len(seeds))
        async for result in _runs(store, seeds, jobs):
            results.append(result)
            failed += bool(result.problems)
            progress.update(bar, advance=1, description=f"crash runs on {store}, {failed} with problems")
            for problem in result.problems:
                progress.console.print(f"seed {result.seed}: {problem}")
            if result.problems:
                progress.console.print(f"seed {result.seed}: as it went: {_kept(store, result)}")
    for line in (fleet_report if store == "redis" else report)(results):
        console.print(line)
    bad = [result for result in results if result.problems]
    if verbose and results:
        shown = (bad or results)[0]
        console.print("\n".join([*_described(shown), *shown.log]))
    if bad and shrinks:
        console.print(f"looking for the shortest schedule of seed {bad[0].seed} that fails …")
        for line in await _shortest(store, bad[0].seed, console):
            console.print(line)
    return int(bool(bad))


def _kept(store: str, result: Any) -> Path:
    """A file that says how a run went: another with the same seed goes a little differently."""
    path = Path(tempfile.gettempdir()) / f"legato-chaos-{store}-{result.seed}.txt"
    path.write_text("\n".join([*result.problems, *_described(result), *result.log, ""]))
    return path


def _described(result: Any) -> list[str]:
    return result.plan.described() if hasattr(result, "plan") else result.schedule.lines()


def main() -> int:
    """Read the arguments, run, print; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.run", description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="how many runs (default: 200)")
    parser.add_argument("--seed", type=int, default=0, help="the first run's seed (default: 0)")
    parser.add_argument("--store", choices=("sqlite", "redis"), default="sqlite", help="default: sqlite")
    parser.add_argument("--jobs", type=int, help="runs at a time (default: 2 on SQLite, 3 on Redis)")
    parser.add_argument("--no-shrink", action="store_true", help="leave failing schedules as long as they are")
    parser.add_argument("-v", "--verbose", action="store_true", help="show the first run that failed, else the first")
    given = parser.parse_args()
    configure_logs(level="error", form="console", redact=Redactor(()))  # the laboratory's own, as it reads a store
    seeds = range(given.seed, given.seed + given.runs)
    jobs = max(1, min(given.jobs or JOBS[given.store], given.runs))
    return asyncio.run(_main(given.store, seeds, jobs, verbose=given.verbose, shrinks=not given.no_shrink))


if __name__ == "__main__":
    sys.exit(main())
