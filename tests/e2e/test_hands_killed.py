"""The crash laboratory of hands, in short: SIGKILL of the real program while helpers, commands in the background and
changes of files are at work together. None is lost, none is done twice, no process and no half of a file is left.

`python -m tests.chaos.run hands-sqlite --runs 1 --seed N -v` shows a run again; `make chaos` does a hundred.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.chaos.hands.laboratory import laboratories
from tests.chaos.hands.script import StoreName, make_plan

pytestmark = pytest.mark.usefixtures("bwrap")


@pytest.mark.parametrize("seed", [5, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 12))])
@pytest.mark.parametrize("store", ["sqlite", pytest.param("redis", marks=pytest.mark.slow)])
async def test_whatever_is_killed_all_is_done_once(store: StoreName, seed: int) -> None:
    plan = make_plan(seed, store)
    kill = replace(plan.kills[0], after=0.0)  # later the work may be done: a fast machine needs a tenth of a second
    async with laboratories(store) as perform:
        result = await perform(replace(plan, said=plan.said[:1], kills=(kill,)))

    assert result.problems == ()
    assert len(result.killed_at) == 1
