"""How fast rows may be sent, and which chats are to be left alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from gateway.delivery.pacing import Pacing
from gateway.domain.adapter import Rate
from gateway.domain.chat import ChatAddress
from gateway.runtime.errors import RateLimited, StoreError
from gateway.runtime.structs import replace
from tests.support.fakes import ManualClock
from tests.support.store_kit import outbound

HERE = ChatAddress(platform="test", chat="1")
RATES = [Rate(bucket="chat 1", most=1, seconds=1.0), Rate(bucket="all", most=30, seconds=1.0)]


def pacing(clock: ManualClock, **asked: Any) -> tuple[Pacing, Any]:
    """The pacing of a platform with a rate for each chat and one for all, and its store."""
    facts = {"take": 0.0, "resting": 0.0, "closed": None, "hold_off": None, **asked}
    store: Any = SimpleNamespace(
        **{
            name: AsyncMock(
                **{"side_effect" if callable(each) or isinstance(each, Exception) else "return_value": each}
            )
            for name, each in facts.items()
        }
    )
    adapter: Any = SimpleNamespace(name="test", account="bot", rates=lambda _: RATES)
    return Pacing(store=store, clock=clock, rated={"test": adapter}), store


@pytest.mark.parametrize(
    ("asked", "rests"),
    [
        ({}, False),
        ({"resting": 0.1}, True),
        ({"resting": lambda _, bucket: 5.0 if bucket == "all" else 0.0}, True),
        ({"closed": "gone"}, True),
        ({"closed": StoreError("away")}, False),
    ],
)
async def test_a_chat_that_is_gone_or_silent_is_shown_only_what_cannot_be_spared(
    clock: ManualClock, asked: dict[str, Any], rests: bool
) -> None:
    paced, _ = pacing(clock, **asked)
    assert await paced.rests(HERE) is rests
    assert not await paced.rests(replace(HERE, platform="other"))


async def test_a_row_waits_for_its_turn_and_elsewhere_nobody_does(clock: ManualClock) -> None:
    paced, store = pacing(clock, take=1.5)
    assert await paced.wait(outbound("o1")) == 1.5
    assert store.take.await_args.args[1:] == ("o1", RATES)
    assert await paced.wait(replace(outbound("o1"), to=replace(HERE, platform="other"))) == 0.0


@pytest.mark.parametrize(("everywhere", "bucket"), [(False, "chat 1"), (True, "all")])
async def test_a_silence_is_kept_where_it_was_asked_for(clock: ManualClock, everywhere: bool, bucket: str) -> None:
    paced, store = pacing(clock)
    error = RateLimited("slow down", retry_after=9.0, everywhere=everywhere)
    await paced.keep(HERE, error)
    assert store.hold_off.await_args.args[1:] == (bucket, 9.0)
    await paced.keep(replace(HERE, platform="other"), error)
    assert store.hold_off.await_count == 1
