"""The program of the laboratory: `python -m tests.chaos.discord --seed N --runs N [--jobs N] [-v]`.

Runs use the seeds N, N+1, …; the first that fails is carried out again with less and less in it, and the shortest
schedule that still fails is printed. The exit code is 0 only if every run kept every promise.
"""

from __future__ import annotations

import argparse
import sys
from typing import Final

from tests.chaos.discord.laboratory import laboratories, report
from tests.chaos.discord.script import make_schedule
from tests.chaos.run import Kind, add_arguments, start

DISCORD: Final = Kind(
    drawn=make_schedule, laboratory=laboratories, report=report, parts=("kills", "faults", "said"), jobs=4
)


def main() -> int:
    """Read the arguments, run, print; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.discord", description=__doc__)
    add_arguments(parser)
    return start("discord", DISCORD, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
