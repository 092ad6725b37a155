"""The console for programs and shells: lines in, lines out.

Both modes read as far as the gateway keeps up: while a lane is full or the store is unreachable,
reading pauses and the pipe fills, which is how a pipe says "wait". The end of the input ends `run`;
so does an output whose reader has left.
"""

from __future__ import annotations

import asyncio
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final, Literal

from adapters.console import codec
from adapters.console.codec import Complaint, InputLine, LineSplitter, Request
from adapters.console.folder import filed
from adapters.console.intake import Intake
from adapters.console.pipes import InputReader, Interrupted, OutputWriter, Pipe
from adapters.console.platform import LIMITS
from gateway.domain.adapter import Accept, Adapter
from gateway.domain.approval import command_meant
from gateway.domain.chat import Inbound, Outbound, SessionKey
from gateway.domain.platform import AdapterHost, AdapterSettings
from gateway.domain.reading import Recent
from gateway.runtime.errors import Disconnected
from gateway.runtime.structs import replace

BATCH: Final = 64  # most lines per accept: enough to share a commit, few enough to answer soon
_PROMPT: Final = "adapters.console.interactive"  # by name: its library takes long to load, and pipes do without it
_FRESH: Final = "fresh"  # begins the event id of the command before a question: nobody is shown its answer


