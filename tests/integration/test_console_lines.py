"""The line modes read from real pipes and files: nothing blocks, nothing is lost, everything ends."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from adapters.console.adapter import JsonConsole
from adapters.console.codec import DEFAULT_USER, MAX_LINE
from gateway.domain.adapter import Accepted
from gateway.people.access import AccessSettings
from tests.support.console_pipes import Gateway, Pipe, break_down, lines, outbound, refuse, take_first
from tests.support.fakes import ManualClock, SequentialIds
from tests.support.gateway import FakeAdapter, config_in, running
from tests.support.hosts import host


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


class TestReading:
    async def test_a_user_who_is_not_let_in_is_told_so(self, console: JsonConsole, stdin: Pipe, stdout: Pipe) -> None:
        gateway = Gateway(lambda batch: [Accepted(event_id=each.event_id, status="refused") for each in batch])
        await stdin.say(lines({"text": "hi", "user": "eve", "id": "e1"}), end=True)
        await console.run(gateway)
        said = json.loads(await stdout.line())
        assert (said["kind"], said["answers"]) == ("error", "e1")
        assert "console:eve may not talk to the bot. Add console:eve to access.allow" in said["text"]

    async def test_nobody_goes_by_the_operators_name(self, console: JsonConsole, stdin: Pipe, stdout: Pipe) -> None:
        gateway = Gateway()
        await stdin.say(lines({"text": "/pair", "user": "local", "id": "e1"}, {"text": "hi"}), end=True)
        await console.run(gateway)
        assert gateway.texts == ["hi"]
        assert 'leave \\"user\\" out' in (await stdout.line()).decode()

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
            console = JsonConsole(source, stdout.into, host(clock, ids=SequentialIds()))
            await console.run(gateway)
            await console.aclose()
        assert gateway.texts == (["from a file"] if content else [])

    async def test_a_terminal_that_hangs_up_ends_the_input(self, stdout: Pipe, clock: ManualClock) -> None:
        master, slave = os.openpty()
        gateway = Gateway()
        console = JsonConsole(slave, stdout.into, host(clock, ids=SequentialIds()))
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
        console = JsonConsole(folder, stdout.into, host(clock, ids=SequentialIds()))
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
            (
                "error",
                "I cannot store your messages right now (the disk is full). I keep trying, and nothing is lost.",
            )
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
        assert (await stdout.everything()).count(b"cannot store your messages") == 2

    async def test_cancelling_ends_an_outage(self, console: JsonConsole, stdin: Pipe, clock: ManualClock) -> None:
        await stdin.say(lines({"text": "hi"}))
        run = asyncio.create_task(console.run(Gateway(break_down)))
        await clock.until_pending()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run


async def test_who_is_named_in_a_line_has_the_rights_of_that_name_and_nobody_elses(tmp_path: Path) -> None:
    """Without a name it is the operator. Once, whoever was named was an admin."""
    config = config_in(tmp_path, access=AccessSettings(allow=("console:ann",), admins=("console:bob",)))
    adapter = FakeAdapter(name="console", limits=JsonConsole.limits)
    async with running(tmp_path, config=config, adapter=adapter) as live:
        people = [adapter.inbound("/whoami", user=user, chat=user) for user in (DEFAULT_USER, "ann", "bob", "eve")]
        assert [each.status for each in await adapter.receive(*people)] == ["new", "new", "new", "refused"]
        said = {each.source.user: (await live.answer(each.event_id)).text for each in people[:3]}
        assert {user for user, text in said.items() if "admin" in text} == {DEFAULT_USER, "bob"}
