"""Receiving with a bug on the way into the store, a full disk, messages that cross: what is confirmed is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from gateway.app import build as bootstrap
from gateway.app.config import Config
from gateway.domain.adapter import Limits
from gateway.domain.approval import Approval
from gateway.domain.chat import ChatAddress, Inbound, InboundKind, Outbound, SessionKey
from gateway.domain.session import Session
from gateway.domain.turn import SessionSettings, TurnSettings
from gateway.people.approvals import GONE
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import SessionNotFound, StoreError, StoreUnavailable
from gateway.runtime.points import Point
from gateway.runtime.structs import replace
from gateway.store.records import Arrival, InboxItem, Receipt
from gateway.store.sqlite.backend import SqliteStore
from gateway.turns.admission import FULL
from gateway.turns.poison import TRIES
from gateway.turns.reception import GIVEN_UP
from tests.emulators.telegram import TelegramServer
from tests.support.fakes import ManualClock
from tests.support.fast_clock import FastClock
from tests.support.gateway import FakeAdapter, FakeModel, Gate, Live, Say, config_in, in_turn, running
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
    async with TelegramServer(limits=None, clock=FastClock()) as server:
        yield server


@pytest.mark.parametrize("called", [False, True])
async def test_a_bug_at_receipt_leaves_a_message_with_telegram_until_it_can_be_stored(
    tmp_path: Path, telegram: TelegramServer, called: bool, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    webhook = {"url": f"http://127.0.0.1:{port}/hook", "host": "127.0.0.1", "port": port} if called else None
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
            assert (await live.answer(batch[0].event_id)).text == "echo: one"  # else the third is told to wait
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

    async def waiting(self, key: SessionKey, limit: int, *, behind: InboxItem | None = None) -> list[InboxItem]:
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


# -- a full disk, and messages that cross each other ------------------------------------------------


class Flaky(SqliteStore):
    """A store whose named steps fail while they are listed in `failing`."""

    def __init__(self, folder: Path, clock: Any = None) -> None:
        super().__init__(folder / "legato.db", clock=clock or SystemClock(), concurrency=256)
        self.failing: set[str] = set()
        self.failed: list[str] = []

    def _maybe(self, step: str) -> None:
        if step in self.failing:
            self.failed.append(step)
            raise StoreUnavailable("The disk is full.")

    async def claim_bypassed(self, owner: str) -> list[InboxItem]:
        self._maybe("claim_bypassed")
        return await super().claim_bypassed(owner)

    async def pending_hooks(self, limit: int) -> list[Session]:
        self._maybe("pending_hooks")
        return await super().pending_hooks(limit)

    async def refuse(self, arrival: Arrival, notice: Outbound) -> tuple[Outbound, ...]:
        self._maybe("refuse")
        return await super().refuse(arrival, notice)

    async def emit(self, outbound: Sequence[Outbound]) -> tuple[Outbound, ...]:
        self._maybe("emit")
        return await super().emit(outbound)

    async def finish_bypassed(self, item: InboxItem, outbound: Sequence[Outbound]) -> tuple[Outbound, ...]:
        self._maybe("finish_bypassed")
        return await super().finish_bypassed(item, outbound)


def small_lane(folder: Path, cap: int) -> Config:
    return config_in(folder, turns=TurnSettings(lane_cap=cap))


async def test_a_command_in_a_batch_is_answered_though_another_message_could_not_be_refused(tmp_path: Path) -> None:
    """`accept` may be called again with the same batch; by then the command is a duplicate."""
    store, gate = Flaky(tmp_path), Gate()
    model = FakeModel(in_turn(Say(text="done", gate=gate)))
    adapter = FakeAdapter(limits=Limits(trusted=True, pauses_when_full=False))
    async with running(tmp_path, config=small_lane(tmp_path, 1), store=store, model=model, adapter=adapter) as live:
        await live.tell("work")
        await gate.until_waiting()
        batch = [adapter.inbound("too much"), adapter.inbound("/status")]
        store.failing = {"refuse"}
        with pytest.raises(StoreUnavailable):
            await adapter.receive(*batch)
        store.failing = set()
        await adapter.receive(*batch)
        assert "I have been working" in (await live.answer(batch[1].event_id)).text
        await adapter.until(lambda: FULL in adapter.shown("c", "notice"))
        gate.open()


async def test_a_busy_notice_that_cannot_be_stored_does_not_make_a_stored_message_look_refused(tmp_path: Path) -> None:
    store, gate = Flaky(tmp_path), Gate()
    model = FakeModel(in_turn(Say(text="done", gate=gate)))
    async with running(tmp_path, store=store, model=model) as live:
        await live.tell("work")
        await gate.until_waiting()
        store.failing = {"emit"}
        (accepted,) = await live.adapter.receive(live.adapter.inbound("and this"))
        assert accepted.status == "new"
        store.failing = set()
        gate.open()
        assert (await live.answer(accepted.event_id)).text == "echo: and this"


async def test_a_command_whose_answer_cannot_be_stored_is_answered_once_it_can(
    tmp_path: Path, clock: ManualClock
) -> None:
    store = Flaky(tmp_path, clock)
    async with running(tmp_path, store=store, clock=clock) as live:
        store.failing = {"finish_bypassed"}
        event = await live.tell("/status")
        await clock.until_pending()  # it waits for its second try
        store.failing = set()
        await clock.advance(60)
        await live.adapter.until(lambda: live.adapter.shown("c", "command"))
        assert [row.answers for row in live.adapter.sent if row.kind == "command"] == [event]


@pytest.mark.parametrize("step", ["claim_bypassed", "pending_hooks"])
async def test_a_start_waits_for_a_store_that_has_just_gone(tmp_path: Path, clock: ManualClock, step: str) -> None:
    store = Flaky(tmp_path, clock)
    store.failing = {step}

    async def come_back() -> None:
        await clock.until_pending()
        store.failing = set()
        await clock.advance(60)

    coming = asyncio.create_task(come_back())
    async with running(tmp_path, store=store, clock=clock) as live:
        await coming
        assert store.failed == [step]
        assert await live.ask("hello") == "echo: hello"


async def test_a_start_that_waits_for_its_store_can_be_stopped(tmp_path: Path, clock: ManualClock) -> None:
    store = Flaky(tmp_path, clock)
    store.failing = {"pending_hooks"}
    parts = bootstrap.Parts(clock=clock, providers={"offline": FakeModel()}, store=store)
    gateway = bootstrap.build(config_in(tmp_path), [FakeAdapter()], parts)
    serving = asyncio.create_task(gateway.run())
    await clock.until_pending()
    gateway.stop()
    assert await serving
    assert store.failed == ["pending_hooks"]


class Crossing(SqliteStore):
    """A store in which the running turn ends between the receipt of a message and its signal."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "legato.db", clock=SystemClock(), concurrency=256)
        self.meanwhile: Callable[[], Any] | None = None

    async def accept(self, arrivals: Sequence[Arrival], *, cap: int) -> list[Receipt]:
        receipts = await super().accept(arrivals, cap=cap)
        if self.meanwhile is not None:
            await self.meanwhile()
        return receipts


