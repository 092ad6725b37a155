"""The crash laboratory on Redis, in short: everything that can go wrong once, and a seeded run.

Several processes, a Redis server, a platform that confirms and a model; `make chaos` does hundreds.
`python -m tests.chaos.run redis --runs 1 --seed N -v` shows a run again.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from tests.chaos.campaign import campaign
from tests.chaos.check_store import Facts, messages
from tests.chaos.drive import Evidence
from tests.chaos.excuses import Excuses
from tests.chaos.faults import KINDS, Fault
from tests.chaos.findings import Findings, Hit
from tests.chaos.fleet_run import fleets
from tests.chaos.schedule import directed, make_schedule
from tests.chaos.script import Event, Plan
from tests.chaos.shrink import Shrinking
from tests.chaos.snapshot import Snapshot
from tests.chaos.socket_platform import Poll
from tests.chaos.verdict_readers import one_reader

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))]
AT_ONCE = 2  # runs: as many as one test sees the end of on a busy machine
# To the store alone `tests/integration/test_redis_outages.py` does the first four; those of models and of sends stand
# in `tests/e2e/test_kill.py`, too.
ELSEWHERE = ("freeze", "pause", "cut", "lose", "week", "model", "send")
DIRECTED = [
    pytest.param(begin, marks=[pytest.mark.slow] * all(each.faults[0].kind.startswith(ELSEWHERE) for each in pair))
    for begin in range(0, len(directed()), AT_ONCE)
    for pair in [directed()[begin : begin + AT_ONCE]]
]


@pytest.mark.parametrize("begin", DIRECTED)
async def test_whatever_goes_wrong_no_promise_is_broken(begin: int) -> None:
    schedules = directed()[begin : begin + AT_ONCE]
    results = [result async for result in campaign(schedules, fleets, jobs=AT_ONCE)]

    assert {result.schedule.faults: result.problems for result in results if result.problems} == {}
    for result in results:
        assert {fault.kind for fault in result.schedule.faults} <= result.faults.keys()


def test_everything_goes_wrong() -> None:
    assert {fault.kind for schedule in directed() for fault in schedule.faults} == set(KINDS)


@pytest.mark.parametrize("seed", SEEDS)
async def test_whatever_chance_finds_no_promise_is_broken(seed: int) -> None:
    (result,) = [result async for result in campaign([make_schedule(seed)], fleets, jobs=1)]

    assert result.problems == ()
    assert result.faults


async def test_a_failing_schedule_is_shrunk_to_what_makes_it_fail() -> None:
    schedule = next(each for each in map(make_schedule, count()) if len(each.said) > 4)
    guilty = schedule.said[4]

    async def fails(candidate: object) -> bool:
        return guilty in candidate.said  # type: ignore[attr-defined]

    shortest = await Shrinking(fields=("faults", "said"), fails=fails, runs=200).shortest(schedule)
    assert (shortest.said, shortest.faults) == ((guilty,), ())


def told(*outcomes: str) -> list[str]:
    """Return the verdict on a chat in which no message got an answer, and each turn ended so."""
    tokens = [f"tok{number:02}abcde" for number in range(len(outcomes))]
    lines = tuple(
        Event(id=token, chat="a", user=None, kind="say", text=f"say {token}", token=token) for token in tokens
    )
    left = Snapshot(
        messages={
            number: ("a", "s", "user", json.dumps({"role": "user", "content": f"say {token}"}), None)
            for number, token in enumerate(tokens)
        },
        transcripts={},
        inbox={token: (0, "a", outcome, 1, False) for token, outcome in zip(tokens, outcomes, strict=True)},
        sessions={},
        outbox={},
        compactions=[],
        tips={},
    )
    plan = Plan(seed=0, lines=lines, kills=(), ahead=1, again=0.0)
    return list(messages(Facts(Evidence(plan=plan, folder=Path("/nonexistent"), snapshots=[left]))))


def test_a_turn_has_no_end_only_if_its_model_failed() -> None:
    """All faults of the model may meet one turn: who asks when is the machine's affair."""
    assert told("failed", "failed") == []
    (problem,) = told("failed", "answered")
    assert "tok01abcde's turn has no end" in problem
    (problem,) = told("answered", "failed")
    assert "came into the middle of tok00abcde's turn" in problem


def polled(
    *spans: tuple[int, float, float], folder: Path = Path("/nonexistent"), loses: bool = False, **left: object
) -> list[str]:
    """Return the verdict on an account that these processes polled, from when to when."""
    faults = (Fault(kind="lose", at=0.5),) if loses else ()
    findings = Findings(schedule=replace(make_schedule(0), faults=faults), folder=folder, **left)  # type: ignore[arg-type]
    findings.polls = [Poll(process=process, begun=begun, ended=ended) for process, begun, ended in spans]
    return list(one_reader(findings, Excuses(findings), Counter()))


