"""The crash laboratory on Redis, in short: everything that can go wrong once, and some seeded runs.

Several processes, a Redis server, a platform that confirms and a model; `make chaos` does hundreds.
`python -m tests.chaos.run --store redis --runs 1 --seed N -v` shows a run again.
"""

from __future__ import annotations

from itertools import count

from tests.chaos.campaign import campaign
from tests.chaos.faults import KINDS
from tests.chaos.fleet_run import fleets
from tests.chaos.schedule import directed, make_schedule
from tests.chaos.shrink import Shrinking

RUNS = 10


async def test_whatever_goes_wrong_no_promise_is_broken() -> None:
    results = [result async for result in campaign(directed(), fleets, jobs=4)]

    assert {result.schedule.faults[0].kind: result.problems for result in results if result.problems} == {}
    happened = {result.schedule.faults[0].kind for result in results if result.faults[result.schedule.faults[0].kind]}
    assert happened == set(KINDS)


async def test_whatever_chance_finds_no_promise_is_broken() -> None:
    results = [result async for result in campaign(map(make_schedule, range(RUNS)), fleets, jobs=4)]

    assert {result.seed: result.problems for result in results if result.problems} == {}
    assert sum(result.faults.total() for result in results) >= RUNS


async def test_a_failing_schedule_is_shrunk_to_what_makes_it_fail() -> None:
    schedule = next(each for each in map(make_schedule, count()) if len(each.said) > 4)
    guilty = schedule.said[4]

    async def fails(candidate: object) -> bool:
        return guilty in candidate.said  # type: ignore[attr-defined]

    shortest = await Shrinking(fields=("faults", "said"), fails=fails, runs=200).shortest(schedule)
    assert (shortest.said, shortest.faults) == ((guilty,), ())