class _LineConsole(ABC):
    """The common part of both line modes. They differ in reading a line and in showing a message."""

    name = codec.PLATFORM
    account = "terminal"  # two processes at once would show each other's answers
    waits_for_account = True
    is_terminal: Literal[True] = True
    reader_sends = True

    def __init__(self, stdin: Pipe, stdout: Pipe, host: AdapterHost) -> None:
        self.failed = False
        self._full = False  # whether it was told that the output takes nothing
        question = self._question = host.question
        self._chat = (host.chat or codec.QUESTIONS) if question is not None else None
        self._fresh = host.fresh
        self._asked: str | None = None  # the event id of the question
        self._swallowed: str | None = None  # the event id of a message whose answer is not shown
        self._begun = asyncio.Event()  # the new session is there
        self._left = False
        self._asking = asyncio.Event()  # something is asked about the question, or it has its answer
        self._reader = InputReader(stdin)
        # Whether a person may answer what is asked about the question. Of commands, some have no answer of their own.
        self._heard = question is not None and not question.startswith("/") and self._reader.is_terminal
        self._writer = OutputWriter(stdout)
        self._files = host.home / "files"
        self._ids, self._clock = host.ids, host.clock
        self._intake = Intake(clock=host.clock, complain=self._complain_of_outage, refuse=self._complain_of_user)

    @abstractmethod
    def _decode(self, line: InputLine) -> Request | Complaint | None:
        """Return the request in a line; None: the line is ignored."""

    @abstractmethod
    async def _show_complaint(self, complaint: Complaint) -> None:
        """Tell the sender why a line was not taken. Raises Disconnected."""

    @abstractmethod
    async def _show(self, outbound: Outbound) -> None:
        """Write a message out. Raises Disconnected."""

    async def run(self, accept: Accept) -> None:
        """Read until the input ends, the output's reader leaves or the task is cancelled. With a question, ask it and
        read nothing but a person's yes or no at a terminal."""
        splitter = LineSplitter()
        try:
            await self._open(accept)
            if self._heard:
                await self._hear_person(splitter, accept)
            while self._question is None and (chunk := await self._reader.read()):
                await self._take(splitter.feed(chunk), accept)
            await self._take(splitter.end(), accept)
        except Interrupted:
            return  # by `aclose`, or by a send that found nobody reading
        except Disconnected as error:
            await self._complain(Complaint(id=self._ids.new("error"), text=str(error)))
        finally:
            self._reader.interrupt()

    async def _open(self, accept: Accept) -> None:
        """Begin a new session and ask the question, where these are wanted. The question is sent after the session
        began; else the person would be told that it waits."""
        chat = self._chat
        if self._fresh:
            self._swallowed = self._ids.new(_FRESH)
            await self._intake.offer([self._inbound(Request(text=codec.FRESH, chat=chat), self._swallowed)], accept)
            await self._begun.wait()
            if self._left:
                raise Interrupted  # nobody would see the answer
        if self._question is not None:
            self._asked = self._ids.new("line")
            request = Request(text=codec.storable(self._question), chat=chat)
            await self._intake.offer([self._inbound(request, self._asked)], accept)

    async def _hear_person(self, splitter: LineSplitter, accept: Accept) -> None:
        """Read the answers of a person to what is asked about the question, until it has its own answer."""
        await self._asking.wait()
        while chunk := await self._reader.read():
            for line in splitter.feed(chunk):
                said = codec.decode_plain(line)
                if isinstance(said, Request) and (command_meant(said.text) or said.text.startswith("/")):
                    request = replace(said, chat=self._chat)
                    await self._intake.offer([self._inbound(request, self._ids.new("line"))], accept)
                else:
                    await self._remind()

    async def _remind(self) -> None:
        key = SessionKey(platform=codec.PLATFORM, chat=self._chat or codec.DEFAULT_CHAT)
        id_ = self._ids.new("notice")
        await self._show(Outbound(id=id_, key=key, to=key.address, kind="notice", text="Type y or n."))

    def _inbound(self, request: Request, event_id: str) -> Inbound:
        return codec.inbound(request, event_id=event_id, sent_at=self._clock.now())

    async def send(self, outbound: Outbound) -> str:
        """Write the message and return once it has left this process. Raises Disconnected."""
        if self._is_of_fresh(outbound.answers):
            return outbound.id
        self._mind_asking(outbound)
        try:
            await self._show(outbound)
        except Disconnected as error:
            await self._end_if_useless(error)
            raise
        self._note(outbound)
        self._intake.sent(outbound.to.chat)
        return outbound.id

    def _is_of_fresh(self, answers: str | None) -> bool:
        """Whether this answers the command that began a new session, be it that of an earlier process."""
        if answers is None or answers != self._swallowed:
            return self._question is not None and answers is not None and answers.startswith(f"{_FRESH}_")
        self._begun.set()
        return True

    def _mind_asking(self, outbound: Outbound) -> None:
        """Let a person answer what is asked about the question. What they typed before was not meant for it."""
        if not self._heard:
            return
        if outbound.kind == "question" and not self._asking.is_set():
            self._reader.forget_typed()
            self._asking.set()
        elif outbound.kind in ("reply", "command", "error") and outbound.answers == self._asked:
            self._reader.interrupt()
            self._asking.set()

    def _note(self, outbound: Outbound) -> None:
        """Remember whether the one question failed."""
        if outbound.kind == "error" and outbound.answers is not None and outbound.answers == self._asked:
            self.failed = True

    async def send_file(self, outbound: Outbound, content: bytes) -> str:
        return await self.send(await asyncio.to_thread(filed, self._files, outbound, content))

    async def aclose(self) -> None:
        """Stop reading and writing; the descriptors stay open. Idempotent."""
        self._intake.abandon()
        self._begun.set()
        self._reader.close()
        self._writer.close()

    async def _take(self, lines: Sequence[InputLine], accept: Accept) -> None:
        for start in range(0, len(lines), BATCH):
            batch = await self._requests(lines[start : start + BATCH])
            await self._intake.offer(batch, accept)
            if self._writer.gone:
                raise Interrupted  # nobody would see the answers to the other lines

    async def _requests(self, lines: Sequence[InputLine]) -> list[Inbound]:
        batch = []
        for line in lines:
            request = self._decode(line)
            if isinstance(request, Complaint):
                await self._complain(request)
            elif request is not None:
                batch.append(self._inbound(request, self._ids.new("line")))
        return batch

    async def _complain(self, complaint: Complaint) -> None:
        try:
            await self._show_complaint(complaint)
        except Disconnected:
            self._leave_if_gone()  # else the output is full just now: a complaint is not worth waiting for

    async def _complain_of_outage(self, text: str) -> None:
        await self._complain(Complaint(id=self._ids.new("error"), text=text))

    async def _complain_of_user(self, inbound: Inbound) -> None:
        everybody = f"{codec.PLATFORM}:*"
        who = f"{codec.PLATFORM}:{inbound.source.user}"
        text = (
            f"{who} may not talk to the bot. Add {who} to access.allow in config.yaml ({everybody} lets everybody in)."
        )
        complaint = Complaint(id=self._ids.new("error"), text=text, chat=inbound.source.chat, answers=inbound.event_id)
        await self._complain(complaint)

    async def _end_if_useless(self, error: Disconnected) -> None:
        """End if nobody sees the output. A full disk is reported once; a single question does not wait for it."""
        if not self._writer.gone and not self._full:
            self._full = True
            if self._question is not None:
                self._leave()
            await self._complain(Complaint(id=self._ids.new("error"), text=str(error)))
        self._leave_if_gone()

    def _leave_if_gone(self) -> None:
        if self._writer.gone:
            self._leave()

    def _leave(self) -> None:
        self._left = True
        self._intake.abandon()
        self._reader.interrupt()
        self._begun.set()