async def test_a_message_never_interrupts_itself(tmp_path: Path) -> None:
    """The turn it was to interrupt has just ended, and it runs already."""
    store, first, second = Crossing(tmp_path), Gate(), Gate()
    model = FakeModel(in_turn(Say(text="one", gate=first), Say(text="two", gate=second)))
    config = config_in(tmp_path, sessions=SessionSettings(busy_mode="interrupt"))

    async def turn_ends() -> None:
        store.meanwhile = None
        first.open()
        await second.until_waiting()

    async with running(tmp_path, config=config, store=store, model=model) as live:
        await live.tell("first")
        await first.until_waiting()
        store.meanwhile = turn_ends
        event = await live.tell("second")
        second.open()
        await live.adapter.until(lambda: len(live.adapter.shown("c")) >= 2)
        assert (await live.answer(event)).text == "two"
        assert live.adapter.shown("c") == ["one", "two"]


async def test_an_interrupt_storm_answers_the_last_message_and_drops_none_in_silence(tmp_path: Path) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(text="one", gate=gate)))
    config = config_in(tmp_path, sessions=SessionSettings(busy_mode="interrupt"))
    async with running(tmp_path, config=config, model=model) as live:
        await live.tell("first")
        await gate.until_waiting()
        events = await asyncio.gather(*(live.tell(f"storm {number}") for number in range(30)))
        await live.quiet()
        answered = [live.adapter.answer_to(event) for event in events]
        assert answered[-1] is not None
        assert answered[-1].text == "echo: storm 29"
        for event in events:
            assert [row for row in live.adapter.sent if row.answers == event], "a message vanished"


