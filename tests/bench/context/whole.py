"""Replays conversations of one steady stream through a whole gateway, with summarisers of every sort, and prints what
was kept and what it cost."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import structlog

from gateway.runtime.tokens import TokenCounter
from tests.bench.context.figures import summed
from tests.bench.context.observing import Record
from tests.bench.context.policies import POLICIES, WINDOW
from tests.bench.context.replay import replay
from tests.bench.context.report import JUDGED, Run, render
from tests.bench.context.summarisers import NAMES, SECONDS
from tests.bench.context.trace import write

TURNS, SEEDS = 400, 2
QUICK_TURNS, QUICK_SEEDS = 160, 1
QUICK_SUMMARISERS = ("oracle", "extractive", "empty", "hanging")


def main(policies: Sequence[str], *, quick: bool) -> None:
    """Replay what the command line names; no policies: all of them."""
    unknown = [name for name in policies if name not in POLICIES]
    if unknown:
        sys.exit(f"There is no policy {', '.join(unknown)}; there are: {', '.join(POLICIES)}.")
    turns, count = (QUICK_TURNS, QUICK_SEEDS) if quick else (TURNS, SEEDS)
    seeds = range(1, 1 + count)
    runs = list(_runs(policies or list(POLICIES), QUICK_SUMMARISERS if quick else NAMES))
    records = _replayed(runs, seeds, turns)
    needed = sum(len(record.needs) for record in records[runs[0]])
    title = (
        f"{count} conversation{'s' if count > 1 else ''} of {turns} turns (seed {', '.join(map(str, seeds))}) in a "
        f"window of {WINDOW:,} tokens; {needed} values are needed again long after they were said.\n"
        f"A summariser takes {SECONDS:.0f} s; a person takes 5 s to 4 min before they say the next thing."
    )
    figures = {run: summed(each) for run, each in records.items()}
    print(render(title, figures, records.get(JUDGED, [])), end="")


def _runs(policies: Sequence[str], summarisers: Sequence[str]) -> Iterator[Run]:
    for name in policies:
        yield from ((name, each) for each in (summarisers if POLICIES[name].summarises else ("",)))


def _replayed(runs: Sequence[Run], seeds: Sequence[int], turns: int) -> dict[Run, list[Record]]:
    """Every run over every seed, as many at a time as there are processors."""
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        pending = {run: [pool.submit(_one, run, seed, turns) for seed in seeds] for run in runs}
        records = {}
        for number, (run, futures) in enumerate(pending.items(), 1):
            records[run] = [future.result() for future in futures]
            print(f"\r{number} of {len(runs)} replayed", end="", file=sys.stderr, flush=True)
    print("\r" + " " * 24, end="\r", file=sys.stderr)
    return records


def _one(run: Run, seed: int, turns: int) -> Record:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))  # what fails here, fails on purpose
    policy, summariser = run
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(replay(write(seed, turns), POLICIES[policy], summariser, Path(folder), TokenCounter()))
