"""`legato trajectories`: what it says that its summaries cost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.cli.trajectories import _Summariser
from gateway.domain.message import Message
from gateway.domain.usage import CanonicalUsage
from tests.support.fakes import ManualClock

PRICED = SimpleNamespace(cost_usd=1.25, usage=CanonicalUsage(input_tokens=900, cache_read_tokens=100, output_tokens=50))
FREE = SimpleNamespace(cost_usd=0, usage=CanonicalUsage(input_tokens=7))
UNKNOWN = SimpleNamespace(cost_usd=None, usage=CanonicalUsage(input_tokens=1_000))


def summariser(*entries: object, clock: ManualClock | None = None, model: object = None) -> _Summariser:
    facts = {"name": "m", "model": model, "clock": clock or ManualClock(), "aclose": None}
    return _Summariser(ledger=cast(Any, [*entries]), **cast(Any, facts))


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        ([], []),
        ([FREE, FREE], []),
        ([PRICED, FREE], ["Summaries took 1,007 tokens read and 50 written, for $1.25"]),
        ([PRICED, UNKNOWN], ["Summaries took 2,000 tokens read and 50 written, for an unknown price"]),
        ([UNKNOWN], ["Summaries took 1,000 tokens read and 0 written, for an unknown price"]),
    ],
)
def test_what_was_not_free_is_told(entries: list[object], told: list[str]) -> None:
    assert summariser(*entries).spent() == told


async def test_a_summary_that_takes_too_long_is_given_up(clock: ManualClock) -> None:
    async def model(_: Sequence[Message], most: int) -> str:
        await clock.sleep(299.0 if most == 1 else 300.0)
        return "notes"

    for most, ends in ((1, True), (2, False)):
        asked = asyncio.create_task(summariser(clock=clock, model=model)([], most))
        await clock.advance(300.0)
        if ends:
            assert await asked == "notes"
        else:
            with pytest.raises(TimeoutError):
                await asked
