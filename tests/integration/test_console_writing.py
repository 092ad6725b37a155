"""The line modes write to real pipes and files: whole lines, in order, whoever reads them."""

from __future__ import annotations

import asyncio
import json
import os
import resource
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from adapters.console.adapter import JsonConsole, PipeConsole
from gateway.domain.adapter import Adapter
from gateway.domain.chat import OutboundKind
from gateway.runtime.errors import Disconnected
from tests.support.console_pipes import Gateway, Pipe, lines, outbound, refuse
from tests.support.fakes import ManualClock, SequentialIds
from tests.support.hosts import host
from tests.support.waiting import eventually


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
    console = JsonConsole(stdin.out, stdout.into, host(clock, ids=SequentialIds()))
    yield console
    await console.aclose()


@pytest.fixture
async def plain(stdin: Pipe, stdout: Pipe, clock: ManualClock) -> AsyncIterator[PipeConsole]:
    console = PipeConsole(stdin.out, stdout.into, host(clock, ids=SequentialIds()))
    yield console
    await console.aclose()


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
                with pytest.raises(Disconnected, match="The program that read"):
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

    async def test_when_the_reader_leaves_before_a_question_the_run_ends(
        self, stdin: Pipe, stdout: Pipe, clock: ManualClock
    ) -> None:
        asks = host(clock, ids=SequentialIds(), question="hi", fresh=True)
        gateway, console = Gateway(), PipeConsole(stdin.out, stdout.into, asks)
        stdout.close(stdout.out)
        async with asyncio.TaskGroup() as group:
            group.create_task(console.run(gateway))
            with pytest.raises(Disconnected):
                await console.send(outbound("of an earlier conversation"))
        await console.aclose()
        assert gateway.texts == ["/new"]

    async def test_a_complaint_that_nobody_reads_ends_the_run(
        self, console: JsonConsole, stdin: Pipe, stdout: Pipe
    ) -> None:
        stdout.close(stdout.out)
        await stdin.say(b"nonsense\n")
        await console.run(Gateway())

    async def test_a_full_disk_fails_the_send_but_ends_nothing(self, stdin: Pipe, clock: ManualClock) -> None:
        full = os.open("/dev/full", os.O_WRONLY)
        console = JsonConsole(stdin.out, full, host(clock, ids=SequentialIds()))
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
        console = JsonConsole(stdin.out, target, host(clock, ids=SequentialIds()))
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
        console = PipeConsole(stdin.out, stdout.into, host(clock, ids=SequentialIds()), stderr=stderr.into)
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

    async def test_an_error_makes_the_program_end_with_one(self, plain: PipeConsole) -> None:
        await plain.send(outbound("fine"))
        assert not plain.failed
        await plain.send(outbound("it broke", "error"))
        assert plain.failed


