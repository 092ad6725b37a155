"""SIGKILL at every named point of a turn: nothing accepted is lost, nothing with effects runs twice.

A few seeded runs; `make chaos` does two hundred. `python -m tests.chaos.run --runs 1 --seed N`
shows a run again. Beside them stand the few schedules that chance seldom finds.
"""

import pytest

from tests.chaos.campaign import campaign
from tests.chaos.script import PASSED, Event, Kill, Plan, make_plan
from tests.chaos.single_run import benches

RUNS = 10
AT_ONCE = 2  # runs: as many as one test sees the end of on a busy machine


@pytest.mark.parametrize("begin", range(0, RUNS, AT_ONCE))
async def test_whatever_is_killed_every_message_is_answered_once(begin):
    seeds = range(begin, begin + AT_ONCE)
    results = [result async for result in campaign(map(make_plan, seeds), benches, jobs=AT_ONCE)]

    assert {result.seed: result.problems for result in results if result.problems} == {}
    assert {result.seed: result.killed_at[:1] for result in results} == {
        seed: (PASSED[seed % len(PASSED)],) for seed in seeds
    }
    planned = [result for result in results if result.schedule.faults]
    assert not planned or any(result.faults for result in planned)


def test_models_and_sends_fail_beside_the_kills():
    assert {fault.kind.split()[0] for seed in range(RUNS) for fault in make_plan(seed).faults} >= {"model", "send"}


def talk(*texts):
    """One chat in which all this is sent at once."""
    events = []
    for number, text in enumerate(texts):
        kind = "command" if text.startswith("/") else text.partition(" ")[0]
        token = "" if kind == "command" else text.split()[-1]
        if text == "/retry":
            kind, token = events[-1].kind, events[-1].token
        events.append(Event(id=f"e{number}", chat="a", user=None, kind=kind, text=text, token=token))
    return tuple(events)


LONG = [f"long tok{number}" for number in range(8)]


BURSTS = [
    ("say tok1", "/new"),
    ("say tok1", "/undo"),
    ("say tok1", "/branch"),
    ("say tok1", "/new", "/new"),
    ("say tok1", "/retry", "/retry"),
    (*LONG, "/compress", "/compress"),
]


def killing_the_last(seed, texts, point):
    """All of it is accepted before the first of it runs, and the last is killed."""
    lines = talk(*texts)
    kill = Kill(point=point, passing=len(lines))
    return Plan(seed=seed, lines=lines, kills=(kill,), ahead=len(lines), again=0.0)


@pytest.mark.parametrize("texts", BURSTS, ids=lambda texts: " ".join(texts[-2:]))
async def test_a_command_does_not_take_for_its_own_what_the_one_before_it_did(texts):
    """The second attempt of a command finds a session younger than the command, opened by someone else."""
    points = ("turn.claimed", "turn.finished")
    plans = [killing_the_last(number, texts, point) for number, point in enumerate(points)]

    results = [result async for result in campaign(plans, benches, jobs=AT_ONCE)]

    assert {result.seed: result.killed_at for result in results} == {0: points[:1], 1: points[1:]}
    assert {points[result.seed]: result.problems for result in results if result.problems} == {}
