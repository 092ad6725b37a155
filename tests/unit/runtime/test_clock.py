"""Ids that must outlive a process, and a release; a limit that has struck; and pauses that grow while attempts fail."""

import asyncio

import pytest

from gateway.runtime.clock import SystemClock, lasting_id


def test_the_same_facts_have_the_same_id_in_every_release():
    assert lasting_id("o", "test/chat=1", "e1", 2) == "o_38e9cd796d08009f1f60"
    assert lasting_id("s", "e1", size=8) != lasting_id("s", "e2", size=8)
    assert len(lasting_id("s", "e1", size=8)) == len("s_") + 16


def test_half_a_surrogate_pair_can_be_a_fact():
    assert lasting_id("o", "\ud83d").startswith("o_")


@pytest.mark.parametrize("shorter", [0, 0.01])
async def test_a_limit_is_made_shorter_and_once_it_has_struck_is_not_moved_any_more(shorter: float) -> None:
    async def late() -> None:
        async with SystemClock().limit(600) as deadline:
            deadline.extend(shorter)
            try:
                await asyncio.sleep(60)
            finally:
                for seconds in (-1, 0, 60):
                    deadline.extend(seconds)

    with pytest.raises(TimeoutError):
        await late()
