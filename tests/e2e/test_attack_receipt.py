"""Receiving under fire: a disk that fills up between two steps, messages that cross each other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.app.config import Config
from gateway.app.config.models import Sessions
from gateway.app.config.models import Turns as TurnsEntry
from gateway.domain.adapter import Limits
from gateway.domain.approval import Approval
from gateway.domain.chat import ChatAddress, InboundKind, Outbound, SessionKey
from gateway.people.approvals import GONE
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import StoreUnavailable
from gateway.store.records import Arrival, InboxItem, Receipt
from gateway.store.sqlite.store import SqliteStore
from gateway.turns.reception import FULL
from tests.support.fakes import ManualClock
from tests.support.gateway import FakeAdapter, FakeModel, Gate, Say, config_in, in_turn, running


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
    return config_in(folder, turns=TurnsEntry(lane_cap=cap))


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
        assert "Working" in (await live.answer(batch[1].event_id)).text
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
    config = config_in(tmp_path, sessions=Sessions(busy_mode="interrupt"))

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
    config = config_in(tmp_path, sessions=Sessions(busy_mode="interrupt"))
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

    async def waiting(self, key: SessionKey, limit: int) -> list[InboxItem]:
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
