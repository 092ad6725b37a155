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
import os
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import DecodeError, Struct
from msgspec.json import decode, encode

from gateway.agent.workspace.folders import name_of
from gateway.domain.chat import SessionKey, Source, in_a_line
from gateway.domain.wording import counted, lasting
from gateway.runtime import posix
from gateway.runtime.clock import Clock, lasting_id
from gateway.runtime.errors import ToolError
from gateway.runtime.owners import private
from gateway.runtime.structs import replace
from gateway.runtime.tasks import Background, ended_before

_LONGEST_NAME: Final = 100  # characters of a command by which it is named
SEEN_AS: Final = "background"  # among the folders that are lent to a sandbox
_AT_ONCE: Final = 3  # of a conversation
_IN_ALL: Final = 20  # of all conversations of this machine
_KEPT: Final = 10  # of a conversation, the newest
_LARGEST: Final = 10_000_000  # bytes of an output that are kept from its beginning
_TAIL: Final = 3_000  # bytes of its end: those that are told, and those that are kept beyond the largest
_LOOK: Final = 0.5  # seconds between two looks at whether it is to end
_PATIENCE: Final = 10.0  # seconds for one to end that was asked to
_REF: Final = "background:"  # begins the `ref` of a command, before its number
RESTARTED: Final = "ended by a restart of the program that ran it; it was not begun again"
STOPPED: Final = "ended, as was asked"


