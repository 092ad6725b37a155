"""What a message may cost, exactly: a change that raises a number writes `budgets.json` anew, and its commit says why.

Most of the numbers are the same in every run. On a platform, messages are polled and typing is shown in batches that
depend on time, and SQLite's writer takes several jobs at once when the machine is busy: hence the slack.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.bench.work import FILE, START, WORLDS, started
from tests.support.forks import forks

MEANT = "if that is meant, write budgets.json anew with `python -m tests.bench.work --write`, and say why in the commit"
BUDGETS: dict[str, dict[str, Any]] = json.loads(FILE.read_text())
# By figure: so many times the number, and so much more.
SLACK = {
    "own": (1.04, 5.0),
    "statements": (1.1, 1.0),
    "commands": (1.1, 1.0),
    "tasks": (1.1, 0.5),
    "timers": (1.1, 1.0),
    "functions": (1.02, 5.0),
    "files": (1.02, 2.0),
    "kilobytes": (1.05, 5.0),
    "modules": (1.0, 3.0),
    "ours": (1.0, 0.0),
    "whole_vocabulary": (1.0, 0.0),
}


async def measured(world: str) -> dict[str, Any]:
    """The figures of one message, counted in a process in which nothing has run before."""
    process = await forks().program("tests.bench.work", "--json", world)
    out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    found: dict[str, Any] = json.loads(out)
    return found


def over(now: dict[str, Any], budget: dict[str, Any]) -> dict[str, str]:
    """The figures that are above the budget."""
    return {
        name: f"{now[name]:g} instead of {budget[name]:g}"
        for name, (factor, more) in SLACK.items()
        if name in budget and now[name] > budget[name] * factor + more
    }


def test_a_first_reply_loads_no_more_than_it_did() -> None:
    more = over(started(), BUDGETS[START])
    assert not more, f"a first reply loads more ({more}); {MEANT}"


def test_a_message_over_the_api_costs_little_more_than_over_json_lines() -> None:
    assert BUDGETS["api"]["calls"] <= 1.25 * BUDGETS["lines"]["calls"]


@pytest.mark.parametrize("world", WORLDS)
async def test_a_message_costs_no_more_than_it_did(world: str) -> None:
    now, budget = await measured(world), BUDGETS[world]
    grown = {
        room: f"{count} instead of {budget['rooms'].get(room, 0)}"
        for room, count in now["rooms"].items()
        if count > budget["rooms"].get(room, 0) + 2
    }
    more = over(now, budget)
    assert not more, f"a message in the world {world!r} costs more ({more}); rooms that grew: {grown}; {MEANT}"
