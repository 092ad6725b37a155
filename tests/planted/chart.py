"""Which quick tests run which line of the program, and how long each takes: one run of all of them under coverage.

`pytest -p tests.planted.chart` records it in the folder that CHART_OF_TESTS names, also of the programs that tests
start in processes of their own (`tests.support.forks`), unless these are killed.
"""

from __future__ import annotations

import ast
import json
import os
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from functools import cached_property
from itertools import islice, zip_longest
from pathlib import Path
from typing import Final, NoReturn, TypeGuard

import coverage
import pytest

from tests.support.forks import BEGIN

FOLDER: Final = "CHART_OF_TESTS"
SOURCES: Final = ("gateway", "adapters")
_NAMES: Final = {"web": "page"}  # of platforms, in the names of tests
_MOST_SECONDS: Final = 30.0  # of the nearest tests that are tried for one bug, and of the others
_MOST_FILES: Final = 4
_SHOWN: Final = pytest.StashKey[tuple[coverage.Coverage, dict[str, float]]]()


def pytest_configure(config: pytest.Config) -> None:
    """Record in each process that runs tests."""
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        os.environ[BEGIN] = f"{__name__}:in_program:{os.environ[FOLDER]}"
        config.stash[_SHOWN] = _recording(Path(os.environ[FOLDER])), {}


def _recording(folder: Path) -> coverage.Coverage:
    found = coverage.Coverage(data_file=folder / "data", data_suffix=True, config_file=False, source=SOURCES)
    found.set_option("run:relative_files", value=True)
    found.start()
    return found


def in_program(folder: str, test: str) -> None:
    """Record what this program does to the account of the test that started it."""
    found, leave = _recording(Path(folder)), os._exit
    found.switch_context(test)

    def end(status: int) -> NoReturn:
        found.stop()
        found.save()
        leave(status)

    os._exit = end  # by which each of them ends


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
        self._imports: dict[str, set[str]] = {}
        self._data = coverage.CoverageData(str(folder / "data"))
        if found := [*folder.glob("data.*")]:
            coverage.Coverage(data_file=folder / "data", config_file=False).combine(map(str, found))
        self._data.read()

    def tests(self, file: str, line: int) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """The tests that run a line: those nearest to it, with each file there that was changed since; and the others,
        in turn the next of all and the next of another file. Last, if none runs it, the nearest folders where an import
        does; else files of tests that bear the file's name, or name it as a command: some start programs."""
        running = self._running(file, line)
        near = [test for test in running if self._is_near(file, test)]
        changed = [test for test in self._changed if self._is_near(file, test)]
        others = [test for test in running if not self._is_near(file, test)]
        files: dict[str, list[str]] = defaultdict(list)
        for test in others:
            files[test.partition("::")[0]].append(test)
        of_files = (test for each in zip_longest(*files.values()) for test in each if test)
        far = dict.fromkeys(test for each in zip(others, of_files, strict=True) for test in each)
        named = folders(file) if "" in self._ran(file).get(line, ()) else self._named(Path(file).stem)
        return (
            (*self._affordable(near), *changed),
            tuple(self._affordable(far)),
            () if running else tuple(named),
        )

    def _named(self, stem: str) -> list[str]:
        files = sorted(self._root.glob("tests/*/**/test_*.py"))
        says = re.compile(rf"legato\W+{re.escape(stem)}\b")
        bear = [each for each in files if stem in each.stem]
        say = (each for each in files if says.search(each.read_text(encoding="utf-8")))
        return [str(each.relative_to(self._root)) for each in islice(dict.fromkeys((*bear, *say)), _MOST_FILES)]

    def _is_near(self, file: str, test: str) -> bool:
        """Whether a test stands in the nearest folders, or in a file that bears the name of the room or platform, or
        that imports the module."""
        room, where = file.split("/")[1], test.partition("::")[0]
        name = f"test_{_NAMES.get(room, room)}"
        return test.startswith(folders(file)) or name in where or file in self._imported(where)

    def _imported(self, test: str) -> set[str]:
        """The files of the program that a file of tests imports from."""
        if test not in self._imports and (path := self._root / test).exists():
            imports = (
                each for each in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(each, ast.ImportFrom)
            )
            names = (f"{each.module}.{name.name}" for each in imports for name in each.names)
            modules = (part for name in names for part in (name, name.rpartition(".")[0]))
            self._imports[test] = {f"{each.replace('.', '/')}.py" for each in modules}
        return self._imports.get(test, set())

    def _affordable(self, tests: Iterable[str]) -> Iterator[str]:
        spent = 0.0
        for test in tests:
            if (spent := spent + self._seconds[test]) > _MOST_SECONDS:
                break
            yield test

    def _running(self, file: str, line: int) -> list[str]:
        """The tests that run the statement at a line of today's file. Those that differ in what else they run of the
        function come first: for each of its lines, from the one that fewest tests run, the quickest, then the next."""
        source = (self._root / file).read_text(encoding="utf-8")
        nodes = [each for each in ast.walk(ast.parse(source)) if _holds(each, line)]
        began = max((each.lineno for each in nodes), default=line)
        function = next((each for each in nodes if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)), None)
        ran = {at: tests - {""} for at, tests in self._ran(file).items()}
        running = sorted(
            set().union(*(ran.get(at, ()) for at in range(began, line + 1))), key=self._seconds.__getitem__
        )
        around = range(function.lineno, (function.end_lineno or 0) + 1) if function else range(began, line + 1)
        lines = sorted(([test for test in running if test in ran.get(at, ())] for at in around), key=len)
        return [*dict.fromkeys(test for each in zip_longest(*lines) for test in each if test)]

    def _ran(self, file: str) -> dict[int, set[str]]:
        """The tests that ran each line of today's file; "": as it was imported."""
        then, now = ((root / file).read_text("utf-8").splitlines() for root in (self._folder / "source", self._root))
        known = self._data.contexts_by_lineno(file)
        found = {}
        for block in SequenceMatcher(None, then, now, autojunk=False).get_matching_blocks():
            for at in range(block.size):
                found[block.b + at + 1] = {*known.get(block.a + at + 1, ())}
        return found

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


def _holds(node: ast.AST, line: int) -> TypeGuard[ast.stmt]:
    return isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