def test_two_readers_of_an_account_are_seen() -> None:
    assert len(polled((0, 1.0, 1.2), (1, 1.1, 1.3))) == 1  # while it still polls
    assert len(polled((0, 1.0, 1.2), (1, 1.3, 1.5))) == 1  # or when it might go on
    assert len(polled((0, 1.0, 1.2), (1, 1.1, 1.3), (0, 1.2, 1.4))) == 2
    assert polled((0, 1.0, 1.2), (0, 1.1, 1.3)) == []


def test_a_reader_that_is_dead_or_still_is_followed_by_another_and_once_awake_soon_reads_no_more() -> None:
    killed = Hit(kind="kill", begun=1.1, ended=1.1, process=0)
    stopped = Hit(kind="stop", begun=1.1, ended=3.5, process=0)

    assert polled((0, 1.0, 1.1), (1, 2.6, 2.8), hits=[killed]) == []
    assert polled((0, 1.0, 3.5), (1, 2.6, 2.8), (0, 3.6, 3.7), (1, 3.7, 3.9), hits=[stopped]) == []
    woken = (0, 1.0, 3.5), (1, 2.6, 2.8), (0, 3.6, 3.7), (0, 3.7, 3.9)  # until all of it has heard of its loss
    assert polled(*woken, hits=[stopped]) == []
    assert len(polled(*woken, (0, 4.6, 4.8), hits=[stopped])) == 1

    both = [stopped, Hit(kind="stop", begun=0.5, ended=3.1, process=1)]  # the other takes over when it wakes first
    assert polled((0, 1.0, 1.1), (1, 3.4, 3.5), (0, 3.51, 3.52), (1, 4.3, 4.4), hits=both) == []
    assert len(polled((0, 1.0, 1.1), (1, 3.4, 3.5), (0, 4.6, 4.7), (1, 4.8, 4.9), hits=both)) == 1


def test_a_reader_that_the_store_did_not_answer_may_have_lost_its_lease(tmp_path: Path) -> None:
    (tmp_path / "trace").write_text("0 2.400000 late 0.900\n")  # before its last poll, so that it renewed nothing

    assert polled((0, 2.5, 2.6), (1, 3.6, 3.8), folder=tmp_path) == []
    goes_on = (0, 2.5, 2.6), (1, 2.7, 2.9), (0, 2.9, 3.0), (0, 3.5, 3.6)  # though the other has a lease
    assert len(polled(*goes_on, folder=tmp_path)) == 1
    assert len(polled((0, 5.0, 5.1), (1, 6.1, 6.3), folder=tmp_path)) == 1  # long since renewed


def test_a_turn_is_taken_from_a_process_if_the_store_was_away_for_longer_than_a_lease() -> None:
    for lasts, why in ((1.4, None), (1.6, "restart")):
        away = Hit(kind="restart", begun=1.0, ended=1.0 + lasts)
        findings = Findings(schedule=make_schedule(0), folder=Path("/nonexistent"), hits=[away])
        assert Excuses(findings).taken_turn(0, 3.0, 3.5) == why
        assert Excuses(findings).taken_turn(0, 4.0, 4.5) is None  # claimed long after it


def test_a_laboratory_that_does_not_get_to_run_keeps_back_the_answers_that_pass_it() -> None:
    starved = Hit(kind="laboratory starved", begun=1.0, ended=2.4)

    assert polled((0, 1.0, 2.4), (1, 2.5, 2.6), hits=[starved], loses=True) == []
    assert len(polled((0, 1.0, 2.4), (1, 2.5, 2.6), hits=[starved])) == 1


def test_a_silence_that_the_schedule_explains_is_no_starving(tmp_path: Path) -> None:
    (tmp_path / "trace").write_text("0 2.000000 late 0.900\n")

    def starved(*hits: Hit) -> bool:
        return bool(Findings(schedule=make_schedule(0), folder=tmp_path, hits=list(hits)).starved())

    assert starved()
    assert not starved(Hit(kind="freeze", begun=1.2, ended=2.0))
    assert not starved(Hit(kind="stop", begun=1.2, ended=1.6, process=0), Hit(kind="freeze", begun=1.4, ended=1.9))
    assert starved(Hit(kind="stop", begun=1.2, ended=2.0, process=1))
    assert starved(Hit(kind="freeze", begun=1.1, ended=1.5))