class JsonConsole(_LineConsole):
    """`legato chat --json`: one JSON object per line, both ways; see `codec` for the fields.

    `stdin` and `stdout` are descriptors or open files; only their descriptors are used. An Outbound's line carries its
    id, so that a reader can tell a repeat after a crash.
    """

    limits = replace(LIMITS, ambiguous_retries=None, pauses_when_full=True)

    def __init__(self, stdin: Pipe, stdout: Pipe, host: AdapterHost) -> None:
        super().__init__(stdin, stdout, host)
        # What a lane refused is never answered, and a reply that failed comes to no end: the newest are known.
        self._streams: Recent[str, None] = Recent()  # ids of the events whose lines ask for pieces
        self._growing: Recent[str, str] = Recent()  # replies as far as they were shown, by id

    def _decode(self, line: InputLine) -> Request | Complaint | None:
        return codec.decode_json(line)

    def _inbound(self, request: Request, event_id: str) -> Inbound:
        inbound = super()._inbound(request, event_id)
        if request.stream:
            self._streams[inbound.event_id] = None
        return inbound

    async def show_partial(self, outbound: Outbound) -> None:
        """Write the new part of a reply, if that was asked for. A reply that begins again is written from its start."""
        if outbound.answers not in self._streams:
            return
        text, before = outbound.text, self._growing.get(outbound.id, "")
        at = len(before) if text.startswith(before) else 0
        self._growing[outbound.id] = text
        if len(text) > at:
            await self._writer.write(codec.encode_json_piece(outbound, at))

    async def _show_complaint(self, complaint: Complaint) -> None:
        await self._writer.write(codec.encode_json_complaint(complaint))

    async def _show(self, outbound: Outbound) -> None:
        self._growing.pop(outbound.id, None)
        if outbound.answers is not None and outbound.kind in ("reply", "command", "error"):
            self._streams.pop(outbound.answers, None)
        await self._writer.write(codec.encode_json(outbound))


class PipeConsole(_LineConsole):
    """`legato chat` between pipes: a line is a message to the chat "main", blank lines are ignored.

    Answers (of the model and of commands) go to `stdout`, each followed by an empty line, and
    nothing else does, so that `answer=$(echo … | legato chat)` holds the answer. Notices ("· ") and
    errors ("! ") go to `stderr`; without one, or once it has closed, to `stdout`: none is lost. With a question
    only its answer goes to `stdout`, without an empty line behind it, and for a terminal as `styled` lays it out.
    `failed` after any error.
    """

    limits = replace(LIMITS, pauses_when_full=True)

    def __init__(
        self,
        stdin: Pipe,
        stdout: Pipe,
        host: AdapterHost,
        *,
        stderr: Pipe | None = None,
        styled: Callable[[str], str] | None = None,
    ) -> None:
        super().__init__(stdin, stdout, host)
        self._styled = styled
        self._asides = self._writer if stderr is None else OutputWriter(stderr)

    def _decode(self, line: InputLine) -> Request | Complaint | None:
        return codec.decode_plain(line)

    async def _show_complaint(self, complaint: Complaint) -> None:
        self.failed = True
        await self._write_aside(codec.marked("error", complaint.text).encode())

    def _note(self, outbound: Outbound) -> None:
        self.failed = self.failed or outbound.kind == "error"

    async def _show(self, outbound: Outbound) -> None:
        line = codec.encode_plain(outbound)
        if self._asked is not None and outbound.kind == "reply" and self._styled is not None:
            line = f"{self._styled(outbound.text)}\n\n".encode()
        answer = self._question is None or (self._asked is not None and outbound.answers == self._asked)
        if outbound.kind in ("reply", "command") and answer:
            await self._writer.write(line if self._asked is None else line.removesuffix(b"\n"))
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
        await super().aclose()
        self._asides.close()


def create(_: AdapterSettings | None, host: AdapterHost) -> Adapter:
    """Return JSON lines with `--json`, a prompt on a terminal where lines can be redrawn, else plain pipes."""
    if host.as_json:
        return JsonConsole(sys.stdin, sys.stdout, host)
    redraws = sys.stdout.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")
    if host.question is None and redraws and sys.stdin.isatty():
        prompt: Adapter = import_module(_PROMPT).InteractiveConsole(host)
        return prompt
    styled = import_module(_PROMPT).styled if host.question is not None and redraws else None
    return PipeConsole(sys.stdin, sys.stdout, host, stderr=sys.stderr, styled=styled)
