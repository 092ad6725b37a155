"""Talk one conversation through at three rhythms under every way, and print what each costs: `make bench-cost`."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from statistics import mean
from typing import Any, Final

import structlog

from gateway.app.plugins import providers
from gateway.providers.catalog import PriceTable
from gateway.runtime.tokens import TokenCounter
from tests.bench.context.figures import summed
from tests.bench.context.sheet import aligned
from tests.bench.cost.talk import RHYTHMS, talk
from tests.bench.cost.ways import MODEL, WAYS
from tests.bench.figures import keep
from tests.bench.peers.__main__ import THEIR_PYTHON

WINDOWS: Final = (32_000, 200_000)
TURNS: Final = 200
SEEDS: Final = (1, 2)
Job = tuple[int, str, str, int, int]  # window, rhythm, way, seed, turns
_COLUMNS: Final = (
    "window", "rhythm", "way", "of hermes", "dollars", "for notes", "from cache", "in view", "or search", "prompt",
    "passes",
)  # fmt: skip


def main() -> None:
    """Run what the command line names."""
    given = _arguments()
    ways = given.ways or [name for name in WAYS if name != "hermes-agent" or THEIR_PYTHON.exists()]
    jobs: list[Job] = [
        (window, rhythm, way, seed, given.turns)
        for window in given.windows
        for rhythm in given.rhythms
        for way in ways
        for seed in given.seeds
    ]
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        done = _kept(given.resume)
        left = {pool.submit(_one, job): job for job in jobs if job not in done}
        for future in as_completed(left):
            done[left[future]] = future.result()
            if given.resume:
                with given.resume.open("a") as file:
                    file.write(json.dumps([left[future], future.result()]) + "\n")
            talked = sum(job in done for job in jobs)
            print(f"\r{talked} of {len(jobs)} conversations", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    rows = [
        _summed([done[window, rhythm, way, seed, given.turns] for seed in given.seeds])
        | {"window": window, "rhythm": rhythm, "way": way}
        for window in given.windows
        for rhythm in given.rhythms
        for way in ways
    ]
    print(f"{MODEL}, {given.turns} turns with tools, seeds {', '.join(map(str, given.seeds))}; prices of the list")
    print(render(rows))
    if "hermes-agent" not in ways:
        print("hermes-agent is not installed: `make bench-cost` installs it into build/peers.")
    if given.write:
        keep("spent", rows)


def _kept(path: Path | None) -> dict[Job, dict[str, Any]]:
    """The conversations that an earlier run wrote down. The last line of one that was cut off may be torn."""
    if path is None or not path.exists():
        return {}
    lines = path.read_text().split("\n")
    if lines[-1]:  # torn: what follows would join it
        path.write_text("".join(f"{line}\n" for line in lines[:-1]))
    return {(*job,): figures for job, figures in map(json.loads, lines[:-1])}


def _one(job: Job) -> dict[str, Any]:
    window, rhythm, way, seed, turns = job
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    counter = TokenCounter()
    prices = PriceTable(providers())
    with tempfile.TemporaryDirectory() as folder:
        record, bill, _ = asyncio.run(talk(seed, turns, WAYS[way], rhythm, window, Path(folder), counter, prices))
    figures = summed([record])
    return {
        "dollars": bill.dollars,
        "notes": bill.dollars_of_notes,
        "cached": bill.cached,
        "in_view": figures.in_view or 0.0,
        "found": figures.found or 0.0,
        "prompt": mean(bill.prompts),
        "passes": record.compactions,
    }


def _summed(figures: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {name: mean(each[name] for each in figures) for name in figures[0]}


def render(rows: Sequence[dict[str, Any]]) -> str:
    """The figures as a table; costs beside hermes-agent's at the same window and rhythm."""
    theirs = {(row["window"], row["rhythm"]): row["dollars"] for row in rows if row["way"] == "hermes-agent"}
    table = [list(_COLUMNS)]
    for row in rows:
        beside = theirs.get((row["window"], row["rhythm"]))
        table.append(
            [
                f"{row['window']:,}",
                row["rhythm"],
                row["way"],
                f"{row['dollars'] / beside:.2f}" if beside else "-",
                f"{row['dollars']:.2f}",
                f"{row['notes'] / row['dollars']:.0%}",
                f"{row['cached']:.0%}",
                f"{row['in_view']:.3f}",
                f"{row['found']:.3f}",
                f"{row['prompt']:,.0f}",
                f"{row['passes']:.1f}",
            ]
        )
    return aligned(table)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.cost", description="What long conversations cost.")
    parser.add_argument("ways", nargs="*", metavar="way", choices=[[], *WAYS], help=f"any of: {'; '.join(WAYS)}")
    parser.add_argument("--windows", type=int, nargs="+", default=list(WINDOWS))
    parser.add_argument("--rhythms", nargs="+", choices=list(RHYTHMS), default=list(RHYTHMS))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--write", action="store_true", help="keep the figures for docs/context.md")
    parser.add_argument(
        "--resume", type=Path, metavar="FILE", help="keep each conversation there; leave out what it has"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
