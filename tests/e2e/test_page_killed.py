"""SIGKILL and cuts around the page: each message and answer once, and an open tab is what a reload shows.

One seeded run; `make chaos` does two hundred. `python -m tests.chaos.run page --runs 1 --seed N -v` shows one again.
"""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.bots.script import Kill
from tests.chaos.campaign import campaign
from tests.chaos.page.laboratory import laboratories
from tests.chaos.page.script import make_schedule

KILLS = (Kill(point="accept.before", after=9.0), Kill(point="outbox.after_send", after=9.0))


async def test_whatever_is_killed_and_cut_the_page_shows_all_once() -> None:
    drawn = make_schedule(1)
    cuts, torn = ((2, 3, 1), (1, 1, 4)), (9_000, 20, 3_000, 90) * 2
    schedule = replace(drawn, kills=KILLS, said=drawn.said[:4], cuts=cuts, torn=torn)
    (result,) = [result async for result in campaign([schedule], laboratories, jobs=1)]
    assert result.problems == ()
    assert result.counts["messages"] == 4
    assert result.counts["cuts"] > 0
    assert result.counts["torn"] > 0
    assert result.killed_at == ("accept.before", "outbox.after_send")
