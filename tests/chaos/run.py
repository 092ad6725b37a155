"""`python -m tests.chaos.run KIND --runs 200 [--seed N]`: many crash runs, and what they found.

Of the kind `sqlite` a run is one process that is killed and started again; of `redis` it is several, beside a server
that fails, too; in both a platform and a model fail with them. Runs use the seeds N, N+1, …; the first that fails is
carried out again with less and less in it, and the shortest schedule that still fails is printed. `--runs 1 -v` shows a
run as it went. The exit code is 0 only if every run kept every promise.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from gateway.runtime.logs import configure_logs
from gateway.runtime.redaction import Redactor
from tests.chaos.campaign import Laboratory, campaign
from tests.chaos.discord import laboratory as discord
from tests.chaos.discord import script as discord_script
from tests.chaos.fleet_run import fleet_report, fleets
from tests.chaos.hands import laboratory as hands
from tests.chaos.hands import script as handed
from tests.chaos.matrix import laboratory as matrix
from tests.chaos.matrix import script as matrix_script
from tests.chaos.page import laboratory as page
from tests.chaos.page import script as page_script
from tests.chaos.reminders import laboratory as reminders
from tests.chaos.reminders import script as reminded
from tests.chaos.schedule import make_schedule
from tests.chaos.script import make_plan
from tests.chaos.shrink import Shrinking
from tests.chaos.single_run import benches, report
from tests.chaos.slack import laboratory as slack
from tests.chaos.slack import script as slack_script
from tests.chaos.telegram import laboratory as telegram
from tests.chaos.telegram import script as telegram_script
from tests.chaos.whatsapp import laboratory as whatsapp
from tests.chaos.whatsapp import script as whatsapp_script


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of runs: how a seed becomes a schedule and that a result, what the results come to, which
    tuples of a schedule can be shortened, and how many go side by side."""

    drawn: Callable[[int], Any]
    laboratory: Laboratory[Any, Any]
    report: Callable[[Sequence[Any]], list[str]]
    parts: tuple[str, ...]
    jobs: int


def _reminders(store: reminded.StoreName) -> Kind:
    return Kind(
        drawn=partial(reminded.make_plan, store=store),
        laboratory=partial(reminders.benches, store),
        report=reminders.report,
        parts=("kills", "planted"),
        jobs=2,
    )


def _hands(store: handed.StoreName) -> Kind:
    return Kind(
        drawn=partial(handed.make_plan, store=store),
        laboratory=partial(hands.laboratories, store),
        report=hands.report,
        parts=("kills", "said"),
        jobs=3,
    )


def _bot(laboratory: Any, drawn: Callable[[int], Any]) -> Kind:
    parts = ("kills", "faults", "said")
    return Kind(drawn=drawn, laboratory=laboratory.laboratories, report=laboratory.report, parts=parts, jobs=4)


_PARTS: Final = ("kills", "faults", "updates", "lines")
KINDS: Final = {
    "sqlite": Kind(drawn=make_plan, laboratory=benches, report=report, parts=_PARTS, jobs=2),
    "redis": Kind(drawn=make_schedule, laboratory=fleets, report=fleet_report, parts=("faults", "said"), jobs=3),
    "reminders-sqlite": _reminders("sqlite"),
    "reminders-redis": _reminders("redis"),
    "hands-sqlite": _hands("sqlite"),
    "hands-redis": _hands("redis"),
    "telegram": _bot(telegram, telegram_script.make_schedule),
    "discord": _bot(discord, discord_script.make_schedule),
    "slack": _bot(slack, slack_script.make_schedule),
    "matrix": _bot(matrix, matrix_script.make_schedule),
    "whatsapp": _bot(whatsapp, whatsapp_script.make_schedule),
    "page": Kind(
        drawn=page_script.make_schedule,
        laboratory=page.laboratories,
        report=page.report,
        parts=("kills", "said"),
        jobs=3,
    ),
}


async def _shortest(kind: Kind, seed: int, said: Console) -> list[str]:
    """The shortest schedule that still fails, as lines, and what is wrong with its last run."""
    problems: list[str] = []
    async with kind.laboratory() as perform:

        async def fails(schedule: Any) -> bool:
            result = await perform(schedule)
            said.print(f"  {'fails' if result.problems else 'holds'}", end="\r")
            problems[:] = result.problems or problems
            return bool(result.problems)

        found = await Shrinking(fields=kind.parts, fails=fails).shortest(kind.drawn(seed))
    return [*found.described(), *problems]


async def conduct(
    name: str, kind: Kind, seeds: Sequence[int], jobs: int, *, verbose: bool = False, shrinks: bool = False
) -> int:
    """Run all seeds and print what they found; the exit code."""
    console = Console(soft_wrap=True, markup=False, highlight=False)
    results: list[Any] = []
    failed = 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task(f"crash runs on {name}", total=len(seeds))
        async for result in campaign(map(kind.drawn, seeds), kind.laboratory, jobs):
            results.append(result)
            failed += bool(result.problems)
            progress.update(bar, advance=1, description=f"crash runs on {name}, {failed} with problems")
            for problem in result.problems:
                progress.console.print(f"seed {result.seed}: {problem}")
            if result.problems:
                progress.console.print(f"seed {result.seed}: as it went: {_kept(name, result)}")
    for line in kind.report(results):
        console.print(line)
    bad = [result for result in results if result.problems]
    if verbose and results:
        shown = (bad or results)[0]
        console.print("\n".join([*shown.described(), *shown.log]))
    if bad and shrinks:
        console.print(f"looking for the shortest schedule of seed {bad[0].seed} that fails …")
        for line in await _shortest(kind, bad[0].seed, console):
            console.print(line)
    return int(bool(bad))


def _kept(name: str, result: Any) -> Path:
    """A file that says how a run went: another with the same seed goes a little differently."""
    path = Path(tempfile.gettempdir()) / f"legato-chaos-{name}-{result.seed}.txt"
    path.write_text("\n".join([*result.problems, *result.described(), *result.log, ""]))
    return path


def main() -> int:
    """Read the arguments, run, print; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.run", description=__doc__)
    parser.add_argument("kind", choices=sorted(KINDS), nargs="?", default="sqlite", help="default: sqlite")
    parser.add_argument("--runs", type=int, default=200, help="how many runs (default: 200)")
    parser.add_argument("--seed", type=int, default=0, help="the first run's seed (default: 0)")
    parser.add_argument("--jobs", type=int, help="runs at a time")
    parser.add_argument("--no-shrink", action="store_true", help="leave failing schedules as long as they are")
    parser.add_argument("-v", "--verbose", action="store_true", help="show the first run that failed, else the first")
    given = parser.parse_args()
    configure_logs(level="error", form="console", redact=Redactor(()))  # the laboratory's own, as it reads a store
    kind, seeds = KINDS[given.kind], range(given.seed, given.seed + given.runs)
    jobs = max(1, min(given.jobs or kind.jobs, given.runs))
    shrinks = not given.no_shrink
    return asyncio.run(conduct(given.kind, kind, seeds, jobs, verbose=given.verbose, shrinks=shrinks))


if __name__ == "__main__":
    sys.exit(main())
