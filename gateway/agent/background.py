"""Commands that go on in a sandbox after the turn that began them.

All about them stands in files, in a folder for each conversation, so that every process of this machine can tell, also
the one after a crash:

    7.json    what was begun; locked for as long as it runs, which ends if this goes
    7.txt     its output
    7.end     somebody asked that it ends
    7.done    how it ended, once its conversation knows
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog
from msgspec import DecodeError, Struct
from msgspec.json import decode, encode

from gateway.agent.workspace.folders import name_of
from gateway.domain.chat import SessionKey, Source, one_line
from gateway.domain.wording import counted, lasting
from gateway.runtime.clock import Clock, lasting_id
from gateway.runtime.errors import ToolError
from gateway.runtime.owners import private
from gateway.runtime.tasks import Background, ended_before

log = structlog.get_logger(__name__)

SEEN_AS: Final = "background"  # among the folders that are lent to a sandbox
_AT_ONCE: Final = 3  # of a conversation
_KEPT: Final = 10  # of a conversation, the newest
_LARGEST: Final = 10_000_000  # bytes of an output that are kept from its beginning
_TAIL: Final = 3_000  # bytes of its end: those that are told, and those that are kept beyond the largest
_LOOK: Final = 0.5  # seconds between two looks at whether it is to end
_PATIENCE: Final = 10.0  # seconds for one to end that was asked to
_REF: Final = "background:"  # begins the `ref` of a command, before its number
RESTARTED: Final = "ended by a restart of the program that ran it; it was not begun again"
STOPPED: Final = "ended, as was asked"


class Begun(Struct, frozen=True, kw_only=True):
    """A command that was begun. `cause`: its name among all that ever were."""

    number: int
    command: str
    key: str
    source: Source
    cause: str
    at: float

    @property
    def name(self) -> str:
        """How it is named to people and models."""
        return f"command {self.number} ({one_line(self.command)})"


class Standing(Struct, frozen=True, kw_only=True):
    """How a command stands. `outcome` is "" while it runs."""

    begun: Begun
    outcome: str


class KeptOutput:
    """The output of a command, written to a file: its beginning up to a limit, and its end."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "wb", buffering=0, opener=private)  # noqa: SIM115
        self._size = 0
        self._last = b""

    def add(self, data: bytes) -> None:
        """Keep what there is room for."""
        room = max(0, _LARGEST - self._size)
        self._size += len(data)
        with suppress(OSError):  # a full disk costs the output, and not the command
            self._file.write(data[:room])
        self._last = (self._last + data[room:])[-_TAIL:]

    def close(self) -> None:
        """Write the end behind what was left out."""
        left_out = self._size - _LARGEST - len(self._last)
        with suppress(OSError):
            if left_out > 0:
                self._file.write(f"\n[… {left_out:,} bytes left out …]\n".encode())
            self._file.write(self._last)
        self._file.close()


Wake = Callable[[SessionKey, Source, str, str, str], Awaitable[None]]
"""Has a conversation go on, as `gateway.agent.waking.Waking.wake` does."""

Work = Callable[[KeptOutput], Awaitable[str]]
"""Runs a command with this output, and returns how it ended. It ends the command if it is cancelled."""


