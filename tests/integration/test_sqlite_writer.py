"""The one thread that writes outlives every error of what it is given; and if it cannot, everybody is told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from gateway.domain.message import user
from gateway.runtime.errors import StoreUnavailable
from gateway.store.sqlite import writer as writing_thread
from gateway.store.sqlite.connection import Connection
from gateway.store.sqlite.writer import Writer
from tests.support.waiting import eventually


class Panic(BaseException):
    """What a library in another language raises when it gives up."""


class Ledger:
    """A table of names, and what is put aside: the names are `entered`. `trouble` is raised there first."""

    def __init__(self, path: Path) -> None:
        self.connection = Connection(str(path))
        self.connection.execute("CREATE TABLE IF NOT EXISTS names(name TEXT)")
        self.trouble: BaseException | None = None
        self.told: list[str] = []
        self.entered: list[str] = []

    def aside(self, connection: Connection) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.entered += [name for _, name, _ in connection.stored]

    @property
    def names(self) -> list[str]:
        return sorted(row[0] for row in self.connection.execute("SELECT name FROM names"))


@asynccontextmanager
async def writing(path: Path) -> AsyncIterator[tuple[Ledger, Writer]]:
    ledger = Ledger(path)
    writer = Writer(ledger.connection, path, deferred=ledger.aside, broken=ledger.told.append)
    try:
        yield ledger, writer
    finally:
        async with asyncio.timeout(60):
            await writer.aclose()
        ledger.connection.close()


def put(name: str, error: BaseException | None = None) -> Any:
    def work(connection: apsw.Connection) -> str:
        connection.execute("INSERT INTO names VALUES (?)", (name,))
        assert isinstance(connection, Connection)
        connection.stored += ((0, name, user(name)),)
        if error is not None:
            raise error
        return name

    return work


async def together(writer: Writer, *works: Any, **how: Any) -> list[Any]:
    """The outcomes of works that wait together, so that they become one transaction."""
    held, go = threading.Event(), threading.Event()

    def hold(_: apsw.Connection) -> None:
        held.set()
        assert go.wait(60)

    first = asyncio.ensure_future(writer.run(hold))
    await eventually(held.is_set)
    tasks = [asyncio.ensure_future(writer.run(work, **how)) for work in works]
    await asyncio.sleep(0)
    go.set()
    await first
    return await asyncio.gather(*tasks, return_exceptions=True)


ERRORS = [ValueError("odd"), MemoryError(), RecursionError(), Panic("gave up"), SystemExit(3)]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
async def test_an_error_fails_its_own_job_and_its_neighbours_commit(tmp_path: Path, error: BaseException) -> None:
    async with writing(tmp_path / "x.db") as (ledger, writer):
        one, failed, other = await together(writer, put("one"), put("bad", error), put("other"))
        assert (one, other) == ("one", "other")
        assert isinstance(failed, type(error) if isinstance(error, Exception) else RuntimeError)
        assert type(error).__name__ in repr(failed) + repr(failed.__cause__)
        assert ledger.names == ["one", "other"]
        assert await writer.run(put("later")) == "later"
        assert ledger.told == []
        await writer.catch_up()
        assert ledger.entered == ["one", "other", "later"]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
async def test_what_is_put_aside_fails_nobody_and_is_tried_again(
    tmp_path: Path, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing_thread, "MOST_DEFERRED", 4)
    async with writing(tmp_path / "x.db") as (ledger, writer):
        ledger.trouble = error
        for number in range(9):
            assert await writer.run(put(f"{number}")) == f"{number}"
        with pytest.raises(type(error) if isinstance(error, Exception) else RuntimeError):
            await writer.catch_up()
        assert ledger.entered == []
        ledger.trouble = None
        await eventually(lambda: len(ledger.entered) == 9)
        assert (ledger.told, ledger.names) == ([], ledger.entered)


async def test_where_many_write_who_comes_a_moment_later_is_in_the_same_transaction(tmp_path: Path) -> None:
    async with writing(tmp_path / "x.db") as (_, writer):
        await together(writer, *(put(f"{number}") for number in range(5)))
        before = writer.commits

        async def later(name: str, passes: int) -> str:
            for _ in range(passes):
                await asyncio.sleep(0)
            return await writer.run(put(name))

        assert await asyncio.gather(later("a", 0), later("b", 0), later("c", 1)) == ["a", "b", "c"]
        assert writer.commits == before + 1


async def test_what_waits_for_others_is_written_before_the_end(tmp_path: Path) -> None:
    async with writing(tmp_path / "x.db") as (ledger, writer):
        await together(writer, *(put(f"{number}") for number in range(5)))
        last = asyncio.ensure_future(writer.run(put("last")))
        await asyncio.sleep(0)
        await writer.aclose()
        assert await last == "last"
        assert "last" in ledger.names


async def test_what_is_put_aside_is_done_before_the_end(tmp_path: Path) -> None:
    async with writing(tmp_path / "x.db") as (ledger, writer):
        await together(writer, *(put(f"{number}") for number in range(5)))
    assert ledger.entered == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("callback", ["done", "failed", "abandoned"])
async def test_a_callback_that_raises_keeps_nobody_waiting(tmp_path: Path, callback: str) -> None:
    def breaks(*_: Any) -> None:
        raise KeyError("no such lane")

    async with writing(tmp_path / "x.db") as (_, writer):
        work = put("first", ValueError("odd") if callback == "failed" else None)
        running = asyncio.ensure_future(writer.run(work, **{callback: breaks}))
        await asyncio.sleep(0)
        if callback == "abandoned":
            running.cancel()
        neighbours = [asyncio.ensure_future(writer.run(put(str(number)))) for number in range(3)]
        (outcome,) = await asyncio.gather(running, return_exceptions=True)
        kind = {"done": KeyError, "failed": ValueError, "abandoned": asyncio.CancelledError}[callback]
        assert isinstance(outcome, kind)
        assert await asyncio.gather(*neighbours) == ["0", "1", "2"]
        assert await writer.run(put("later")) == "later"


async def test_a_thread_that_cannot_go_on_tells_everybody_who_waits_and_its_owner(tmp_path: Path) -> None:
    async with writing(tmp_path / "x.db") as (ledger, writer):

        def broken(_: Any) -> Any:
            raise Panic("no memory for a batch")

        held, go = threading.Event(), threading.Event()

        def hold(_: apsw.Connection) -> None:
            held.set()
            assert go.wait(60)

        first = asyncio.ensure_future(writer.run(hold))
        await eventually(held.is_set)
        waiting = [asyncio.ensure_future(writer.run(put(str(number)))) for number in range(3)]
        await asyncio.sleep(0)
        writer._take = broken  # type: ignore[method-assign]
        go.set()
        await first
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(each) for each in outcomes] == [StoreUnavailable] * 3
        (told,) = ledger.told
        assert told.endswith("x.db has ended (Panic: no memory for a batch). Start Legato again.")
        with pytest.raises(StoreUnavailable):
            await writer.run(put("later"))


async def test_work_outside_of_a_transaction_is_told_too_if_the_one_before_cannot_be_ended(tmp_path: Path) -> None:
    async with writing(tmp_path / "x.db") as (ledger, writer):

        def broken(_: Any) -> None:
            raise Panic("no rollback")

        held, go = threading.Event(), threading.Event()

        def hold(_: apsw.Connection) -> None:
            held.set()
            assert go.wait(60)

        first = asyncio.ensure_future(writer.run(hold))
        await eventually(held.is_set)
        waiting = [asyncio.ensure_future(writer.run(put(name), outside=name == "two")) for name in ("one", "two")]
        await asyncio.sleep(0)
        writer._commit = broken  # type: ignore[method-assign]
        go.set()
        await first
        async with asyncio.timeout(60):
            outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(each) for each in outcomes] == [StoreUnavailable] * 2
        assert len(ledger.told) == 1
