"""Many at once, results in order, never too many."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.runtime.errors import UserError
from gateway.trajectories.run import AHEAD, HELD_BYTES, in_order


class Watched:
    """Work that ends when it is told to; how many were read, begun and done."""

    def __init__(self, items: list[int]) -> None:
        self.items = items
        self.read: list[int] = []
        self.done: list[tuple[int, int]] = []
        self.working: set[int] = set()
        self.most = 0
        self.gates = {item: asyncio.Event() for item in items}

    def each(self) -> Iterator[int]:
        """The items, noting what is asked for."""
        for item in self.items:
            self.read.append(item)
            yield item

    async def work(self, item: int) -> int:
        """Ends with its gate."""
        self.working.add(item)
        self.most = max(self.most, len(self.working))
        await self.gates[item].wait()
        self.working.discard(item)
        return item * 10

    async def run(self, concurrency: int, size: int = 1) -> None:
        """All of it."""
        await in_order(
            self.each(),
            self.work,
            lambda item, result: self.done.append((item, result)),
            concurrency=concurrency,
            size=lambda _: size,
        )


@given(order=st.permutations(range(12)), concurrency=st.integers(1, 5))
def test_results_come_in_order_whatever_ends_first(order: list[int], concurrency: int) -> None:
    async def main() -> None:
        watched = Watched(list(range(12)))
        async with asyncio.TaskGroup() as group:
            group.create_task(watched.run(concurrency))
            for item in order:
                await asyncio.sleep(0)
                watched.gates[item].set()
        assert watched.done == [(item, item * 10) for item in range(12)]
        assert watched.most <= concurrency

    asyncio.run(main())


async def settled() -> None:
    """Everything that can go on has gone on."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_a_slow_one_does_not_stop_the_others_but_not_everything_is_read() -> None:
    watched = Watched(list(range(100)))
    for item in range(1, 100):
        watched.gates[item].set()
    async with asyncio.TaskGroup() as group:
        group.create_task(watched.run(2))
        await settled()
        assert watched.done == []
        assert watched.working == {0}
        assert len(watched.read) == 2 * AHEAD + 1  # one more was read and waits for room
        watched.gates[0].set()
    assert [item for item, _ in watched.done] == list(range(100))


async def test_few_long_ones_are_held_at_a_time() -> None:
    watched = Watched(list(range(10)))
    async with asyncio.TaskGroup() as group:
        group.create_task(watched.run(4, size=HELD_BYTES // 2))
        await settled()
        assert watched.working == {0, 1}
        for gate in watched.gates.values():
            gate.set()
    assert len(watched.done) == 10


async def test_one_that_is_longer_than_all_room_is_worked_on_alone() -> None:
    watched = Watched([0, 1])
    async with asyncio.TaskGroup() as group:
        group.create_task(watched.run(4, size=HELD_BYTES * 2))
        await settled()
        assert watched.working == {0}
        for gate in watched.gates.values():
            gate.set()
    assert len(watched.done) == 2


async def test_the_first_error_ends_it_and_is_raised_as_it_is() -> None:
    async def work(item: int) -> int:
        if item == 3:
            raise UserError("no")
        return item

    done: list[int] = []
    with pytest.raises(UserError, match="no"):
        await in_order(range(10), work, lambda item, _: done.append(item), concurrency=2, size=lambda _: 1)
    assert done == [0, 1, 2][: len(done)]

    async def quick(item: int) -> int:
        return item

    def full(item: int, result: int) -> None:
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        await in_order(range(10), quick, full, concurrency=2, size=lambda _: 1)
