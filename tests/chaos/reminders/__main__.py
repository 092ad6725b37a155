"""The program of the laboratory: `python -m tests.chaos.reminders --store redis --seed N --runs N [--jobs N] [-v]`.

Runs use the seeds N, N+1, …; the exit code is 0 only if every reminder of every run fired once and was shown once.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial

from tests.chaos.reminders.laboratory import benches, report
from tests.chaos.reminders.script import make_plan
from tests.chaos.run import Kind, add_arguments, start


def main() -> int:
    """Read the arguments, run, print; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.reminders", description=__doc__)
    parser.add_argument("--store", choices=("sqlite", "redis"), default="sqlite", help="default: sqlite")
    add_arguments(parser)
    given = parser.parse_args()
    kind = Kind(
        drawn=partial(make_plan, store=given.store),
        laboratory=partial(benches, given.store),
        report=report,
        parts=("kills", "planted"),
        jobs=2,
    )
    return start(f"reminders on {given.store}", kind, given)


if __name__ == "__main__":
    sys.exit(main())
