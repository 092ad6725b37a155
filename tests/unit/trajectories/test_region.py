"""The turns that give way: enough, from the front, and never a protected one or half of a call."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.trajectories.region import Region, TrajectorySettings, region
from gateway.trajectories.sharegpt import Turn, turns_of
from tests.support.trajectory_runs import RUNS, Run, turn

LETTERS = {"s": "system", "h": "human", "g": "gpt", "t": "tool", "x": "narrator"}


def spoken(pattern: str) -> tuple[Turn, ...]:
    """Turns from letters."""
    return turns_of([turn(LETTERS[letter], "x") for letter in pattern])


def taken(pattern: str, to_save: int, *, summary: int = 100, counts: list[int] | None = None) -> str:
    """The pattern with what is taken in brackets."""
    wanted = TrajectorySettings(target=1, summary=summary)
    found = region(spoken(pattern), counts or [100] * len(pattern), wanted, to_save)
    if found is None:
        return pattern
    return f"{pattern[: found.first]}[{pattern[found.first : found.end]}]{pattern[found.end :]}"


def test_as_much_as_is_needed_is_taken_from_the_front() -> None:
    assert taken("shgtgtgtgtgtgtg", 50) == "shgt[gt]gtgtgtgtg"
    assert taken("shgtgtgtgtgtgtg", 100) == "shgt[gt]gtgtgtgtg"
    assert taken("shgtgtgtgtgtgtg", 101) == "shgt[gtgt]gtgtgtg"
    assert taken("shgtgtgtgtgtgtg", 400) == "shgt[gtgtgt]gtgtg"


def test_where_not_enough_can_be_taken_all_of_it_is() -> None:
    # The last four begin with a response, so its call stays with them.
    assert taken("shgtgtgtgtgtgtg", 5_000) == "shgt[gtgtgt]gtgtg"


def test_nothing_is_taken_that_is_no_longer_than_its_summary() -> None:
    assert taken("shgthhgtg", 50, summary=100) == "shgthhgtg"
    assert taken("shgthhhgtg", 50, summary=100) == "shgt[hh]hgtg"
    assert taken("shgtg", 50) == "shgtg"
    assert taken("", 50) == ""


def test_responses_stay_with_their_call_however_many_there_are() -> None:
    assert taken("shgtttgtttgttthg", 50) == "shgttt[gttt]gttthg"
    # Only the first response is protected, but its call answers to the others too.
    assert taken("shgttttttgggggg", 50) == "shgtttttt[gg]gggg"


def test_a_first_turn_that_comes_late_divides_what_can_be_taken() -> None:
    assert taken("shggghgggtgggggg", 50) == "shg[gg]hgggtgggggg"
    # Too little stands before it, and its call is kept beside it.
    assert taken("shghgtggggggggg", 500) == "shghgt[ggggg]gggg"
    assert taken("shghgtgggg", 500, counts=[1, 1, 1, 900, 1, 1, 1, 1, 1, 1]) == "shg[h]gtgggg"


def test_speakers_of_other_names_are_not_protected() -> None:
    assert taken("xxxhggggggg", 100) == "[xx]xhggggggg"


@given(run=RUNS, to_save=st.integers(1, 2_000), last=st.integers(1, 6), data=st.data())
def test_nothing_protected_is_ever_taken(run: Run, to_save: int, last: int, data: st.DataObject) -> None:
    turns = turns_of(run)
    counts = data.draw(st.lists(st.integers(0, 200), min_size=len(turns), max_size=len(turns)))
    wanted = TrajectorySettings(target=1, summary=100, last_turns=last)
    found = region(turns, counts, wanted, to_save)
    if found is None:
        return
    assert 0 <= found.first < found.end <= len(turns) - last
    speakers = [each.speaker for each in turns]
    for speaker in ("system", "human", "gpt", "tool"):
        assert speaker not in speakers or not found.first <= speakers.index(speaker) < found.end
    assert speakers[found.end] != "tool"
    assert found.first == 0 or speakers[found.first] != "tool"
    assert found == Region(first=found.first, end=found.end, tokens=sum(counts[found.first : found.end]))
    assert found.tokens > wanted.summary
    # No turn too many: without the last turn that is no response, there would not be enough.
    back = max(place for place in range(found.first, found.end) if place == found.first or speakers[place] != "tool")
    assert sum(counts[found.first : back]) < to_save + wanted.summary
