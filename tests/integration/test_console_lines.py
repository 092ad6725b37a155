"""The line modes on real pipes and files: nothing blocks, nothing is lost, everything ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import select
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from adapters.console import JsonConsole, PipeConsole
from adapters.console.codec import MAX_LINE
from gateway.adapter import Accepted, Adapter
from gateway.domain.chat import ChatAddress, Inbound, Outbound, OutboundKind, SessionKey
from gateway.errors import Disconnected, StoreUnavailable
from tests.fakes import ManualClock, SequentialIds


class Pipe:
    """A pipe whose ends close with the test; reading it never blocks the loop."""

    def __init__(self) -> None:
        self.out, self.into = os.pipe()
        self._open = {self.out, self.into}
        self._read = b""  # beyond the last line handed out

    def close(self, *ends: int) -> None:
        for end in ends or (self.out, self.into):
            if end in self._open:
                self._open.remove(end)
                os.close(end)

    async def say(self, data: bytes, *, end: bool = False) -> None:
        def write() -> None:
            with contextlib.suppress(BrokenPipeError):
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(self.into, rest) :]

        await asyncio.to_thread(write)
        if end:
            self.close(self.into)

    async def line(self) -> bytes:
        def read() -> bytes:
            while b"\n" not in self._read:
                self._read += os.read(self.out, 65536)
            line, _, self._read = self._read.partition(b"\n")
            return line + b"\n"

        return await asyncio.to_thread(read)

    async def has_data(self) -> None:
        await asyncio.to_thread(select.select, [self.out], [], [])

    async def everything(self) -> bytes:
        def read() -> bytes:
            return self._read + b"".join(iter(lambda: os.read(self.out, 65536), b""))

        return await asyncio.to_thread(read)


class Gateway:
    """An `accept` that takes everything, or does what `plan` says for each call in turn."""

    def __init__(self, *plan: Callable[[Sequence[Inbound]], Sequence[Accepted]]) -> None:
        self.plan = list(plan)
        self.batches: list[list[Inbound]] = []
        self.taken: list[Inbound] = []
        self.called = asyncio.Event()

    async def __call__(self, batch: Sequence[Inbound]) -> Sequence[Accepted]:
        self.batches.append(list(batch))
        self.called.set()
        results = self.plan.pop(0)(batch) if self.plan else [taken(inbound) for inbound in batch]
        new = {result.event_id for result in results if result.status == "new"}
        self.taken += [inbound for inbound in batch if inbound.event_id in new]
        return results

    @property
    def texts(self) -> list[str]:
        return [inbound.text for inbound in self.taken]


def taken(inbound: Inbound) -> Accepted:
    return Accepted(event_id=inbound.event_id, status="new")


def refuse(batch: Sequence[Inbound]) -> Sequence[Accepted]:
    return [Accepted(event_id=inbound.event_id, status="full") for inbound in batch]


def take_first(batch: Sequence[Inbound]) -> Sequence[Accepted]:
    return [taken(batch[0]), *refuse(batch[1:])]


def break_down(batch: Sequence[Inbound]) -> Sequence[Accepted]:
    raise StoreUnavailable("the disk is full")


def outbound(text: str, kind: OutboundKind = "reply", chat: str = "main", id_: str = "o_1") -> Outbound:
    return Outbound(
        id=id_,
        key=SessionKey(platform="console", chat=chat),
        to=ChatAddress(platform="console", chat=chat),
        kind=kind,
        text=text,
    )


@pytest.fixture
def stdin() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.close()


@pytest.fixture
def stdout() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def console(stdin: Pipe, stdout: Pipe, clock: ManualClock) -> AsyncIterator[JsonConsole]:
    console = JsonConsole(stdin.out, stdout.into, ids=SequentialIds(), clock=clock)
    yield console
    await console.aclose()


@pytest.fixture
async def plain(stdin: Pipe, stdout: Pipe, clock: ManualClock) -> AsyncIterator[PipeConsole]:
    console = PipeConsole(stdin.out, stdout.into, ids=SequentialIds(), clock=clock)
    yield console
    await console.aclose()


def lines(*values: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


class TestReading:
    async def test_lines_become_inbounds_until_the_input_ends(self, console: JsonConsole, stdin: Pipe) -> None:
        gateway = Gateway()
        await stdin.say(lines({"text": "one"}, {"text": "two", "id": "x"}) + b'{"text": "three"}', end=True)
        await console.run(gateway)
        assert gateway.texts == ["one", "two", "three"]
        assert [inbound.event_id for inbound in gateway.taken] == ["line_000001", "x", "line_000003"]
        assert gateway.taken[0].sent_at == 1_700_000_000.0

    async def test_what_is_already_there_is_accepted_together(self, console: JsonConsole, stdin: Pipe) -> None:
        gateway = Gateway()
        await stdin.say(lines(*({"text": str(n)} for n in range(150))), end=True)
        await console.run(gateway)
        assert [len(batch) for batch in gateway.batches] == [64, 64, 22]
        assert gateway.texts == [str(n) for n in range(150)]

    async def test_a_line_is_taken_as_soon_as_it_comes(self, console: JsonConsole, stdin: Pipe) -> None:
        gateway = Gateway()
        async with asyncio.TaskGroup() as group:
            group.create_task(console.run(gateway))
            for text in ("one", "two"):
                gateway.called.clear()
                await stdin.say(lines({"text": text}))
                await gateway.called.wait()
            stdin.close(stdin.into)
        assert gateway.texts == ["one", "two"]

    async def test_bad_lines_are_answered_and_reading_goes_on(
        self, console: JsonConsole, stdin: Pipe, stdout: Pipe
    ) -> None:
        gateway = Gateway()
        await stdin.say(b'nonsense\n\n{"text": 1}\n' + lines({"text": "fine"}), end=True)
        await console.run(gateway)
        stdout.close(stdout.into)
        answers = [json.loads(line) for line in (await stdout.everything()).splitlines()]
        assert gateway.texts == ["fine"]
        assert [(answer["kind"], answer["id"]) for answer in answers] == [("error", "line-1"), ("error", "line-3")]

    async def test_a_message_of_ten_megabytes(self, console: JsonConsole, stdin: Pipe) -> None:
        gateway = Gateway()
        text = "é" * (5 * 1024 * 1024)
        raw = json.dumps({"text": text}, ensure_ascii=False).encode() + b"\n"
        async with asyncio.TaskGroup() as group:
            group.create_task(console.run(gateway))
            await stdin.say(raw + lines({"text": "after"}), end=True)
        assert [text == got for got, text in zip(gateway.texts, [text, "after"], strict=True)] == [True, True]

    async def test_a_line_over_the_limit_is_refused_and_the_next_one_is_fine(
        self, console: JsonConsole, stdin: Pipe, stdout: Pipe
    ) -> None:
        gateway = Gateway()
        async with asyncio.TaskGroup() as group:
            group.create_task(console.run(gateway))
            await stdin.say(b"x" * (MAX_LINE + 1) + b"\n" + lines({"text": "after"}), end=True)
        assert gateway.texts == ["after"]
        assert "longer than 16 MB" in json.loads(await stdout.line())["text"]

    @pytest.mark.parametrize("content", [b"", lines({"text": "from a file"})])
    async def test_a_file_and_dev_null_are_inputs_too(
        self, content: bytes, tmp_path: Path, stdout: Pipe, clock: ManualClock
    ) -> None:
        path = tmp_path / "in.jsonl"
        path.write_bytes(content)
        gateway = Gateway()
        with (path if content else Path(os.devnull)).open("rb") as source:
            console = JsonConsole(source, stdout.into, ids=SequentialIds(), clock=clock)
            await console.run(gateway)
            await console.aclose()
        assert gateway.texts == (["from a file"] if content else [])

    async def test_a_terminal_that_hangs_up_ends_the_input(self, stdout: Pipe, clock: ManualClock) -> None:
        master, slave = os.openpty()
        gateway = Gateway()
        console = JsonConsole(slave, stdout.into, ids=SequentialIds(), clock=clock)
        async with asyncio.TaskGroup() as group:
            group.create_task(console.run(gateway))
            os.write(master, lines({"text": "typed"}))
            await gateway.called.wait()
            os.close(master)
        await console.aclose()
        os.close(slave)
        assert gateway.texts == ["typed"]

    async def test_an_input_that_cannot_be_read_is_reported(
        self, tmp_path: Path, stdout: Pipe, clock: ManualClock
    ) -> None:
        folder = os.open(tmp_path, os.O_RDONLY)
        console = JsonConsole(folder, stdout.into, ids=SequentialIds(), clock=clock)
        await console.run(Gateway())
        await console.aclose()
        os.close(folder)
        assert json.loads(await stdout.line())["text"] == "The standard input cannot be read (Is a directory)."

    async def test_cancelling_ends_a_run_that_waits_for_input(self, console: JsonConsole) -> None:
        run = asyncio.create_task(console.run(Gateway()))
        await asyncio.sleep(0)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    async def test_closing_ends_a_run_that_waits_for_input(self, console: JsonConsole) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(console.run(Gateway()))
            await asyncio.sleep(0)
            await console.aclose()
            await console.aclose()


class TestPausing:
    async def test_a_full_lane_is_offered_the_same_lines_again_in_order(
        self, console: JsonConsole, stdin: Pipe, clock: ManualClock
    ) -> None:
        gateway = Gateway(refuse, take_first, refuse)
        await stdin.say(lines(*({"text": str(n)} for n in range(3))), end=True)
        async with asyncio.TaskGroup() as group:
            group.create_task(console.run(gateway))
            for pause in (0.05, 0.05, 0.1):  # short again after some progress
                await clock.until_pending()
                assert clock.pending == pytest.approx([pause])
                await clock.advance(pause)
        assert gateway.texts == ["0", "1", "2"]
        assert [[inbound.text for inbound in batch] for batch in gateway.batches] == [
            ["0", "1", "2"],
            ["0", "1", "2"],
            ["1", "2"],
            ["1", "2"],
        ]

    async def test_the_pause_grows_to_one_second(self, console: JsonConsole, stdin: Pipe, clock: ManualClock) -> None:
        gateway = Gateway(*[refuse] * 8)
        await stdin.say(lines({"text": "hi"}), end=True)
        pauses = []
        async with asyncio.TaskGroup() as group:
            group.create_task(console.run(gateway))
            for _ in range(8):
                await clock.until_pending()
                pauses.append(round(clock.pending[0], 3))
                await clock.advance(clock.pending[0])
        assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1, 1, 1]
        assert gateway.texts == ["hi"]

    async def test_sending_to_the_chat_ends_the_pause_at_once(
        self, console: JsonConsole, stdin: Pipe, clock: ManualClock
    ) -> None:
        gateway = Gateway(refuse)
        await stdin.say(lines({"text": "hi", "chat": "busy"}), end=True)
        async with asyncio.TaskGroup() as group:
            group.create_task(console.run(gateway))
            await clock.until_pending()
            await console.send(outbound("elsewhere", chat="other"))
            assert gateway.texts == []
            await console.send(outbound("done", chat="busy"))
        assert gateway.texts == ["hi"]

    async def test_nothing_more_is_read_while_a_lane_is_full(
        self, console: JsonConsole, stdin: Pipe, clock: ManualClock
    ) -> None:
        gateway = Gateway(refuse)
        async with asyncio.TaskGroup() as group:
            group.create_task(console.run(gateway))
            await stdin.say(lines({"text": "one"}))
            await clock.until_pending()
            await stdin.say(lines({"text": "two", "chat": "other"}), end=True)
            await clock.settle()
            assert len(gateway.batches) == 1
            await clock.advance(0.05)
        assert gateway.texts == ["one", "two"]

    async def test_an_outage_of_the_store_is_told_once_and_loses_nothing(
        self, console: JsonConsole, stdin: Pipe, stdout: Pipe, clock: ManualClock
    ) -> None:
        gateway = Gateway(break_down, break_down, break_down)
        await stdin.say(lines({"text": "hi"}), end=True)
        async with asyncio.TaskGroup() as group:
            group.create_task(console.run(gateway))
            for _ in range(3):
                await clock.until_pending()
                await clock.advance(clock.pending[0])
        stdout.close(stdout.into)
        said = [json.loads(line) for line in (await stdout.everything()).splitlines()]
        assert gateway.texts == ["hi"]
        assert [(line["kind"], line["text"]) for line in said] == [
            ("error", "Messages cannot be stored just now (the disk is full): they wait until that works again.")
        ]

    async def test_the_next_outage_is_told_again(
        self, console: JsonConsole, stdin: Pipe, stdout: Pipe, clock: ManualClock
    ) -> None:
        gateway = Gateway(break_down, refuse, break_down)
        await stdin.say(lines({"text": "hi"}), end=True)
        async with asyncio.TaskGroup() as group:
            group.create_task(console.run(gateway))
            for _ in range(3):
                await clock.until_pending()
                await clock.advance(clock.pending[0])
        stdout.close(stdout.into)
        assert (await stdout.everything()).count(b"cannot be stored") == 2

    async def test_cancelling_ends_an_outage(self, console: JsonConsole, stdin: Pipe, clock: ManualClock) -> None:
        await stdin.say(lines({"text": "hi"}))
        run = asyncio.create_task(console.run(Gateway(break_down)))
        await clock.until_pending()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run


class TestWriting:
    async def test_a_line_has_left_when_send_returns(self, console: JsonConsole, stdout: Pipe) -> None:
        assert await console.send(outbound("hi")) == "o_1"
        assert json.loads(os.read(stdout.out, 1000))["text"] == "hi"

    async def test_a_reader_that_does_not_read_does_not_block_the_loop(
        self, console: JsonConsole, stdout: Pipe
    ) -> None:
        big = "x" * 1_000_000
        async with asyncio.TaskGroup() as group:
            sends = [group.create_task(console.send(outbound(big, id_=f"o_{n}"))) for n in range(3)]
            await stdout.has_data()  # the loop goes on; with a blocking write this would never return
            assert not any(send.done() for send in sends)
            answers = [json.loads(await stdout.line()) for _ in sends]
        assert [answer["id"] for answer in answers] == ["o_0", "o_1", "o_2"]
        assert all(answer["text"] == big for answer in answers)

    async def test_a_cancelled_send_never_tears_a_line(self, console: JsonConsole, stdout: Pipe) -> None:
        big = asyncio.create_task(console.send(outbound("x" * 300_000)))
        queued = asyncio.create_task(console.send(outbound("never", id_="o_2")))
        await stdout.has_data()
        big.cancel()
        queued.cancel()
        await asyncio.gather(big, queued, return_exceptions=True)
        async with asyncio.TaskGroup() as group:
            last = group.create_task(console.send(outbound("last", id_="o_3")))
            assert json.loads(await stdout.line())["id"] == "o_1"
            assert json.loads(await stdout.line())["id"] == "o_3"
            await last

    async def test_when_the_reader_leaves_sends_fail_and_the_run_ends(self, console: JsonConsole, stdout: Pipe) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(console.run(Gateway()))
            stdout.close(stdout.out)
            for _ in range(2):
                with pytest.raises(Disconnected, match="gone"):
                    await console.send(outbound("hi"))

    async def test_when_the_reader_leaves_a_paused_run_ends_too(
        self, console: JsonConsole, stdin: Pipe, stdout: Pipe, clock: ManualClock
    ) -> None:
        gateway = Gateway(refuse, refuse)
        await stdin.say(lines({"text": "hi"}))
        async with asyncio.TaskGroup() as group:
            group.create_task(console.run(gateway))
            await clock.until_pending()
            stdout.close(stdout.out)
            with pytest.raises(Disconnected):
                await console.send(outbound("hi", chat="other"))
        assert gateway.texts == []

    async def test_a_complaint_that_nobody_reads_ends_the_run(
        self, console: JsonConsole, stdin: Pipe, stdout: Pipe
    ) -> None:
        stdout.close(stdout.out)
        await stdin.say(b"nonsense\n")
        await console.run(Gateway())

    async def test_a_full_disk_fails_the_send_but_ends_nothing(self, stdin: Pipe, clock: ManualClock) -> None:
        full = os.open("/dev/full", os.O_WRONLY)
        console = JsonConsole(stdin.out, full, ids=SequentialIds(), clock=clock)
        gateway = Gateway()
        async with asyncio.TaskGroup() as group:
            group.create_task(console.run(gateway))
            with pytest.raises(Disconnected, match="No space left"):
                await console.send(outbound("hi"))
            await stdin.say(b"nonsense\n" + lines({"text": "still here"}), end=True)
        await console.aclose()
        os.close(full)
        assert gateway.texts == ["still here"]

    async def test_a_line_that_failed_half_way_ends_before_the_next_begins(
        self, stdin: Pipe, tmp_path: Path, clock: ManualClock
    ) -> None:
        path = tmp_path / "out.jsonl"
        target = os.open(path, os.O_WRONLY | os.O_CREAT)
        console = JsonConsole(stdin.out, target, ids=SequentialIds(), clock=clock)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (6000, before[1]))  # a disk with 6,000 bytes left
        try:
            with pytest.raises(Disconnected, match="too large"):
                await console.send(outbound("x" * 10_000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        await console.send(outbound("y", id_="o_2"))
        await console.aclose()
        os.close(target)
        assert [json.loads(line)["id"] for line in path.read_bytes().splitlines()] == ["o_1", "o_2"]

    async def test_after_closing_sends_fail(self, console: JsonConsole) -> None:
        await console.aclose()
        with pytest.raises(Disconnected):
            await console.send(outbound("hi"))

    async def test_closing_ends_a_send_that_nobody_reads(self, console: JsonConsole, stdout: Pipe) -> None:
        send = asyncio.create_task(console.send(outbound("x" * 1_000_000)))
        await stdout.has_data()
        await console.aclose()
        with pytest.raises(Disconnected):
            await send


class TestPipes:
    async def test_a_line_is_a_message_and_a_block_is_an_answer(
        self, plain: PipeConsole, stdin: Pipe, stdout: Pipe
    ) -> None:
        gateway = Gateway()
        await stdin.say("hello\n\n grüß dich \nlast".encode(), end=True)
        await plain.run(gateway)
        await plain.send(outbound("one\ntwo"))
        await plain.send(outbound("take care", "notice"))
        await plain.send(outbound("it broke", "error"))
        await plain.send(outbound("\x1b[31mhelp\x1b[0m", "command"))
        stdout.close(stdout.into)
        assert gateway.texts == ["hello", " grüß dich ", "last"]
        assert Counter(inbound.source.chat for inbound in gateway.taken) == {"main": 3}
        assert (await stdout.everything()).decode() == "one\ntwo\n\n· take care\n! it broke\nhelp\n\n"

    async def test_asides_go_to_stderr_so_that_the_output_holds_the_answer(
        self, stdin: Pipe, stdout: Pipe, clock: ManualClock
    ) -> None:
        stderr = Pipe()
        console = PipeConsole(stdin.out, stdout.into, ids=SequentialIds(), clock=clock, stderr=stderr.into)
        await console.send(outbound("careful", "notice"))
        await console.send(outbound("the answer"))
        assert await stderr.line() == "· careful\n".encode()
        stderr.close(stderr.out)
        await console.send(outbound("it broke", "error"))  # nobody reads stderr any more: not lost
        await console.aclose()
        stdout.close(stdout.into)
        stderr.close()
        assert (await stdout.everything()).decode() == "the answer\n\n! it broke\n"

    async def test_invalid_text_is_answered(self, plain: PipeConsole, stdin: Pipe, stdout: Pipe) -> None:
        gateway = Gateway()
        await stdin.say(b"gr\xfc\xdf\nfine\n", end=True)
        await plain.run(gateway)
        assert gateway.texts == ["fine"]
        expected = "! Line 1 is not valid UTF-8 (byte 3) and was skipped: send it as UTF-8.\n"
        assert (await stdout.line()).decode() == expected


def test_both_are_adapters(stdin: Pipe, stdout: Pipe, clock: ManualClock) -> None:
    adapters: list[Adapter] = [
        JsonConsole(stdin.out, stdout.into, ids=SequentialIds(), clock=clock),
        PipeConsole(stdin.out, stdout.into, ids=SequentialIds(), clock=clock),
    ]
    assert {adapter.name for adapter in adapters} == {"console"}
    assert all(adapter.limits.pauses_when_full and adapter.limits.trusted for adapter in adapters)
