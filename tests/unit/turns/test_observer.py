"""What people see of a turn while it runs: that the bot types, what it is at, and notices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from gateway.agent.running import RunningTurn, RunningTurns
from gateway.delivery.outbox import Outbox
from gateway.runtime.errors import AdapterError, StoreUnavailable
from gateway.store.port import Store
from gateway.turns.limits import TurnTime
from gateway.turns.observer import TurnObserver
from tests.support.fakes import ManualClock
from tests.support.store_kit import claimed, key


class Watched:
    """A turn on a platform that shows that the bot types, and what it is at."""

    def __init__(self, item: Any, store: Store, clock: ManualClock, outbox: Outbox) -> None:
        class Platform:
            typing = AsyncMock()
            working = Mock()

        self.platform, self.rests = Platform(), AsyncMock(return_value=False)
        outbox.pacing = Mock(rests=self.rests)
        self.turn = RunningTurn(key=key(), source=item.inbound.source, started_at=0.0, alive_at=0.0, end=print)
        self.running, self.reply = RunningTurns(background=Mock()), Mock(end=AsyncMock())
        time = TurnTime(turn=self.turn, running_turns=self.running, clock=clock, deadline=100.0, inactivity=50.0)
        self.observer = TurnObserver(
            item=item,
            time=time,
            reply=self.reply,
            adapter=self.platform,
            store=store,
            outbox=outbox,
            clock=clock,  # type: ignore[arg-type]
        )

    @property
    def typed(self) -> list[bool]:
        return [call.args[1] for call in self.platform.typing.await_args_list]


@pytest.fixture
async def watched(store: Store, clock: ManualClock, shelf: Callable[..., Outbox]) -> Watched:
    """A message has just been claimed."""
    return Watched((await claimed(store)).item, store, clock, shelf())


async def test_the_bot_types_while_it_works_and_not_while_it_waits_for_a_person(watched: Watched) -> None:
    async with watched.observer:
        await watched.observer.begin()
        watched.reply.begin.assert_called_once()
        watched.observer.phase("running tools", 2, ["shell"])
        async with watched.observer.asking():
            assert watched.turn.phase == "waiting for your yes or no"
            assert watched.typed == [True, False]
        assert (watched.turn.phase, watched.turn.tools, watched.turn.step) == ("running tools", ("shell",), 2)
    assert watched.typed == [True, False, True, False]
    watched.reply.end.assert_awaited_once()


async def test_where_a_chat_rests_it_does_not_type_and_one_failure_is_enough(watched: Watched) -> None:
    watched.rests.return_value = True
    async with watched.observer:
        await watched.observer.begin()
        assert watched.typed == [False]
        watched.platform.typing.side_effect = AdapterError("no right")
        async with watched.observer.asking():
            pass
    assert watched.typed == [False, False]


async def test_what_it_is_at_is_shown_with_the_pause_of_a_model(watched: Watched, clock: ManualClock) -> None:
    watched.observer.phase("thinking", 1)
    await clock.advance(2.0)
    watched.observer.pausing(4.9)
    shown = [call.args[1:] for call in watched.platform.working.call_args_list]
    assert [(doing.words, pause) for doing, pause in shown] == [("thinking", 0.0), ("thinking", 4.9)]
    assert watched.turn.alive_at == 2.0
    watched.reply.stand_in.assert_not_called()
    watched.observer.pausing(5.0)
    watched.reply.stand_in.assert_called_once()


async def test_a_stop_that_came_before_the_turn_ran_here_is_obeyed(watched: Watched, store: Store) -> None:
    await store.signal(key(), "stop", 1.0)

    async def turn() -> None:
        async with watched.observer:
            await watched.observer.begin()
            await watched.observer.clock.sleep(1_000.0)

    with pytest.raises(TimeoutError):
        await turn()
    assert watched.turn.ended_by == "stop"


async def test_a_notice_is_stored_once_and_shown_all_the_same_where_the_store_is_away(
    watched: Watched, store: Store
) -> None:
    for _ in range(2):
        await watched.observer.tell_once("file", "I could not read it.")
    assert [row.text for row in await store.outbox(key().address, 9)] == ["I could not read it."]
    outbox: Any = watched.observer.outbox
    outbox.emit, outbox.announce = AsyncMock(side_effect=StoreUnavailable("away")), Mock()
    await watched.observer.tell("Hm.")
    assert outbox.announce.call_args.args[1:] == ("notice", "Hm.")


def test_a_model_that_thinks_aloud_is_told_apart(watched: Watched) -> None:
    for phase in ("thinking", "reasoning", "compacting"):
        watched.observer.phase(phase)
    told = [call.args[1] for call in watched.platform.working.call_args_list]
    assert [(each.words, each.asks, each.thinks) for each in told] == [
        ("thinking", True, False),
        ("thinking", False, True),
        ("compressing", False, False),
    ]
