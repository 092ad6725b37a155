"""Which quick tests run which line of the program, and how long each takes: one run of all of them under coverage.

`pytest -p tests.planted.chart` records it in the folder that CHART_OF_TESTS names. What a program does that a test
starts in a process of its own is not seen.
"""

from __future__ import annotations

import ast
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Final

import coverage
import pytest

FOLDER: Final = "CHART_OF_TESTS"
SOURCES: Final = ("gateway", "adapters")
_NAMES: Final = {"web": "page"}  # of platforms, in the names of tests
_MOST_SECONDS: Final = 20.0  # of the nearest tests that are tried for one bug, and of the others
_MOST_FILES: Final = 4
_SHOWN: Final = pytest.StashKey[tuple[coverage.Coverage, dict[str, float]]]()


def pytest_configure(config: pytest.Config) -> None:
    """Record in each process that runs tests."""
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        data = Path(os.environ[FOLDER]) / "data"
        found = coverage.Coverage(data_file=data, data_suffix=True, config_file=False, source=SOURCES)
        found.set_option("run:relative_files", value=True)
        found.start()
        config.stash[_SHOWN] = found, {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Name the test to whose account the lines go."""
    if (recording := item.config.stash.get(_SHOWN, None)) is None:
        return (yield)
    found, seconds = recording
    found.switch_context(item.nodeid)
    began = time.perf_counter()
    try:
        return (yield)
    finally:
        seconds[item.nodeid] = time.perf_counter() - began
        found.switch_context("")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Keep it."""
    if (recording := config.stash.get(_SHOWN, None)) is not None:
        found, seconds = recording
        found.stop()
        found.save()
        (Path(os.environ[FOLDER]) / f"seconds.{os.getpid()}.json").write_text(json.dumps(seconds))


def folders(file: str) -> tuple[str, ...]:
    """Where the tests nearest to a file stand: in the folder of its room, and the suites of the ports."""
    top, room = file.split("/")[:2]
    return f"tests/unit/{room if top == 'gateway' else top}/", "tests/contract/"


class Chart:
    """What the run recorded in `folder`."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root, self._folder = root, folder
        self._data = coverage.CoverageData(str(folder / "data"))
        if found := [*folder.glob("data.*")]:
            coverage.Coverage(data_file=folder / "data", config_file=False).combine(map(str, found))
        self._data.read()

    def tests(self, file: str, line: int) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """The tests that run a line: those nearest to it, with each file there that was changed since; and some of
        the others, the quickest of each file first, and first those that bear the name of the file, its room or its
        platform. Last, if none runs it, the files of tests that bear the file's name: some start programs."""
        near, others = [], defaultdict(list)
        for test in (running := self._running(file, line)):
            if test.startswith(folders(file)):
                near.append(test)
            else:
                others[test.partition("::")[0]].append(test)
        near = [*(test for test in self._changed if test.startswith(folders(file))), *near]
        room = file.split("/")[1]
        names = tuple(f"test_{name}" for name in (_NAMES.get(room, room), Path(file).stem))
        rounds = zip_longest(
            *(others[each] for each in sorted(others, key=lambda test: not any(n in test for n in names)))
        )
        far = (test for each in rounds for test in each if test)
        named = () if running else sorted(self._root.glob(f"tests/**/test_*{Path(file).stem}*.py"))[:_MOST_FILES]
        return (
            tuple(self._affordable(near)),
            tuple(self._affordable(far)),
            tuple(str(each.relative_to(self._root)) for each in named),
        )

    def _affordable(self, tests: Iterable[str]) -> Iterator[str]:
        spent = 0.0
        for test in tests:
            if (spent := spent + self._seconds[test]) > _MOST_SECONDS:
                break
            yield test

    def _running(self, file: str, line: int) -> list[str]:
        """The tests that run the statement at a line of today's file, the quickest first."""
        source = (self._root / file).read_text(encoding="utf-8")
        began = max((each.lineno for each in ast.walk(ast.parse(source)) if _holds(each, line)), default=line)
        then = (self._folder / "source" / file).read_text(encoding="utf-8")
        text = "\n".join(source.splitlines()[began - 1 : line])
        first = then.count("\n", 0, max(then.find(text), 0)) + 1
        known = self._data.contexts_by_lineno(file)
        lines = range(first, first + 1 + line - began)
        tests = {each for at in lines for each in known.get(at, ()) if each}  # "": as it is imported
        return sorted(tests, key=self._seconds.__getitem__)

    @cached_property
    def _seconds(self) -> dict[str, float]:
        found: dict[str, float] = defaultdict(float)
        for path in self._folder.glob("seconds.*.json"):
            found.update(json.loads(path.read_text(encoding="utf-8")))
        return found

    @cached_property
    def _changed(self) -> list[str]:
        """The files of tests that were written or changed since."""
        made = max(each.stat().st_mtime for each in self._folder.glob("seconds.*.json"))
        tests = sorted(self._root.glob("tests/**/test_*.py"))
        return [str(path.relative_to(self._root)) for path in tests if path.stat().st_mtime > made]


def _holds(node: ast.AST, line: int) -> bool:
    return isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
