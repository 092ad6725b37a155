"""Which lanes a process claims with the acceptance of their items."""

from __future__ import annotations

from typing import Any, cast

import pytest

from gateway.store.records import Claim
from gateway.store.redis.lanes import Lanes
from tests.support.fakes import ManualClock
from tests.support.store_kit import key


@pytest.mark.parametrize(("runs", "claims"), [(0, 3), (31, 1), (32, 0), (40, 0)])
async def test_a_busy_process_leaves_new_lanes_to_whoever_is_free(runs: int, claims: int) -> None:
    nothing: Any = None
    lanes = Lanes(nothing, nothing, ManualClock(), ())
    for worker in ("w1", "w2", "w3"):
        lanes.ready.join(worker)
    lanes.held = {key(str(number)): cast(Claim, None) for number in range(runs)}
    assert lanes.accepting(9).room == claims
    lanes.alone = True
    lanes.ready.redeem(claims)
    assert lanes.accepting(9).room == 3


async def test_lanes_are_claimed_for_workers_who_wait_alone() -> None:
    nothing: Any = None
    lanes = Lanes(nothing, nothing, ManualClock(), ())
    assert lanes.accepting(9).room == 0
    lanes.ready.join("w1")
    assert (lanes.accepting(9).room, lanes.accepting(9).room) == (1, 0), "the one worker is promised one lane"
