"""SIGKILL at every named point of a turn: nothing accepted is lost, nothing with effects runs twice.

Ten seeded runs; `make chaos` does two hundred. `python -m tests.chaos.run --runs 1 --seed N`
shows a run again. Beside them stand the few schedules that chance seldom finds.
"""

from tests.chaos.campaign import campaign
from tests.chaos.script import PASSED, Event, Kill, Plan, make_plan
from tests.chaos.single_run import benches

RUNS = 10


async def test_whatever_is_killed_every_message_is_answered_once():
    results = [result async for result in campaign(map(make_plan, range(RUNS)), benches, jobs=2)]

    assert {result.seed: result.problems for result in results if result.problems} == {}
    assert {result.seed: result.killed_at[:1] for result in results} == {
        seed: (PASSED[seed % len(PASSED)],) for seed in range(RUNS)
    }
    assert {kind.split()[0] for result in results for kind in result.faults} >= {"model", "send"}


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


async def test_a_command_does_not_take_for_its_own_what_the_one_before_it_did():
    """The second attempt of a command finds a session younger than the command, opened by somebody else."""
    schedules = [(texts, point) for texts in BURSTS for point in ("turn.claimed", "turn.finished")]
    plans = [killing_the_last(number, *schedule) for number, schedule in enumerate(schedules)]

    results = [result async for result in campaign(plans, benches, jobs=2)]

    assert {result.seed: result.killed_at for result in results} == {
        number: (point,) for number, (_, point) in enumerate(schedules)
    }
    assert {schedules[result.seed]: result.problems for result in results if result.problems} == {}
