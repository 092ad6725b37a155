"""`python -m tests.planted [NAME…]`: the exit code is 0 only if a quick test finds every bug."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from tests.planted.bugs import BUGS, Bug
from tests.planted.sown import sow

ROOT: Final = Path(__file__).resolve().parents[2]
_PATIENCE: Final = 900.0  # seconds for a run of pytest
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", re.MULTILINE)
_TESTS_FAILED: Final = 1  # pytest's exit code; others mean that the tests did not run
_stamps = count(1_000_000_000)  # seconds; bytecode is known to be old by its source's time stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The fate of a bug: the test that found it, or the fault of its entry, and the seconds that it took."""

    bug: Bug
    found_by: str = ""
    wrong: str = ""
    seconds: float = 0.0


class Copy:
    """A copy of the tree to put bugs into."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".*", "build", "dist", "__pycache__"))

    def tested(self, *tests: str) -> tuple[int, str]:
        """Run tests: pytest's exit code, and what it printed."""
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-m", "not slow", *tests],
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
        return done.returncode, done.stdout

    def tried(self, bug: Bug) -> Finding:
        """Put the bug in, run the tests that must find it, and take it out. The test that found it passes then."""
        began = time.monotonic()
        try:
            with self._planted(bug):
                status, said = self.tested(*bug.tests)
            failed = _FAILED.search(said)
            sound = failed is not None and self.tested(failed[1])[0] == 0
        except ValueError as error:
            return Finding(bug=bug, wrong=str(error))
        except subprocess.TimeoutExpired:
            if bug.sown:
                return Finding(bug=bug, found_by="its endless run")
            return Finding(bug=bug, wrong=f"the tests did not end within {_PATIENCE:g} seconds")
        seconds = time.monotonic() - began
        if status == 0:
            return Finding(bug=bug, wrong="no test found it", seconds=seconds)
        if bug.sown and (status != _TESTS_FAILED or failed is None):
            return Finding(bug=bug, found_by="the end of the run", seconds=seconds)
        if status != _TESTS_FAILED or failed is None:
            return Finding(bug=bug, wrong=f"the tests did not run:\n{said[-2_000:]}", seconds=seconds)
        if not sound:
            wrong = f"{failed[1]} fails without the bug, so it proves nothing"
            return Finding(bug=bug, wrong=wrong, seconds=seconds)
        return Finding(bug=bug, found_by=failed[1], seconds=seconds)

    @contextmanager
    def _planted(self, bug: Bug) -> Iterator[None]:
        path = self._folder / bug.file
        sound = path.read_text(encoding="utf-8") if path.exists() else ""
        if sound.count(bug.old) != 1:
            raise ValueError(
                f"{bug.file} holds this {sound.count(bug.old)} times and not once, so the source has changed: "
                f"say in tests/planted/bugs.py what to replace now\n{bug.old}"
            )
        _write(path, sound.replace(bug.old, bug.new))
        try:
            yield
        finally:
            _write(path, sound)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    stamp = next(_stamps)
    os.utime(path, (stamp, stamp))


def main() -> int:
    """Try the bugs, say what found them; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="bugs of the table (default: all)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="bugs at a time")
    parser.add_argument("--sown", type=int, metavar="NUMBER", help="so many bugs made by rule, in place of the table")
    parser.add_argument("--seed", type=int, default=1, help="of these (default: %(default)s)")
    given = parser.parse_args()
    table = sow(ROOT, given.sown, given.seed) if given.sown else BUGS
    if unknown := set(given.names) - {bug.name for bug in table}:
        parser.error(f"the table has no {', '.join(sorted(unknown))}; it has: {', '.join(bug.name for bug in table)}")
    bugs = [bug for bug in table if not given.names or bug.name in given.names]
    with tempfile.TemporaryDirectory(prefix="legato-planted-") as folder:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(min(given.jobs, len(bugs))):
            copies.put(Copy(Path(folder) / str(number)))

        def tried(bug: Bug) -> Finding:
            copy = copies.get()
            try:
                return copy.tried(bug)
            finally:
                copies.put(copy)

        missed = 0
        with ThreadPoolExecutor(given.jobs) as pool:
            for finding in pool.map(tried, bugs):
                missed += bool(finding.wrong)
                told = finding.wrong or f"found by {finding.found_by}"
                verdict = "MISSED" if finding.wrong else "found"
                print(f"{verdict:<7}{finding.bug.name} ({finding.seconds:.0f} s): {told}", flush=True)
                if finding.wrong and finding.bug.sown:
                    print(f"{finding.bug.old}\n->\n{finding.bug.new}\n{' '.join(finding.bug.tests)}", flush=True)
    print(f"{len(bugs) - missed} of {len(bugs)} bugs were found")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
