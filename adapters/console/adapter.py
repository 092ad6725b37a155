"""The console for programs and shells: lines in, lines out.

Both modes read as far as the gateway keeps up: while a lane is full or the store is unreachable,
reading pauses and the pipe fills, which is how a pipe says "wait". The end of the input ends `run`;
so does an output whose reader has left.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from adapters.console import codec
from adapters.console.codec import Complaint, Line, LineSplitter, Request
from adapters.console.folder import LARGEST, Folder, told
from adapters.console.intake import Intake
from adapters.console.pipes import FileDescriptorLike, InputReader, Interrupted, OutputWriter
from gateway.domain.adapter import Accept, Limits
from gateway.domain.chat import Inbound, Outbound
from gateway.runtime.clock import Clock, Ids
from gateway.runtime.errors import Disconnected

BATCH: Final = 64  # most lines per accept: enough to share a commit, few enough to answer soon


class _LineConsole(ABC):
    """What both line modes share; they differ in how a line is read and how a message is shown."""

    name = codec.PLATFORM
    account = "terminal"  # two at once would each show what was meant for the other
    waits_for_account = True
    reader_sends = True

    def __init__(
        self,
        stdin: FileDescriptorLike,
        stdout: FileDescriptorLike,
        *,
        ids: Ids,
        clock: Clock,
        files: Path | None = None,
    ) -> None:
        self._reader = InputReader(stdin)
        self._writer = OutputWriter(stdout)
        self._folder = Folder(files)
        self._ids = ids
        self._clock = clock
        self._intake = Intake(clock=clock, complain=self._complain_of_outage)

    @abstractmethod
    def _decode(self, line: Line) -> Request | Complaint | None:
        """What a line asks for; None if it is to be ignored."""

    @abstractmethod
    async def _show_complaint(self, complaint: Complaint) -> None:
        """Tell the sender why a line was not taken. Raises Disconnected."""

    @abstractmethod
    async def _show(self, outbound: Outbound) -> None:
        """Write a message out. Raises Disconnected."""

    async def run(self, accept: Accept) -> None:
        """Read until the input ends, the output's reader leaves or the task is cancelled."""
        splitter = LineSplitter()
        try:
            while chunk := await self._reader.read():
                await self._take(splitter.feed(chunk), accept)
            await self._take(splitter.end(), accept)
        except Interrupted:
            return  # by `aclose`, or by a send that found nobody reading
        except Disconnected as error:
            await self._complain(Complaint(id=self._ids.new("error"), text=str(error)))
        finally:
            self._reader.interrupt()

    async def send(self, outbound: Outbound) -> str:
        """Write the message and return once it has left this process. Raises Disconnected."""
        try:
            await self._show(outbound)
        except Disconnected:
            self._leave_if_gone()
            raise
        self._intake.sent(outbound.to.chat)
        return outbound.id

    async def send_file(self, outbound: Outbound, content: bytes) -> str:
        """Put a file into the folder for them, and say where. Raises AdapterError."""
        place = await asyncio.to_thread(self._folder.put, outbound, content)
        return await self.send(replace(outbound, text=told(outbound, place)))

    async def aclose(self) -> None:
        """Stop reading and writing; the descriptors stay open. Idempotent."""
        self._intake.abandon()
        self._reader.close()
        self._writer.close()

    async def _take(self, lines: Sequence[Line], accept: Accept) -> None:
        for start in range(0, len(lines), BATCH):
            batch = await self._requests(lines[start : start + BATCH])
            await self._intake.offer(batch, accept)
            if self._writer.gone:
                raise Interrupted  # nobody would see an answer to what is left

    async def _requests(self, lines: Sequence[Line]) -> list[Inbound]:
        batch = []
        for line in lines:
            request = self._decode(line)
            if isinstance(request, Complaint):
                await self._complain(request)
            elif request is not None:
                event_id = self._ids.new("line")
                batch.append(codec.inbound(request, event_id=event_id, sent_at=self._clock.now()))
        return batch

    async def _complain(self, complaint: Complaint) -> None:
        try:
            await self._show_complaint(complaint)
        except Disconnected:
            self._leave_if_gone()  # else the output is full just now: a complaint is not worth waiting for

    async def _complain_of_outage(self, text: str) -> None:
        await self._complain(Complaint(id=self._ids.new("error"), text=text))

    def _leave_if_gone(self) -> None:
        if self._writer.gone:
            self._intake.abandon()
            self._reader.interrupt()


class JsonConsole(_LineConsole):
    """`legato chat --json`: one JSON object per line, both ways; see `codec` for the fields.

    `stdin` and `stdout` are descriptors or open files; only their descriptors are used. `files` is the
    folder that files go into. An
    Outbound's line carries its id, so that a reader can tell a repeat after a crash.
    """

    limits = Limits(text_units=None, ambiguous_retries=None, pauses_when_full=True, trusted=True, file_bytes=LARGEST)

    def _decode(self, line: Line) -> Request | Complaint | None:
        return codec.decode_json(line)

    async def _show_complaint(self, complaint: Complaint) -> None:
        await self._writer.write(codec.encode_json_complaint(complaint))

    async def _show(self, outbound: Outbound) -> None:
        await self._writer.write(codec.encode_json(outbound))


class PipeConsole(_LineConsole):
    """`legato chat` between pipes: a line is a message to the chat "main", blank lines are ignored.

    Answers (of the model and of commands) go to `stdout`, each followed by an empty line, and
    nothing else does, so that `answer=$(echo … | legato chat)` holds the answer. Notices ("· ") and
    errors ("! ") go to `stderr`; without one, or once it has closed, to `stdout`: none is lost.
    """

    limits = Limits(text_units=None, ambiguous_retries=1, pauses_when_full=True, trusted=True, file_bytes=LARGEST)

    def __init__(
        self,
        stdin: FileDescriptorLike,
        stdout: FileDescriptorLike,
        *,
        ids: Ids,
        clock: Clock,
        stderr: FileDescriptorLike | None = None,
        files: Path | None = None,
    ) -> None:
        super().__init__(stdin, stdout, ids=ids, clock=clock, files=files)
        self._asides = self._writer if stderr is None else OutputWriter(stderr)

    def _decode(self, line: Line) -> Request | Complaint | None:
        return codec.decode_plain(line)

    async def _show_complaint(self, complaint: Complaint) -> None:
        await self._write_aside(codec.encode_aside("error", complaint.text))

    async def _show(self, outbound: Outbound) -> None:
        line = codec.encode_plain(outbound)
        if outbound.kind in ("reply", "command"):
            await self._writer.write(line)
        else:
            await self._write_aside(line)

    async def _write_aside(self, line: bytes) -> None:
        try:
            await self._asides.write(line)
        except Disconnected:
            if self._asides is self._writer:
                raise
            await self._writer.write(line)

    async def aclose(self) -> None:
        """Stop reading and writing; the descriptors stay open. Idempotent."""
        await super().aclose()
        self._asides.close()
