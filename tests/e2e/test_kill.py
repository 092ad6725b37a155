"""SIGKILL at every named point of a turn: nothing accepted is lost, nothing with effects runs twice.

Twenty seeded runs; `make chaos` does two hundred. `python -m tests.chaos.run --runs 1 --seed N`
shows a run again.
"""

from gateway.telemetry.points import POINTS
from tests.chaos.run import campaign
from tests.chaos.script import make_plan

RUNS = 20


async def test_whatever_is_killed_every_message_is_answered_once():
    results = [result async for result in campaign(map(make_plan, range(RUNS)), jobs=2)]

    assert {result.seed: result.problems for result in results if result.problems} == {}
    assert {result.seed: result.killed_at[:1] for result in results} == {
        seed: (POINTS[seed % len(POINTS)],) for seed in range(RUNS)
    }
