"""Fixtures for all tests."""

import functools
import gc
import itertools
import os
import shutil
import signal
import tempfile
import typing
from pathlib import Path

import pytest
import structlog
import typer.testing
from hypothesis import settings

from gateway.runtime import tokens
from gateway.runtime.sandbox import why_not
from tests.support.fakes import ManualClock, SequentialIds
from tests.support.forks import share
from tests.support.programs import SYNAPSE, lacking

# Tracebacks as the program writes them. The default draws the variables of every frame, for a second of a core each.
structlog.configure(
    processors=[
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ]
)

# A command that is tried in this process would make all commands of the program anew, which takes longer than most run.
typer.testing._get_command = functools.cache(typer.testing._get_command)

# Thousands of gateways are built, and each looks through its tools. Python 3.12 itself remembers what a protocol has.
if hasattr(typing, "_get_protocol_attrs"):
    typing._get_protocol_attrs = functools.cache(typing._get_protocol_attrs)
# And each counts the tokens of the same schemas and prompts.
_read, _COUNTED = tokens._read, 5_000  # characters


def _remembering(most: float) -> typing.Any:
    encoding = _read(most)
    plain = encoding.encode_ordinary
    known = functools.lru_cache(maxsize=1_000)(plain)
    encoding.encode_ordinary = lambda text: known(text) if len(text) < _COUNTED else plain(text)
    return encoding


tokens._read = _remembering

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # behind nohup it is ignored, and programs under test inherit that

os.environ["LEGATO_HOME"] = "."  # each test's programs keep their things where they start, never in a tester's home

# Without deadlines: how long an example takes depends on what else the machine does.
# Without a folder of examples: in a checkout that nobody may write to, hypothesis would warn, which is an error here.
settings.register_profile("quick", deadline=None, max_examples=15, database=None)
settings.register_profile("thorough", deadline=None, max_examples=400, database=None)  # of `make slow`
settings.load_profile("quick")

# A commit waits for the disk, which no test is about: the files of tests live in memory, where there is room for them.
_MEMORY = Path("/dev/shm")
_ROOM = 2**30  # bytes; a container may give no more than 64 MB
if "TMPDIR" not in os.environ and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _ROOM:
    os.environ["TMPDIR"] = str(_MEMORY)
    tempfile.tempdir = None  # look again

# Next to nothing of what is imported and collected is ever garbage: looking takes a third of the time.
gc.disable()


def pytest_configure(config: pytest.Config) -> None:
    """All processes of a run take their programs from one parent."""
    if config.getoption("numprocesses", None):
        share()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that ask for a program which is missing, or for a sandbox where none holds. Then let each
    process end with its share of the short ones, for what one takes over from another is at the end."""
    _leave_out(config, items)
    processes = getattr(config, "workerinput", {"workercount": 1})["workercount"]
    short = [item for item in items if "tests/unit/" in item.nodeid]
    others = [item for item in items if "tests/unit/" not in item.nodeid]
    items[:] = [
        item
        for number in range(processes)
        for kind in (others, short)
        for item in kind[number * len(kind) // processes : (number + 1) * len(kind) // processes]
    ]


def _leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    missing = {*lacking(), *(["bwrap"] if why_not() else []), *([] if SYNAPSE.exists() else ["synapse"])}
    if not missing:
        return
    asked = {item.nodeid: missing & {*getattr(item, "fixturenames", ())} for item in items}
    config.hook.pytest_deselected(items=[item for item in items if asked[item.nodeid]])
    items[:] = [item for item in items if not asked[item.nodeid]]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say so."""
    if lacking():
        packages = " ".join(each.package for each in lacking().values())
        terminalreporter.write_line(f"Tests that need {', '.join(lacking())} were left out: apt-get install {packages}")
    if not SYNAPSE.exists():
        terminalreporter.write_line("Tests on a Matrix server were left out: make matrix-server installs one")
    if reason := why_not():
        terminalreporter.write_line(f"No test of the sandbox was run: {reason}")


def pytest_collection_finish() -> None:
    """From here on garbage is collected, and looked for only among what the tests make."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return how many processes run the tests."""
    return (os.cpu_count() or 1) * 2


@pytest.fixture(autouse=True)
def _logs_as_they_were():
    """A test may run a command in its own process, which sets up the log for good."""
    kept = structlog.get_config()
    yield
    structlog.configure(**kept)


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Paths that nobody has used yet."""
    parent = tmp_path_factory.mktemp("tests")
    return (parent / str(number) for number in itertools.count())


@pytest.fixture
def tmp_path(request, folders):
    """A folder of the test's own, kept if the test fails. pytest's looks through all earlier ones for a free name."""
    path, failed = next(folders), request.session.testsfailed
    path.mkdir(mode=0o700)
    yield path
    if request.session.testsfailed == failed:
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def bwrap():
    """A sandbox holds here."""


@pytest.fixture
def curl():
    """A program that everybody fetches things with."""


@pytest.fixture
def npm():
    """`make slow` has installed what npm brings."""


@pytest.fixture
def clock():
    """Time that passes only when the test says so."""
    return ManualClock()


@pytest.fixture
def ids():
    """Ids that count."""
    return SequentialIds()
