"""`python -m tests.planted [NAME…]`: the exit code is 0 only if a quick test finds every bug."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from tests.planted.bugs import BUGS, Bug
from tests.planted.chart import FOLDER, SOURCES, Chart, folders
from tests.planted.sown import sow
from tests.planted.trial import ENDLESS, TRIALS

ROOT: Final = Path(__file__).resolve().parents[2]
CHART: Final = ROOT / "build" / "planted"
_PATIENCE: Final = 900.0  # seconds for a run of pytest
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", re.MULTILINE)
_TESTS_FAILED, _NO_TESTS, _PASSED = 1, 5, (0, 5)  # pytest's exit codes; others mean that the tests did not run
_stamps = count(1_000_000_000)  # seconds; bytecode is known to be old by its source's time stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The fate of a bug: the test that found it, or the fault of its entry, and the seconds that it took."""

    bug: Bug
    found_by: str = ""
    wrong: str = ""
    is_near: bool = True
    seconds: float = 0.0


class Copy:
    """A copy of the tree to put bugs into."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".*", "build", "dist", "__pycache__"))

    def tested(self, *tests: str) -> tuple[int, str]:
        """Run tests: pytest's exit code, and what it printed."""
        if not tests:
            return _NO_TESTS, ""
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

    def sorted_out(self, bugs: Sequence[Bug], *, near: bool) -> dict[str, Finding]:
        """What the nearest tests find of sown bugs, or what the others do, within one run of pytest; by name."""
        tests = [bug.near if near else bug.others for bug in bugs]
        trials = self._folder / "trials.jsonl"
        given = [
            {"file": bug.file, "old": bug.old, "new": bug.new, "tests": own}
            for bug, own in zip(bugs, tests, strict=True)
        ]
        trials.write_text("".join(f"{json.dumps(each)}\n" for each in given), encoding="utf-8")
        files = sorted({test.partition("::")[0] for own in tests for test in own})
        subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "tests.planted.trial", f"--basetemp={self._folder}/tmp", *files],
            cwd=self._folder,
            env={**os.environ, TRIALS: str(trials)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=False,
        )
        results = trials.with_suffix(".results").read_text(encoding="utf-8").splitlines()
        found = [
            Finding(bug=bug, found_by=json.loads(line), is_near=near) for bug, line in zip(bugs, results, strict=True)
        ]
        return {each.bug.name: each for each in found if each.found_by}

    def tried(self, bug: Bug) -> Finding:
        """Put the bug in, run the tests that must find it, and take it out. What failed passes then."""
        began = time.monotonic()
        try:
            with self._planted(bug):
                status, said = self.tested(*bug.tests)
            failed = _FAILED.search(said)
            by = failed[1] if failed else "the end of the run"
            sound = status in _PASSED or self.tested(*([failed[1]] if failed else bug.tests))[0] in _PASSED
        except ValueError as error:
            return Finding(bug=bug, wrong=str(error))
        except subprocess.TimeoutExpired:
            if bug.sown:
                return Finding(bug=bug, found_by=ENDLESS, is_near=False)
            return Finding(bug=bug, wrong=f"the tests did not end within {_PATIENCE:g} seconds")
        wrong = ""
        if status in _PASSED:
            wrong = "no test found it"
        elif status != _TESTS_FAILED and not bug.sown:
            wrong = f"the tests did not run:\n{said[-2_000:]}"
        elif not sound:
            wrong = f"{by} fails without the bug, so it proves nothing"
        is_near = not bug.sown or by.startswith(folders(bug.file))
        return Finding(bug=bug, found_by=by, wrong=wrong, is_near=is_near, seconds=time.monotonic() - began)

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


def chart(jobs: int) -> None:
    """Run all quick tests once, and keep which of them ran which line."""
    shutil.rmtree(CHART, ignore_errors=True)
    for each in SOURCES:
        shutil.copytree(ROOT / each, CHART / "source" / each, ignore=shutil.ignore_patterns("__pycache__"))
    command = (sys.executable, "-m", "pytest", "-p", "tests.planted.chart", "--numprocesses", str(jobs))
    subprocess.run(command, cwd=ROOT, env={**os.environ, FOLDER: str(CHART)}, check=False)


def main() -> int:
    """Try the bugs, say what found them; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="bugs of the table (default: all)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="bugs at a time")
    parser.add_argument("--sown", type=int, metavar="NUMBER", help="so many bugs made by rule, in place of the table")
    parser.add_argument("--seed", type=int, default=1, help="of these (default: %(default)s)")
    parser.add_argument("--chart", action="store_true", help="look again which test runs which line, for --sown")
    given = parser.parse_args()
    if given.chart or (given.sown and not CHART.exists()):
        chart(given.jobs)
    table = sow(ROOT, Chart(ROOT, CHART), given.sown, given.seed) if given.sown else BUGS
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
                return known.get(bug.name) or copy.tried(bug)
            finally:
                copies.put(copy)

        known: dict[str, Finding] = {}
        if given.sown:
            copy = copies.get()
            for near in (True, False):
                known |= copy.sorted_out([bug for bug in bugs if bug.name not in known], near=near)
            copies.put(copy)
        missed = nearest = 0
        with ThreadPoolExecutor(given.jobs) as pool:
            for finding in pool.map(tried, bugs):
                missed += bool(finding.wrong)
                nearest += not finding.wrong and finding.is_near
                told = finding.wrong or f"found by {finding.found_by}"
                verdict = "MISSED" if finding.wrong else "found"
                print(f"{verdict:<7}{finding.bug.name} ({finding.seconds:.0f} s): {told}", flush=True)
                if finding.wrong and finding.bug.sown:
                    print(finding.bug.old, "->", finding.bug.new, sep="\n", flush=True)
    print(f"{len(bugs) - missed} of {len(bugs)} bugs were found, {nearest} by the tests nearest to them")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