async def test_a_steer_too_long_for_the_window_is_refused_alone_and_spares_the_running_turn(tmp_path: Path) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(text="thinking", calls=[("clock", "{}")], gate=gate), Say(text="done")))
    async with running(tmp_path, model=model) as live:
        event = await live.tell("work")
        await gate.until_waiting()
        huge = await live.tell("/steer " + "一" * 1_000_000)
        gate.open()
        assert (await live.answer(event)).text == "done"
        assert "too long" in (await live.answer(huge)).text


class Away(Flaky):
    """A store that takes what an adapter read, and lets the next `away` questions after it wait for a minute."""

    def __init__(self, folder: Path, clock: ManualClock) -> None:
        super().__init__(folder, clock)
        self._time = clock
        self.away = 0
        self.asked = asyncio.Event()

    async def _wait(self) -> None:
        if self.away:
            self.away -= 1
            self.asked.set()
            await self._time.sleep(60)
            raise StoreUnavailable("The server is away.")

    async def waiting(self, key: SessionKey, limit: int, *, behind: InboxItem | None = None) -> list[InboxItem]:
        await self._wait()
        return await super().waiting(key, limit)

    async def approvals(self, address: ChatAddress) -> list[Approval]:
        await self._wait()
        return await super().approvals(address)


@pytest.mark.parametrize("kind", ["message", "press"])
async def test_what_follows_receipt_holds_up_a_batch_for_five_seconds_in_all_however_long_it_is(
    tmp_path: Path, clock: ManualClock, kind: InboundKind
) -> None:
    store, gate = Away(tmp_path, clock), Gate()
    model = FakeModel(in_turn(Say(text="done", gate=gate)))
    async with running(tmp_path, store=store, model=model, clock=clock) as live:
        await live.tell("work")
        await gate.until_waiting()
        store.away = 1_000
        batch = [live.adapter.inbound(f"more {number}", chat=chat, kind=kind) for number in range(9) for chat in "cd"]
        receiving = asyncio.create_task(live.adapter.receive(*batch))  # type: ignore[arg-type]
        await store.asked.wait()
        await clock.advance(4.9)
        assert not receiving.done()
        await clock.advance(0.1)
        assert receiving.done()
        assert [(each.event_id, each.status, each.told) for each in receiving.result()] == [
            (each.event_id, "new", "") for each in batch
        ]
        store.away = 0
        gate.open()


async def test_a_press_that_is_decided_is_told_of_though_another_hangs(tmp_path: Path, clock: ManualClock) -> None:
    store = Away(tmp_path, clock)
    async with running(tmp_path, store=store, clock=clock) as live:
        store.away = 1
        batch = [live.adapter.inbound("approve x", kind="press"), live.adapter.inbound("approve y", kind="press")]
        receiving = asyncio.create_task(live.adapter.receive(*batch))  # type: ignore[arg-type]
        await store.asked.wait()
        await clock.advance(5)
        assert [each.told for each in receiving.result()] == ["", GONE]
