"""Many bugs in one run of pytest: it collects the tests once, and a fork for each bug puts it in and runs its tests.

`pytest -p tests.planted.trial` takes the bugs from the file that TRIALS_OF_TESTS names, a JSON object a line with
`file`, `old`, `new` and `tests`, and writes a line for each beside it, to `.results`: the test that found it, or "".
Programs that tests start in processes of their own (`tests.support.forks`) have the bug, too.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import select
import signal
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from inspect import CO_OPTIMIZED
from itertools import pairwise
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Final

import pytest

from tests.support import model
from tests.support.forks import BEGIN, ROOT, forks

TRIALS: Final = "TRIALS_OF_TESTS"
ENDLESS, CRASH, _NONE = "its endless run", "its crash", "-"
_PATIENCE: Final = 100.0  # seconds for the tests of one bug, where nothing else runs
_failed: Final[list[str]] = []


def pytest_configure() -> None:
    """Before a test imports it: nearly all that is waited for here never comes."""
    model.PATIENCE = 20.0  # seconds


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note what fails."""
    if report.failed:
        _failed.append(report.nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Try the bugs, instead of running the tests."""
    asyncio.run(_begin_programs())
    trials = Path(os.environ[TRIALS])
    items = defaultdict(list)
    for item in session.items:
        items[item.nodeid].append(item)
        items[item.nodeid.partition("::")[0]].append(item)
    bugs = [json.loads(line) for line in trials.read_text(encoding="utf-8").splitlines()]
    for file in {bug["file"] for bug in bugs}:
        importlib.import_module(file.removesuffix(".py").replace("/", "."))
    gc.unfreeze()
    known = _Functions()
    gc.freeze()
    with trials.with_suffix(".results").open("w", encoding="utf-8") as results:
        for bug in bugs:
            tests = list(dict.fromkeys(item for test in bug["tests"] for item in items[test]))
            found = _found(session, tests, bug, known)
            print(json.dumps(found), file=results, flush=True)
    return True


def _found(session: pytest.Session, tests: Sequence[pytest.Item], bug: dict[str, Any], known: _Functions) -> str:
    """The first test that fails with the bug alone; "" if none does. What fails without it, too, is left out."""
    while found := _forked(session, tests, bug, known):
        ids = [each.nodeid for each in tests]
        again = tests[: ids.index(found) + 1] if found in ids else tests  # one may fail because of those before it
        if not _forked(session, again):
            return found
        if found not in ids:
            return ""
        tests = [each for each in tests if each.nodeid != found]
    return ""


async def _begin_programs() -> None:
    """Have the parent of programs import all that there is before the time of the first bug runs."""
    await (await forks().program("gateway", "--version")).communicate()


class _Functions:
    """The functions of the program, by their code."""

    def __init__(self) -> None:
        self._known = defaultdict(list)
        for each in gc.get_objects():
            if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(str(ROOT)):
                self._known[each.__code__].append(each)

    def plant(self, bug: dict[str, Any]) -> None:
        """Put a bug into the functions of this process."""
        path = ROOT / bug["file"]
        sound = path.read_text(encoding="utf-8")
        before, after = (compile(text, path, "exec") for text in (sound, sound.replace(bug["old"], bug["new"])))
        for old, new in zip(_functions(before), _functions(after), strict=True):
            for function in self._known[old]:
                with suppress(ValueError):  # it closes over something that it no longer names
                    function.__code__ = new


def in_program(bug: str, _: str) -> None:
    """Put a bug into the functions of this program."""
    gc.unfreeze()
    _Functions().plant(json.loads(bug))
    gc.freeze()


def _functions(code: CodeType) -> Iterator[CodeType]:
    """The outermost functions of a module."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from [each] if each.co_flags & CO_OPTIMIZED else _functions(each)


def _forked(
    session: pytest.Session,
    tests: Sequence[pytest.Item],
    bug: dict[str, Any] | None = None,
    known: _Functions | None = None,
) -> str:
    """The first of the tests that fails in a fork; "" if none does."""
    if not tests:
        return ""
    answers, answer = os.pipe()
    child = os.fork()
    if not child:
        os.setsid()
        try:
            if bug and known:
                known.plant(bug)
                os.environ[BEGIN] = f"{__name__}:in_program:{json.dumps(bug)}"
            os.write(answer, (_first_failing(session, tests) or _NONE).encode())
        finally:
            os._exit(0)
    os.close(answer)
    busy = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    ready, _, _ = select.select([answers], [], [], _PATIENCE * busy)
    found = (os.read(answers, 10_000).decode() or CRASH) if ready else ENDLESS
    os.close(answers)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return found.removeprefix(_NONE)


def _first_failing(session: pytest.Session, tests: Sequence[pytest.Item]) -> str:
    try:
        for item, following in pairwise([*tests, None]):
            if item is not None:
                item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            if _failed:
                return _failed[0]
        return ""
    finally:
        session._setupstate.teardown_exact(None)
