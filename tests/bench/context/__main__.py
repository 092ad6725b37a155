"""Lead some conversations of returning customers through every policy and print what is kept: see `drive`.

With `--delegated` it prints what helpers spare a conversation.
With `--coding` it prints what is kept of runs of agents that work on code: see `coding` and `swe`.
With `--airline` it prints which ids are in view that an airline's desk needs: see `airline`.
With `--chapters` it prints whether a chapter leads to what was said at the beginning: see `opened`.
With `--states` it prints what is in view of things whose state changes: see `states`.
With `--drift` it prints what is left of the first hour of a conversation: see `drift`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from gateway.runtime.tokens import TokenCounter
from tests.bench import table
from tests.bench.context import airline, coding, delegated, drift, drive, opened, states, swe
from tests.bench.context.archive import Hits, searched
from tests.bench.context.customers import LENGTH, write
from tests.bench.context.sheet import Sheet, render

ROWS = {16_000: 5, 32_000: 8, 128_000: 20}  # by window: how long lists and answers are
SEEDS = "1"
Job = tuple[int, int]  # window, seed


def main() -> None:
    """Run what the command line names."""
    given = _arguments()
    if given.drift:
        print(*drift.render(drift.measure(given.seeds, min(given.windows), given.talk)), sep="\n")
        return
    if given.states:
        for path in (states.STATES, states.UNSEEN, states.HELD_OUT):
            print(
                path.stem, *states.render(states.measure(path, min(given.windows), given.seeds)), sep="\n", flush=True
            )
        return
    if given.chapters:
        window = min(given.windows)
        for seed in given.seeds:
            rows = asyncio.run(opened.measure(seed, window, TokenCounter()))
            print(table.render(f"Found by one call / by two, window {window:,}", rows), flush=True)
        return
    if given.coding:
        counter = TokenCounter()
        for module, packages in ((coding, coding.PACKAGES), (swe, swe.UNSEEN)):
            works = [module.run(package, seed, counter, coding.STEPS) for seed, package in enumerate(packages)]
            print(module.__name__.rpartition(".")[2])
            for line in coding.render(works, given.windows, counter):
                print(line, flush=True)
        return
    if given.airline:
        counter = TokenCounter()
        for window in sorted(given.windows):
            works = [airline.run(seed, counter, airline.TASKS * window // 16_000) for seed in given.seeds]
            print(*coding.render(works, [window], counter), sep="\n", flush=True)
        return
    if given.delegated:
        counter = TokenCounter()
        for window in sorted(given.windows):
            lives = [write(seed, drive.span_of(window), counter, rows=ROWS.get(window, 10)) for seed in given.seeds]
            print(*delegated.render(lives, window, counter), sep="\n", flush=True)
        return
    names = given.policies or [policy.name for policy in drive.POLICIES]
    length = LENGTH / 3 if given.quick else LENGTH
    jobs = [(window, seed) for window in sorted(given.windows, reverse=True) for seed in given.seeds]
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        pending = {job: pool.submit(_one, job, names, length) for job in jobs}
        sheets: dict[int, list[Sheet]] = {}
        for number, (job, future) in enumerate(pending.items(), 1):
            sheets.setdefault(job[0], []).append(future.result())
            print(f"\r{number} of {len(jobs)} conversations", end="", file=sys.stderr, flush=True)
    print("\r" + " " * 30, end="\r", file=sys.stderr)
    for window in sorted(sheets):
        print(render(window, sheets[window]), end="\n\n")


def _one(job: Job, names: Sequence[str], length: float) -> Sheet:
    window, seed = job
    counter = TokenCounter()
    life = write(seed, drive.span_of(window), counter, length=length, rows=ROWS.get(window, 10))
    found: Mapping[tuple[int, int], Hits] = asyncio.run(searched(life))
    return Sheet(
        seed=seed,
        messages=len(life.messages),
        tokens=drive.size_of(life.messages),
        records=drive.run(life, names, window, counter),
        found={where: hits.shown for where, hits in found.items()},
    )


def seeds(text: str) -> list[int]:
    """`3` or `1-8`."""
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.context", description="Measure what context engines keep, without a model."
    )
    names = [policy.name for policy in drive.POLICIES]
    known = "; ".join(names)  # a name may have a comma in it
    parser.add_argument("policies", nargs="*", metavar="policy", help=f"any of: {known}")
    parser.add_argument(
        "--seeds", type=seeds, default=seeds(SEEDS), help="conversations, as 1-8 (default: %(default)s)"
    )
    parser.add_argument("--windows", type=int, nargs="+", default=list(ROWS), help="in tokens (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="conversations a third as long")
    parser.add_argument("--chapters", action="store_true", help="chapters and what they lead to")
    parser.add_argument("--drift", action="store_true", help="what is left of the first hour, on the smallest window")
    parser.add_argument("--states", action="store_true", help="the last state of things that change")
    parser.add_argument("--coding", action="store_true", help="what is kept of an agent's work on code")
    parser.add_argument("--airline", action="store_true", help="which ids are in view at an airline's desk")
    parser.add_argument("--delegated", action="store_true", help="what helpers spare a conversation")
    parser.add_argument(
        "--talk", type=Path, default=drift.TALK, help="what is said in it, as tests/bench/context/talk.yaml"
    )
    given = parser.parse_args()
    if unknown := [name for name in given.policies if name not in names]:
        parser.error(f"there is no policy {'; '.join(unknown)}; take any of: {known}")
    return given


if __name__ == "__main__":
    main()
