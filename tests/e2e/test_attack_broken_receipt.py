"""A bug on the way into the store: nothing is confirmed that was not stored, and nobody spins."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from gateway.app import build as bootstrap
from gateway.domain.chat import Inbound, InboundKind, Outbound, SessionKey
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import SessionNotFound, StoreError, StoreUnavailable
from gateway.runtime.points import Point
from gateway.store.records import Arrival, InboxItem, Receipt
from gateway.store.sqlite.store import SqliteStore
from gateway.turns.poison import TRIES
from gateway.turns.reception import GIVEN_UP
from tests.emulators.telegram import TelegramServer
from tests.support.gateway import FakeAdapter, FakeModel, Live, config_in, running
from tests.support.redis_server import free_port
from tests.support.telegram_live import on_telegram


class Broken:
    """`Points` at which the first receipts meet a bug, for as long as `times` is not 0."""

    def __init__(self, times: int, error: Exception | None = None) -> None:
        self.times = times
        self.error = error or TypeError("'NoneType' object is not subscriptable")

    def __call__(self, point: Point, /) -> None:
        if point == "accept.before" and self.times:
            self.times -= 1
            raise self.error


def logged(logs: list[Any], event: str) -> list[Any]:
    return [line for line in logs if line["event"] == event]


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    async with TelegramServer(limits=None) as server:
        yield server


@pytest.mark.parametrize("called", [False, True])
async def test_a_bug_at_receipt_leaves_a_message_with_telegram_until_it_can_be_stored(
    tmp_path: Path, telegram: TelegramServer, called: bool, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    webhook = {"public_url": f"http://127.0.0.1:{port}/hook", "host": "127.0.0.1", "port": port} if called else None
    bug = Broken(3)
    with capture_logs() as logs:
        async with on_telegram(tmp_path, telegram, telegram.people.person("Anna"), webhook=webhook, points=bug) as bot:
            bot.says("hello")
            await bot.until_shown("echo: hello")
            assert bug.times == 0
            assert len(bot.model.requests) == 1
    (broke,) = logged(logs, "receipt_broke")
    assert (broke["log_level"], broke["exc_info"]) == ("error", True)
    assert len(logged(logs, "updates_wait")) == 3, "each try is followed by a pause"
    assert caplog.text == "", "the library met an error of ours"


async def test_what_cannot_be_stored_is_handed_over_with_what_came_after_it(
    tmp_path: Path, telegram: TelegramServer
) -> None:
    bug = Broken(1_000_000)
    with capture_logs() as logs:
        async with on_telegram(tmp_path, telegram, telegram.people.person("Anna"), points=bug) as bot:
            bot.says("one")
            await bot.until(lambda: logged(logs, "updates_wait"))
            bot.says("two", bot.telegram.people.private(telegram.people.person("Bob")))
            await bot.until(lambda: logged(logs, "updates_wait")[-1]["count"] == 2)
            bug.times = 0
            await bot.until_shown("echo: one")


class Poisoned(SqliteStore):
    """A store with a bug that only one word meets."""

    async def accept(self, arrivals: Sequence[Arrival], *, cap: int) -> list[Receipt]:
        if any("poison" in arrival.inbound.text for arrival in arrivals):
            raise TypeError("'NoneType' object is not subscriptable")
        return await super().accept(arrivals, cap=cap)


def poisoned(folder: Path) -> SqliteStore:
    return Poisoned(folder / "legato.db", clock=SystemClock(), concurrency=4)


async def test_what_meets_a_bug_holds_up_those_after_it_while_there_is_hope_and_is_then_given_up(
    tmp_path: Path,
) -> None:
    with capture_logs() as logs:
        async with running(tmp_path, store=poisoned(tmp_path)) as live:
            batch = [live.adapter.inbound(text, chat="1") for text in ("one", "poison", "three")]
            for _ in range(TRIES):
                with pytest.raises(StoreUnavailable, match="an error in Legato itself"):
                    await live.adapter.receive(*batch)
            accepted = await live.adapter.receive(*batch)
            assert [each.status for each in accepted] == ["duplicate", "refused", "new"]
            assert (await live.answer(batch[2].event_id)).text == "echo: three"
            await live.adapter.until(lambda: any(row.text == GIVEN_UP for row in live.adapter.sent))
            assert [row.text for row in live.adapter.sent] == ["echo: one", GIVEN_UP, "echo: three"]
    (broke,) = logged(logs, "receipt_broke")
    assert (broke["inbound"], broke["exc_info"]) == (batch[1].event_id, True)
    assert len(logged(logs, "message_given_up")) == 1


async def test_what_comes_first_after_a_start_is_given_up_when_something_else_could_be_stored(tmp_path: Path) -> None:
    async with running(tmp_path, store=poisoned(tmp_path)) as live:
        batch = [live.adapter.inbound(text, chat="1") for text in ("poison", "two")]
        for _ in range(TRIES + 1):
            with pytest.raises(StoreUnavailable):
                await live.adapter.receive(*batch)
        assert [each.status for each in await live.adapter.receive(*batch)] == ["refused", "duplicate"]
        assert (await live.answer(batch[1].event_id)).text == "echo: two"


async def test_nothing_is_given_up_while_everything_meets_the_bug(tmp_path: Path) -> None:
    bug = Broken(1_000)
    async with running(tmp_path, points=bug) as live:
        batch = [live.adapter.inbound("one", chat="1"), live.adapter.inbound("two", chat="2")]
        for _ in range(3 * TRIES):
            with pytest.raises(StoreUnavailable):
                await live.adapter.receive(*batch)
        assert not live.adapter.sent
        bug.times = 0
        assert [each.status for each in await live.adapter.receive(*batch)] == ["new", "new"]
        assert [(await live.answer(each.event_id)).text for each in batch] == ["echo: one", "echo: two"]


async def test_what_was_given_up_stays_so_while_what_it_came_with_is_still_tried(tmp_path: Path) -> None:
    async with running(tmp_path, store=poisoned(tmp_path)) as live:
        assert await live.ask("hello") == "echo: hello"
        batch = [live.adapter.inbound(text, chat="1") for text in ("poison", "more poison")]
        for _ in range(TRIES + 1):
            with pytest.raises(StoreUnavailable):
                await live.adapter.receive(*batch)
        healed = [replace(batch[0], text="no bug any more"), batch[1]]
        for _ in range(TRIES - 1):
            with pytest.raises(StoreUnavailable):
                await live.adapter.receive(*healed)
        assert [each.status for each in await live.adapter.receive(*healed)] == ["refused", "refused"]
        await live.quiet()
        assert live.adapter.shown("1") == [GIVEN_UP, GIVEN_UP]


class Refusing(SqliteStore):
    """A store behind a server that refuses every writing step in words of its own while it is `refusing`."""

    refusing = False

    async def accept(self, arrivals: Sequence[Arrival], *, cap: int) -> list[Receipt]:
        self._maybe()
        return await super().accept(arrivals, cap=cap)

    async def emit(self, outbound: Sequence[Outbound]) -> tuple[Outbound, ...]:
        self._maybe()
        return await super().emit(outbound)

    def _maybe(self) -> None:
        if self.refusing:
            raise StoreError("The store's step failed: ERR max daily request limit exceeded.")


@pytest.mark.parametrize("kind", ["message", "press"])
async def test_nothing_is_given_up_while_a_store_that_worked_before_refuses_everything(
    tmp_path: Path, kind: InboundKind
) -> None:
    store = Refusing(tmp_path / "legato.db", clock=SystemClock(), concurrency=4)
    async with running(tmp_path, store=store) as live:
        assert await live.ask("hello") == "echo: hello"
        store.refusing = True
        batch = [live.adapter.inbound("approve x", kind=kind), live.adapter.inbound("two", chat="2")]
        for _ in range(3 * TRIES):
            with pytest.raises(StoreUnavailable, match="limit exceeded"):
                await live.adapter.receive(*batch)
        store.refusing = False
        assert [each.status for each in await live.adapter.receive(*batch)] == ["new", "new"]
        assert (await live.answer(batch[1].event_id)).text == "echo: two"


class Silenced(Poisoned):
    """The same bug, which a word about the message meets, too."""

    async def emit(self, outbound: Sequence[Outbound]) -> tuple[Outbound, ...]:
        if any(row.text == GIVEN_UP for row in outbound):
            raise TypeError("'NoneType' object is not subscriptable")
        return await super().emit(outbound)


async def until_given_up(live: Live, held: Inbound) -> None:
    """Hand it over again and again, each time with one more message, which is answered."""
    batch = [held]
    for number in range(TRIES + 3):
        batch.append(live.adapter.inbound(f"{number}", chat="1"))
        with pytest.raises(StoreUnavailable):
            await live.adapter.receive(*batch)
    assert (await live.answer(batch[-1].event_id)).text == f"echo: {number}"
    assert {each.status for each in await live.adapter.receive(*batch[1:])} == {"duplicate"}
    assert [each.status for each in await live.adapter.receive(*batch)][:2] == ["refused", "duplicate"]


async def test_whose_sender_cannot_be_told_is_given_up_when_others_could_be_stored_meanwhile(tmp_path: Path) -> None:
    store = Silenced(tmp_path / "legato.db", clock=SystemClock(), concurrency=4)
    async with running(tmp_path, store=store) as live:
        assert await live.ask("hello") == "echo: hello"
        await until_given_up(live, live.adapter.inbound("poison", chat="1"))


class Deaf(SqliteStore):
    """A store with a bug that only a look at the lane of `g` meets."""

    async def waiting(self, key: SessionKey, limit: int) -> list[InboxItem]:
        if key.chat == "g":
            raise TypeError("'NoneType' object is not subscriptable")
        return await super().waiting(key, limit)


async def test_nobody_is_told_that_a_message_to_others_is_given_up(tmp_path: Path) -> None:
    store = Deaf(tmp_path / "legato.db", clock=SystemClock(), concurrency=4)
    async with running(tmp_path, store=store) as live:
        among_people = replace(live.adapter.inbound("see you", chat="g", chat_type="group"), only_as_part=True)
        await until_given_up(live, among_people)
        await live.quiet()
        assert live.adapter.shown("g") == []


async def test_what_the_store_says_of_itself_is_passed_on(tmp_path: Path) -> None:
    async with running(tmp_path, points=Broken(1, SessionNotFound("No session is called 7."))) as live:
        with pytest.raises(StoreUnavailable, match=r"No session is called 7\."):
            await live.tell("one")


class HalfBroken(SqliteStore):
    """A store with a bug that only what comes from the platform `other` meets."""

    async def accept(self, arrivals: Sequence[Arrival], *, cap: int) -> list[Receipt]:
        if any(arrival.key.platform == "other" for arrival in arrivals):
            raise TypeError("'NoneType' object is not subscriptable")
        return await super().accept(arrivals, cap=cap)


async def test_other_platforms_go_on_while_one_meets_a_bug(tmp_path: Path) -> None:
    store = HalfBroken(tmp_path / "legato.db", clock=SystemClock(), concurrency=4)
    one, other = FakeAdapter("one"), FakeAdapter("other")
    parts = bootstrap.Parts(providers={"offline": FakeModel()}, store=store)
    gateway = bootstrap.build(config_in(tmp_path), [one, other], parts)
    serving = asyncio.create_task(gateway.run())
    with pytest.raises(StoreUnavailable):
        await other.receive(other.inbound("hello"))
    (accepted,) = await one.receive(one.inbound("hello"))
    await one.until(lambda: one.answer_to(accepted.event_id) is not None)
    assert not serving.done()
    gateway.stop()
    assert await serving