class TestQuestions:
    async def test_a_question_is_asked_alone_and_its_answer_is_all_that_is_printed(
        self, stdin: Pipe, stdout: Pipe, clock: ManualClock
    ) -> None:
        stderr, gateway = Pipe(), Gateway()
        asks = host(clock, ids=SequentialIds(), question="what is\nthis?", fresh=True)
        console = PipeConsole(stdin.out, stdout.into, asks, stderr=stderr.into)
        await stdin.say(b"nobody reads this\n")
        asking = asyncio.create_task(console.run(gateway))
        await eventually(lambda: gateway.taken)
        await console.send(outbound("before the question", answers="line_of_yesterday"))
        await console.send(outbound("Started a fresh session.", "command", answers="fresh_of_yesterday"))
        await console.send(outbound("Started a fresh session.", "command", answers=gateway.taken[0].event_id))
        await asking
        assert [(each.text, each.source.chat) for each in gateway.taken] == [
            ("/new", "question"),
            ("what is\nthis?", "question"),
        ]
        asked = gateway.taken[1].event_id
        await console.send(outbound("of yesterday", answers="line_of_yesterday"))
        await console.send(outbound("an answer", answers=asked))
        await console.aclose()
        stdout.close(stdout.into)
        stderr.close(stderr.into)
        assert (await stdout.everything()).decode() == "an answer\n"
        assert (await stderr.everything()).decode() == "before the question\n\nof yesterday\n\n"
        stderr.close()

    async def test_an_answer_that_cannot_be_written_is_told_once(self, stdin: Pipe, clock: ManualClock) -> None:
        stderr, gateway, full = Pipe(), Gateway(), os.open("/dev/full", os.O_WRONLY)
        asks = host(clock, ids=SequentialIds(), question="hi")
        console = PipeConsole(stdin.out, full, asks, stderr=stderr.into)
        await console.run(gateway)
        for _ in range(2):
            with pytest.raises(Disconnected):
                await console.send(outbound("an answer", answers=gateway.taken[0].event_id))
        await console.aclose()
        os.close(full)
        stderr.close(stderr.into)
        said = (await stderr.everything()).decode()
        assert (said, console.failed) == ("! The output cannot be written (No space left on device).\n", True)
        stderr.close()

    async def test_between_pipes_it_is_told_once_too(self, stdin: Pipe, clock: ManualClock) -> None:
        stderr, full = Pipe(), os.open("/dev/full", os.O_WRONLY)
        console = PipeConsole(stdin.out, full, host(clock, ids=SequentialIds()), stderr=stderr.into)
        for _ in range(2):
            with pytest.raises(Disconnected):
                await console.send(outbound("an answer"))
        await console.aclose()
        os.close(full)
        stderr.close(stderr.into)
        said = (await stderr.everything()).decode()
        assert (said, console.failed) == ("! The output cannot be written (No space left on device).\n", True)
        stderr.close()

    @pytest.mark.parametrize(("kind", "failed"), [("reply", False), ("error", True)])
    async def test_a_question_in_json_fails_with_its_error(
        self, stdin: Pipe, stdout: Pipe, clock: ManualClock, kind: OutboundKind, failed: bool
    ) -> None:
        gateway = Gateway()
        console = JsonConsole(stdin.out, stdout.into, host(clock, ids=SequentialIds(), question="hello"))
        await console.run(gateway)
        await console.send(outbound("x", kind, answers=gateway.taken[0].event_id))
        await console.aclose()
        assert (gateway.texts, console.failed) == (["hello"], failed)


class TestPieces:
    async def test_who_asks_for_pieces_gets_what_each_adds(
        self, console: JsonConsole, stdin: Pipe, stdout: Pipe
    ) -> None:
        """The wish belongs to the line: another line of the same chat changes nothing about it."""
        asking = b'{"text": "hi", "stream": true, "id": "e_1"}\n{"text": "and", "id": "e_2"}\n'
        await stdin.say(asking, end=True)
        await console.run(Gateway())
        for text in ("One", "One two", "One two", "New", "New words"):
            await console.show_partial(outbound(text, answers="e_1"))
            await console.show_partial(outbound(text, answers="e_2", chat="other"))
        await console.send(outbound("New words", answers="e_1"))
        stdout.close(stdout.into)
        *pieces, whole = map(json.loads, (await stdout.everything()).splitlines())
        assert [(piece["kind"], piece["at"], piece["text"]) for piece in pieces] == [
            ("piece", 0, "One"),
            ("piece", 3, " two"),
            ("piece", 0, "New"),
            ("piece", 3, " words"),
        ]
        for field in ("id", "chat", "session", "answers"):
            assert {piece[field] for piece in pieces} == {whole[field]}
        assert (whole["kind"], whole["text"]) == ("reply", "New words")


def test_both_are_adapters(stdin: Pipe, stdout: Pipe, clock: ManualClock) -> None:
    adapters: list[Adapter] = [
        JsonConsole(stdin.out, stdout.into, host(clock, ids=SequentialIds())),
        PipeConsole(stdin.out, stdout.into, host(clock, ids=SequentialIds())),
    ]
    assert {adapter.name for adapter in adapters} == {"console"}
    assert all(adapter.limits.pauses_when_full and adapter.limits.trusted for adapter in adapters)
