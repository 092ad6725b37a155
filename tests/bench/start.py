"""Starting: `legato --version`, the first reply of the console gateway, and what it weighs.

Each is a real process. The first reply is timed from starting the process to the first byte on its
standard output; peak memory is the kernel's figure (Linux) when it wrote the last of five replies:
with the offline model, and with an OpenAI-compatible endpoint, for which the HTTP stack and the
price table are loaded.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.bench.loopback import model_server
from tests.bench.table import Row, Rows, milliseconds, peak_memory
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
    took, alone = median(run.whole for run in version), "Python that does nothing"
    return [
        Row("Python alone", milliseconds(python)),
        Row("legato --version", milliseconds(took), "", took / python, alone),
        *(
            Row(f"first reply, {name}", milliseconds(first), "", first / python, alone)
            for name, runs in (("offline model", offline), ("loopback endpoint", remote))
            for first in [median(run.first for run in runs)]
        ),
        Row("console gateway, offline: peak", f"{median(run.peak for run in offline):.0f} MB", "goal ≤ 100 MB"),
        Row("console gateway, endpoint: peak", f"{median(run.peak for run in remote):.0f} MB", "goal ≤ 100 MB"),
    ]


def _configure(folder: Path, url: str) -> None:
    (folder / "config.yaml").write_text(f"model: {{provider: openai, name: gpt-4o, base_url: {url}}}\n")


async def _run(arguments: list[str] | None, text: str, folder: Path | None = None) -> _Run:
    """Run `legato` (None: an interpreter that does nothing) in a folder of its own."""
    command = ["-c", ""] if arguments is None else ["-m", "gateway", *arguments]
    environment = {**os.environ, "LEGATO_HOME": ".", "PYTHONPATH": str(PROJECT)}
    start = time.perf_counter()
    process = subprocess.Popen(  # noqa: ASYNC220 - there is nothing else to do on this loop
        [sys.executable, *command],
        env=environment,
        cwd=folder or PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    first, peak = await asyncio.to_thread(_talk, process, text)
    if await asyncio.to_thread(process.wait):
        raise RuntimeError(f"legato {arguments} ended with {process.returncode}")
    return _Run(first=first - start, whole=time.perf_counter() - start, peak=peak)


def _talk(process: subprocess.Popen[bytes], text: str) -> tuple[float, float]:
    """Write everything, read to the end: (when the first byte came, peak memory at the last, in MB)."""
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin as into:
        into.write(text.encode())
    first = peak = 0.0
    while os.read(process.stdout.fileno(), 65_536):
        first = first or time.perf_counter()
        peak = max(peak, peak_memory(process.pid))
    return first or time.perf_counter(), peak
