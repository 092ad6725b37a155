"""SIGKILL around the firing of reminders: each moment fires once and is shown once, on both stores.

Two seeded runs; `make chaos` does two hundred. `python -m tests.chaos.run reminders-sqlite --runs 1 --seed N` shows one
again.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.chaos.campaign import campaign
from tests.chaos.reminders.laboratory import benches
from tests.chaos.reminders.script import StoreName, make_plan


@pytest.mark.parametrize("store", ["sqlite", pytest.param("redis", marks=pytest.mark.slow)])
async def test_whatever_is_killed_each_reminder_fires_once_and_is_shown_once(store: StoreName) -> None:
    drawn = make_plan(0, store)
    plan = replace(drawn, kills=drawn.kills[:2])
    (result,) = [result async for result in campaign([plan], lambda: benches(store), jobs=1)]
    assert result.problems == ()
    assert result.counts["fired"] == result.counts["delivered"] > 0
    assert len(result.killed_at) == len(plan.kills)
