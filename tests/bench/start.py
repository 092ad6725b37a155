"""Starting: `legato --version`, the first reply of the console gateway, and what it weighs.

Each is a real process. The first reply is timed from starting the process to the first byte on its
standard output; peak memory is the kernel's figure for the process when it has answered five
messages and ended: with the offline model, and with an OpenAI-compatible endpoint, for which the
HTTP stack and the price table are loaded.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.bench.loopback import model_server
from tests.bench.table import Row, Rows, milliseconds
from tests.bench.world import said

TITLE = "Starting"
RUNS = 9
MESSAGES = 5
PROJECT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class _Run:
    """One process: seconds to its first output and to its end, and its peak resident memory in MB."""

    first: float
    whole: float
    peak: float


async def measure() -> Rows:
    """Times, then weights."""
    version = [await _run(["--version"], "") for _ in range(RUNS)]
    bare = [await _run(None, "") for _ in range(RUNS)]
    talk = "".join(said(number) + "\n" for number in range(MESSAGES))
    with tempfile.TemporaryDirectory() as folder:
        offline = [await _run(["chat"], talk, Path(folder)) for _ in range(3)]
    async with model_server() as url:
        with tempfile.TemporaryDirectory() as folder:
            _configure(Path(folder), url)
            remote = [await _run(["chat"], talk, Path(folder)) for _ in range(3)]
    python = median(run.whole for run in bare)
    took = median(run.whole for run in version)
    return [
        Row("legato --version", milliseconds(took), f"goal ≤ 200 ms; Python alone takes {milliseconds(python)}"),
        Row("first reply, offline model", milliseconds(median(run.first for run in offline))),
        Row("first reply, loopback endpoint", milliseconds(median(run.first for run in remote))),
        Row("console gateway, offline: peak", f"{median(run.peak for run in offline):.0f} MB", "goal ≤ 150 MB"),
        Row("console gateway, endpoint: peak", f"{median(run.peak for run in remote):.0f} MB", "goal ≤ 150 MB"),
    ]


def _configure(folder: Path, url: str) -> None:
    (folder / "config.yaml").write_text(f"model: {{provider: openai, name: gpt-4o, base_url: {url}}}\n")


async def _run(arguments: list[str] | None, text: str, folder: Path | None = None) -> _Run:
    """Run `legato` (None: an interpreter that does nothing) in a folder of its own."""
    command = ["-c", ""] if arguments is None else ["-m", "gateway", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    start = time.perf_counter()
    process = await asyncio.to_thread(_spawn, command, environment, folder or PROJECT)
    pid, write, read = process
    first = await asyncio.to_thread(_talk, write, read, text)
    _, status, usage = await asyncio.to_thread(os.wait4, pid, 0)
    if status:
        raise RuntimeError(f"legato {arguments} ended with {status}")
    return _Run(first=first - start, whole=time.perf_counter() - start, peak=usage.ru_maxrss / 1024)


def _spawn(command: list[str], environment: dict[str, str], folder: Path) -> tuple[int, int, int]:
    """(process id, the end to write to, the end to read from); by hand, so that `wait4` is ours."""
    stdin, write = os.pipe()
    read, stdout = os.pipe()
    here = os.getcwd()
    os.chdir(folder)
    try:
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, *command],
            environment,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, stdin, 0),
                (os.POSIX_SPAWN_DUP2, stdout, 1),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_CLOSE, write),
                (os.POSIX_SPAWN_CLOSE, read),
            ],
        )
    finally:
        os.chdir(here)
    os.close(stdin)
    os.close(stdout)
    return pid, write, read


def _talk(write: int, read: int, text: str) -> float:
    """Write everything, read to the end; when the first byte came."""
    with os.fdopen(write, "w") as into:
        into.write(text)
    first = 0.0
    while os.read(read, 65_536):
        first = first or time.perf_counter()
    os.close(read)
    return first or time.perf_counter()
