"""What a step sees of its own draft is what is stored once it is written."""

from __future__ import annotations

from typing import Any, TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from gateway.store.draft import Draft
from gateway.store.fleeting import MemoryRecords
from gateway.store.kinds import LANE, READY, SUSPECTS, Lane
from gateway.store.space import Space
from tests.support.store_kit import key

Put: TypeAlias = tuple[str, int | None, bool]

changes: st.SearchStrategy[list[Put]] = st.lists(
    st.tuples(st.sampled_from("abc"), st.none() | st.integers(0, 3), st.booleans()), max_size=8
)


def change(space: Space, puts: list[Put]) -> None:
    """Put lanes; those without a place are dropped."""
    for chat, since, suspect in puts:
        if since is None:
            space.drop(LANE, key(chat).text)
        else:
            space.put(LANE, Lane(key=key(chat), since=since, queue=(1,), suspect=suspect))


def seen(space: Space) -> list[Any]:
    """Everything that a step can look at."""
    found: list[Any] = [space.get(LANE, key(chat).text) for chat in "abc"]
    found.append(space.many(LANE, [key(chat).text for chat in "cab"]))
    for index in (READY, SUSPECTS):
        found.append(space.count(index, "test"))
        for most in (1, 2, 9):
            found += [space.first(index, "test", most), space.last(index, "test", most)]
            found += [space.first(index, "test", most, since=1, before=3), space.last(index, "test", most, before=2)]
    return found


@given(changes, changes)
def test_records_are_seen_alike_before_and_after_they_are_written(before: list[Put], puts: list[Put]) -> None:
    records = MemoryRecords()
    records.run(change, before)

    def both(space: Space) -> list[Any]:
        change(space, puts)
        return seen(space)

    drafted, _ = records.run(both)
    assert drafted == seen(Draft(records))


@given(
    st.lists(st.one_of(st.tuples(st.just("extend"), st.integers(1, 3)), st.tuples(st.just("cut"), st.integers(0, 6))))
)
def test_series_are_seen_alike_before_and_after_they_are_written(steps: list[tuple[str, int]]) -> None:
    records = MemoryRecords()
    wanted: list[int] = []

    def some(space: Space, half: list[tuple[str, int]]) -> None:
        for what, number in half:
            if what == "cut":
                space.shorten("s", min(number, len(wanted)))
                del wanted[number:]
            else:
                space.extend("s", list(range(number)), at=len(wanted))
                wanted.extend(range(number))
            assert [space.members("s", since) for since in range(4)] == [wanted[since:] for since in range(4)]

    for half in (steps[: len(steps) // 2], steps[len(steps) // 2 :]):
        records.run(some, half)
        assert Draft(records).members("s") == wanted
