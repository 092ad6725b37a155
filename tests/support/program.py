"""The real program in a process of its own, talked to in JSON lines."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.forks import LONGEST_LINE, ROOT, Process, forks

PATIENCE = 240.0  # seconds until a program that hangs is given up: pytest itself does after 300
_ASIDE = ("notice", "remark", "question")
KEY = "sk-legato-test-0123456789abcdef"

Row = dict[str, Any]


def environment(**more: str) -> dict[str, str]:
    """Return the environment of the program's process: this checkout, and nothing of the tester's own settings.
    Legato's folder is the one in which the program starts."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LEGATO_")}
    return {**kept, "LEGATO_HOME": ".", "PYTHONPATH": str(ROOT), "TEST_LLM_KEY": KEY, **more}


def write_config(folder: Path, base_url: str, **sections: Mapping[str, Any]) -> Path:
    """A configuration for a loopback model, without flushes and titles; `sections` are laid over it (JSON is YAML)."""
    model = {"provider": "openai", "name": "test-model", "base_url": base_url, "api_key": "${TEST_LLM_KEY}"}
    given = dict(sections)
    config = {
        "model": {**model, **given.pop("model", {})},
        "store": {"url": f"sqlite:///{folder / 'legato.db'}"},
        "memory": {"flush": False},
        "sessions": {"titles": False, **given.pop("sessions", {})},
        **given,
    }
    path = folder / "config.yaml"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


class Program:
    """`legato chat --json` as a peer: what was said so far is in `lines`."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.lines: list[Row] = []

    def send(self, *requests: Mapping[str, Any] | bytes) -> None:
        """Write requests; bytes go out as they are, with a line end."""
        assert self.process.stdin is not None
        for request in requests:
            data = request if isinstance(request, bytes) else json.dumps(request).encode()
            self.process.stdin.write(data + b"\n")

    async def until_answered(self, *ids: str) -> list[Row]:
        """The final lines (reply, command or error) for these event ids, in the given order."""
        while True:
            found = {row["answers"]: row for row in self.lines if row["kind"] not in _ASIDE and row["answers"] in ids}
            if len(found) == len(ids):
                return [found[name] for name in ids]
            assert await self.read_line(), f"the program ended without answering {set(ids) - found.keys()}"

    async def read_line(self) -> Row | None:
        """The next line, also appended to `lines`; None at the end."""
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        if not line:
            return None
        row: Row = json.loads(line)
        self.lines.append(row)
        return row

    async def read_line_within(self, seconds: float) -> Row | None:
        """The next line, or None if none came in that time."""
        try:
            async with asyncio.timeout(seconds):
                return await self.read_line()
        except TimeoutError:
            return None

    async def finish(self) -> tuple[int, str]:
        """Close the input, read all that is left; the exit status and what stderr held."""
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        self.process.stdin.close()
        errors = asyncio.get_running_loop().create_task(self.process.stderr.read())
        while await self.read_line():
            pass
        return await self.process.wait(), (await errors).decode()


@asynccontextmanager
async def chatting(folder: Path, *arguments: str, fresh: bool = False, **variables: str) -> AsyncIterator[Program]:
    """`legato chat --json` started in `folder`; killed at the end if it still runs. `fresh`: by a new interpreter."""
    process = await started(folder, "chat", "--json", *arguments, fresh=fresh, **variables)
    try:
        async with asyncio.timeout(PATIENCE):
            yield Program(process)
    finally:
        if process.returncode is None:
            process.kill()
        # Read to the end, so that no transport is left open behind the test.
        await process.communicate()


@asynccontextmanager
async def legato_run(folder: Path, **how: Any) -> AsyncIterator[Process]:
    """`legato run` in a folder, killed in the end. `how` as for `started`."""
    process = await started(folder, "run", **how)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def legato(folder: Path, *arguments: str, given: bytes = b"", **how: Any) -> tuple[int, str, str]:
    """Run one `legato` command to its end: status, stdout, stderr. `how` as for `started`."""
    process = await started(folder, *arguments, **how)
    async with asyncio.timeout(PATIENCE):
        out, err = await process.communicate(given)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def started(folder: Path, *arguments: str, fresh: bool = False, **variables: str) -> Process:
    """The program in `folder`, with these variables beside those of the tests. `fresh`: by a new interpreter."""
    if not fresh:
        return await forks().program("gateway", *arguments, cwd=folder, environment=environment(**variables))
    process: Any = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", *arguments,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        cwd=folder, env=environment(**variables), limit=LONGEST_LINE,
    )  # fmt: skip
    return process  # type: ignore[no-any-return]


def texts(rows: Sequence[Row], kind: str = "reply") -> list[str]:
    """The texts of one kind of line, in order."""
    return [row["text"] for row in rows if row["kind"] == kind]