class BackgroundCommands(Struct, frozen=True, kw_only=True):
    """Those of all conversations, in the folder `root`, which lies among the workspaces and goes with them. `redact`
    takes secrets out of what is told of outputs."""

    root: Path
    jobs: Background
    clock: Clock
    redact: Callable[[str], str]
    wake: Wake

    def folder(self, key: SessionKey) -> Path:
        """The folder with what a conversation's commands print, which its sandboxes see."""
        return self.root / name_of(key)

    async def begin(self, key: SessionKey, source: Source, command: str, work: Work) -> Begun:
        """Begin a command, and wake its conversation when it has ended. Raises ToolError."""
        begun, lock = await asyncio.to_thread(self._entered, key, source, command)
        self.jobs.start(self._run(begun, lock, work), name="background command")
        return begun

    def standings(self, key: SessionKey) -> Sequence[Standing]:
        """All that are known, by their numbers. It reads files."""
        return list(_standings(self.folder(key)))

    async def running(self, key: SessionKey) -> Sequence[Begun]:
        """Those that run."""
        if not self._begun_any():
            return ()
        standings = await asyncio.to_thread(self.standings, key)
        return [each.begun for each in standings if not each.outcome]

    async def told(self, key: SessionKey, number: int) -> str:
        """How a command stands, and the end of its output. Raises ToolError."""
        return await asyncio.to_thread(self._told, key, await self._standing(key, number))

    async def end(self, key: SessionKey, number: int) -> str:
        """End a command. Its conversation is not woken for that. Raises ToolError."""
        standing = await self._standing(key, number)
        if not standing.outcome:
            await self._end(self.folder(key), [standing.begun])
        return await self.told(key, number)

    async def end_all(self, key: SessionKey) -> int:
        """End all that run, and say how many there were."""
        running = await self.running(key)
        await self._end(self.folder(key), running)
        return len(running)

    def texts(self, key: SessionKey) -> Iterator[tuple[str, str]]:
        """Each command with all that it printed, by its ref. It reads files."""
        folder = self.folder(key)
        for each in _standings(folder):
            printed = b""
            with suppress(OSError):
                printed = _at(folder, each.begun, "txt").read_bytes()
            yield f"{_REF}{each.begun.number}", f"{each.begun.command}\n{printed.decode(errors='replace')}"

    async def forget(self, key: SessionKey, refs: Collection[str]) -> None:
        """End the commands of these refs, and keep nothing of them."""
        folder = self.folder(key)
        standings = await asyncio.to_thread(self.standings, key)
        gone = [each for each in standings if f"{_REF}{each.begun.number}" in refs]
        await self._end(folder, [each.begun for each in gone if not each.outcome])
        for each in gone:
            await asyncio.to_thread(_remove, folder, each.begun)

    async def recover(self) -> None:
        """Wake the conversations whose commands a restart has ended, or a crash."""
        for folder, begun in await asyncio.to_thread(self._left):
            await self._finish(folder, begun, RESTARTED)

    def _begun_any(self) -> bool:
        return self.root.is_dir()

    def _left(self) -> list[tuple[Path, Begun]]:
        folders = self.root.iterdir() if self.root.is_dir() else ()
        ended = [(each, standing) for each in folders for standing in _standings(each) if standing.outcome == RESTARTED]
        return [(each, standing.begun) for each, standing in ended if not _at(each, standing.begun, "done").exists()]

    # -- one command --------------------------------------------------------------------------------

    def _entered(self, key: SessionKey, source: Source, command: str) -> tuple[Begun, int]:
        """Write down what is about to run, locked. Raises ToolError if too many run."""
        folder = self.folder(key)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        known = list(_standings(folder))
        if sum(not each.outcome for each in known) >= _AT_ONCE:
            raise ToolError(f"{_AT_ONCE} commands run in the background already; end one, or wait until one has ended.")
        for each in known[: 1 - _KEPT]:
            if each.outcome:
                _remove(folder, each.begun)
        number, now = max((each.begun.number for each in known), default=0) + 1, self.clock.now()
        cause = lasting_id("b", key, number, now)
        begun = Begun(number=number, command=command, key=str(key), source=source, cause=cause, at=now)
        lock = os.open(_at(folder, begun, "json"), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.write(lock, encode(begun))
        return begun, lock

    async def _run(self, begun: Begun, lock: int, work: Work) -> None:
        folder = self.folder(SessionKey.parse(begun.key))
        try:
            outcome = await self._ended(folder, begun, work)
            await self._finish(folder, begun, outcome)
        finally:
            os.close(lock)

    async def _ended(self, folder: Path, begun: Begun, work: Work) -> str:
        """Run a command until it ends or is asked to, and say how it ended."""
        output = KeptOutput(_at(folder, begun, "txt"))
        outcome, asked = STOPPED, asyncio.Event()

        async def run() -> None:
            nonlocal outcome
            try:
                outcome = await work(output)
            except (OSError, ToolError) as error:
                outcome = f"failed: {error}"

        async def look() -> None:
            while _at(folder, begun, "json").exists() and not _at(folder, begun, "end").exists():
                await self.clock.sleep(_LOOK)
            asked.set()

        try:
            async with asyncio.TaskGroup() as group:
                looking = group.create_task(look())
                await ended_before(run, asked)
                looking.cancel()
        finally:
            output.close()
        return outcome

    async def _finish(self, folder: Path, begun: Begun, outcome: str) -> None:
        """Have the conversation know. A crash before the file is there repeats that, and it is heard once."""
        key = SessionKey.parse(begun.key)
        if not _at(folder, begun, "json").exists():
            return  # forgotten meanwhile
        if outcome != STOPPED:
            standing = Standing(begun=begun, outcome=outcome)
            text = await asyncio.to_thread(self._told, key, standing)
            await self.wake(key, begun.source, begun.cause, f"{begun.name} has ended", text)
        with suppress(FileNotFoundError):  # forgotten meanwhile
            await asyncio.to_thread(_at(folder, begun, "done").write_text, outcome)

    async def _standing(self, key: SessionKey, number: int) -> Standing:
        standings = await asyncio.to_thread(self.standings, key)
        for each in standings:
            if each.begun.number == number:
                return each
        there = ", ".join(f"{each.begun.number}" for each in standings) or "none"
        raise ToolError(f"There is no background command {number} here; there are: {there}.")

    async def _end(self, folder: Path, commands: Sequence[Begun]) -> None:
        for each in commands:
            with suppress(FileNotFoundError):
                await asyncio.to_thread(_at(folder, each, "end").touch)
        with suppress(TimeoutError):
            async with self.clock.limit(_PATIENCE):
                for each in commands:
                    while _at(folder, each, "json").exists() and not _outcome(folder, each):
                        await self.clock.sleep(_LOOK)

    def _told(self, key: SessionKey, standing: Standing) -> str:
        begun = standing.begun
        path = _at(self.folder(key), begun, "txt")
        size, last = 0, b""
        with suppress(OSError), open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL))
            last = file.read(_TAIL)
        if size > _TAIL:
            last = last[last.find(b"\n") + 1 :] or last  # half of a credential would not be recognised
        lasted = lasting(self.clock.now() - begun.at)
        how = f"{standing.outcome}, {lasted} after it was begun" if standing.outcome else f"runs since {lasted}"
        if not size:
            return f"{begun.name}: {how}; it printed nothing"
        where = f"{counted(size, 'byte')} in /folders/{SEEN_AS}/{path.name}"
        return f"{begun.name}: {how}; its output, {where}, ends:\n{self.redact(last.decode('utf-8', 'replace'))}"


def _at(folder: Path, begun: Begun, ending: str) -> Path:
    return folder / f"{begun.number}.{ending}"


def _standings(folder: Path) -> Iterator[Standing]:
    paths = folder.glob("*.json") if folder.is_dir() else ()
    for path in sorted((each for each in paths if each.stem.isdecimal()), key=lambda path: int(path.stem)):
        with suppress(OSError, DecodeError):
            begun = decode(path.read_bytes(), type=Begun)
            yield Standing(begun=begun, outcome=_outcome(folder, begun))


def _outcome(folder: Path, begun: Begun) -> str:
    """How a command ended; "" while it runs. Raises OSError."""
    with suppress(FileNotFoundError):
        return _at(folder, begun, "done").read_text() or RESTARTED
    with open(_at(folder, begun, "json"), "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return ""
    return RESTARTED


def _remove(folder: Path, begun: Begun) -> None:
    for ending in ("txt", "end", "done", "json"):
        _at(folder, begun, ending).unlink(missing_ok=True)
