"""Run the benches named on the command line, or all of them."""

from __future__ import annotations

import argparse
import asyncio
import importlib

from gateway.runtime.heap import collect_seldom
from tests.bench import figures
from tests.bench.table import kept, render
from tests.bench.world import log_as_in_production

BENCHES = (
    "throughput",
    "loopback",
    "wires",
    "commits",
    "transcript",
    "compaction",
    "start",
    "weight",
    "decide",
    "redis",
    "crowd",
    "takeover",
    "telegram",
    "platforms",
    "matrix",
    "tools",
    "reminders",
    "doors",
    "page",
    "voice",
)


def main() -> None:
    """Print one table a bench."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure, and print the figures.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"any of: {', '.join(BENCHES)}")
    parser.add_argument("--write", action="store_true", help="keep the ratios for docs/performance.md")
    given = parser.parse_args()
    names = given.names or BENCHES
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        parser.error(f"there is no bench {', '.join(unknown)}; there are: {', '.join(BENCHES)}")
    collect_seldom()
    log_as_in_production()
    for name in names:
        bench = importlib.import_module(f"tests.bench.{name}")
        rows = asyncio.run(bench.measure())
        print(render(bench.TITLE, rows), flush=True)
        if given.write and (found := kept(rows)):
            figures.keep(name, found)


if __name__ == "__main__":
    main()