class Begun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A command that was begun. `cause`: a name that no other command ever had. `outcome` is "" while it runs, and is
    not stored."""

    number: int
    command: str
    key: str
    source: Source
    cause: str
    at: float
    outcome: str = ""

    @property
    def name(self) -> str:
        """How it is named to people and models."""
        return f"command {self.number} ({in_a_line(self.command, _LONGEST_NAME)})"


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
        """Write the end, after a note of what was left out."""
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

    def known(self, key: SessionKey) -> Sequence[Begun]:
        """All that are known, by their numbers. It reads files."""
        return list(_known(self.folder(key)))

    async def running(self, key: SessionKey) -> Sequence[Begun]:
        """Those that run."""
        if not self.root.is_dir():  # as nearly always
            return ()
        return [each for each in await asyncio.to_thread(self.known, key) if not each.outcome]

    async def told(self, key: SessionKey, number: int) -> str:
        """The state of a command, and the end of its output. Raises ToolError."""
        return await asyncio.to_thread(self._told, await self._numbered(key, number))

    async def end(self, key: SessionKey, number: int) -> str:
        """End a command. Its conversation is not woken for that. Raises ToolError."""
        await self._end([await self._numbered(key, number)])
        return await self.told(key, number)

    async def end_all(self, key: SessionKey) -> int:
        """End all that run, and say how many there were."""
        running = await self.running(key)
        await self._end(running)
        return len(running)

    def texts(self, key: SessionKey) -> Iterator[tuple[str, str]]:
        """Each command with all that it printed, by its ref. It reads files."""
        for each in self.known(key):
            printed = b""
            with suppress(OSError):
                printed = self._at(each, "txt").read_bytes()
            yield f"{_REF}{each.number}", f"{each.command}\n{printed.decode(errors='replace')}"

    async def forget(self, key: SessionKey, refs: Collection[str]) -> None:
        """End the commands of these refs, and keep nothing of them."""
        gone = [each for each in await asyncio.to_thread(self.known, key) if f"{_REF}{each.number}" in refs]
        await self._end(gone)
        for each in gone:
            await asyncio.to_thread(self._remove, each)

    async def recover(self) -> None:
        """Wake the conversations whose commands a restart has ended, or a crash."""
        for begun in await asyncio.to_thread(self._left):
            await self._finish(begun, RESTARTED)

    def _left(self) -> list[Begun]:
        folders = self.root.iterdir() if self.root.is_dir() else ()
        ended = [each for folder in folders for each in _known(folder) if each.outcome == RESTARTED]
        return [each for each in ended if not self._at(each, "done").exists()]

    # -- one command --------------------------------------------------------------------------------

    def _at(self, begun: Begun, ending: str) -> Path:
        return _file(self.folder(SessionKey.parse(begun.key)), begun.number, ending)

    def _entered(self, key: SessionKey, source: Source, command: str) -> tuple[Begun, int]:
        """Write down what is about to run, locked. Raises ToolError if too many run."""
        self.folder(key).mkdir(mode=0o700, parents=True, exist_ok=True)
        known = self.known(key)
        if sum(not each.outcome for each in known) >= _AT_ONCE:
            raise ToolError(f"{_AT_ONCE} commands already run in the background; end one, or wait until one has ended.")
        for each in known[: 1 - _KEPT]:
            if each.outcome:
                self._remove(each)
        if sum(not each.outcome for folder in self.root.iterdir() for each in _known(folder)) >= _IN_ALL:
            raise ToolError(f"{_IN_ALL} commands of all conversations already run in the background: try again later.")
        number, now = max((each.number for each in known), default=0) + 1, self.clock.now()
        while _file(self.folder(key), number, "json").exists():  # of one whose program died before it was written down
            number += 1
        cause = lasting_id("b", key, number, now)
        begun = Begun(number=number, command=command, key=str(key), source=source, cause=cause, at=now)
        lock = os.open(self._at(begun, "json"), os.O_RDWR | os.O_CREAT | os.O_EXCL | posix.OWN, 0o600)
        posix.lock(lock)
        os.write(lock, encode(begun))
        return begun, lock

    async def _run(self, begun: Begun, lock: int, work: Work) -> None:
        """Run a command until it ends or is asked to, and have its conversation know how it ended."""
        output = KeptOutput(self._at(begun, "txt"))
        outcome, asked = STOPPED, asyncio.Event()

        async def run() -> None:
            nonlocal outcome
            try:
                outcome = await work(output)
            except (OSError, ToolError) as error:
                outcome = f"failed: {error}"

        async def look() -> None:
            while self._at(begun, "json").exists() and not self._at(begun, "end").exists():
                await self.clock.sleep(_LOOK)
            asked.set()

        try:
            try:
                async with asyncio.TaskGroup() as group:
                    looking = group.create_task(look())
                    await ended_before(run, asked)
                    looking.cancel()
            finally:
                output.close()
            await self._finish(begun, outcome)
        finally:
            os.close(lock)

    async def _finish(self, begun: Begun, outcome: str) -> None:
        """Have the conversation know. A crash before the file is there repeats that, and it is heard once."""
        if not self._at(begun, "json").exists():
            return  # forgotten meanwhile
        if outcome != STOPPED:
            text = await asyncio.to_thread(self._told, replace(begun, outcome=outcome))
            await self.wake(SessionKey.parse(begun.key), begun.source, begun.cause, f"{begun.name} has ended", text)
        with suppress(FileNotFoundError):  # forgotten meanwhile
            await asyncio.to_thread(self._at(begun, "done").write_text, outcome)

    async def _numbered(self, key: SessionKey, number: int) -> Begun:
        known = {each.number: each for each in await asyncio.to_thread(self.known, key)}
        if number not in known:
            there = ", ".join(map(str, known)) or "none"
            raise ToolError(f"There is no background command {number} here; there are: {there}.")
        return known[number]

    async def _end(self, commands: Sequence[Begun]) -> None:
        commands = [each for each in commands if not each.outcome]
        for each in commands:
            with suppress(FileNotFoundError):
                await asyncio.to_thread(self._at(each, "end").touch)
        with suppress(TimeoutError):
            async with self.clock.limit(_PATIENCE):
                for each in commands:
                    while self._at(each, "json").exists() and not _outcome(self._at(each, "json")):
                        await self.clock.sleep(_LOOK)

    def _told(self, begun: Begun) -> str:
        path = self._at(begun, "txt")
        size, last = 0, b""
        with suppress(OSError), open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL))
            last = file.read(_TAIL)
        if size > _TAIL:
            last = last[last.find(b"\n") + 1 :] or last  # half of a credential would not be recognised
        lasted = lasting(self.clock.now() - begun.at)
        how = f"{begun.outcome}, {lasted} after it was begun" if begun.outcome else f"runs since {lasted}"
        if not size:
            return f"{begun.name}: {how}; it printed nothing"
        where = f"{counted(size, 'byte')} in /folders/{SEEN_AS}/{path.name}"
        return f"{begun.name}: {how}; its output, {where}, ends:\n{self.redact(last.decode('utf-8', 'replace'))}"

    def _remove(self, begun: Begun) -> None:
        for ending in ("txt", "end", "done", "json"):
            self._at(begun, ending).unlink(missing_ok=True)


def _file(folder: Path, number: int, ending: str) -> Path:
    return folder / f"{number}.{ending}"


def _known(folder: Path) -> Iterator[Begun]:
    numbers = [int(each.stem) for each in folder.glob("*.json") if each.stem.isdecimal()] if folder.is_dir() else []
    for path in (_file(folder, number, "json") for number in sorted(numbers)):
        with suppress(OSError, DecodeError):
            yield replace(decode(path.read_bytes(), type=Begun), outcome=_outcome(path))


def _outcome(path: Path) -> str:
    """How a command ended, by the file of what was begun; "" while it runs. Raises OSError."""
    with suppress(FileNotFoundError):
        return path.with_suffix(".done").read_text() or RESTARTED
    with open(path, "rb") as file:
        try:
            posix.lock(file, waits=False, shared=True)
        except BlockingIOError:
            return ""
    return RESTARTED
