"""The bounds of head, middle and tail."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.context.assembly import sanitize
from gateway.context.boundaries import Layout, Limits, find_layout, latest_request
from gateway.domain.message import Message
from gateway.runtime.structs import replace
from tests.support.transcripts import COUNTER, call, transcripts

LIMITS = Limits(head_tokens=100, tail_tokens=100, protect_first_n=3, protect_last_n=6, head_limit=999)


def _turns(roles: str) -> list[Message]:
    """u: a request, a: an answer, c: a call, t: its result."""
    made: list[Message] = []
    for index, letter in enumerate(roles):
        if letter == "u":
            made.append({"role": "user", "content": f"u{index}"})
        elif letter == "a":
            made.append({"role": "assistant", "content": f"a{index}"})
        elif letter == "c":
            made.append({"role": "assistant", "content": "", "tool_calls": [call(f"k{index}")]})  # type: ignore[typeddict-item, list-item]
        else:
            made.append({"role": "tool", "tool_call_id": "k", "content": "t"})
    return made


def _layout(roles: str, *, each: int = 20, limits: Limits = LIMITS, tokens: list[int] | None = None) -> Layout:
    turns = _turns(roles)
    return find_layout(turns, tokens or [each] * len(turns), limits)


def test_head_budget_and_tail_budget() -> None:
    layout = _layout("ua" * 20)
    assert (layout.head_end, layout.cut) == (3, 34)
    assert layout.middle == tuple(range(3, 34))
    assert layout.carried == ()


def test_the_last_messages_stay_while_they_fit_one_and_a_half_budgets() -> None:
    assert 40 - _layout("ua" * 20, each=25).cut == 6
    assert 40 - _layout("ua" * 20, each=25, limits=replace(LIMITS, protect_last_n=1)).cut == 4
    assert 40 - _layout("ua" * 20, each=30).cut == 5


def test_three_messages_stay_whatever_they_take() -> None:
    assert 40 - _layout("ua" * 20, each=500, limits=replace(LIMITS, head_tokens=0)).cut == 3


def test_a_head_that_is_too_long_goes_into_the_middle() -> None:
    assert _layout("ua" * 20, tokens=[90, 90] + [20] * 38).head_end == 1
    assert _layout("ua" * 20, tokens=[900] + [20] * 39).head_end == 0


def test_the_head_moves_past_results_that_will_be_pruned_or_leaves_their_call_out() -> None:
    assert _layout("uctttaua" * 5, limits=replace(LIMITS, head_tokens=200)).head_end == 5
    assert _layout("uctttaua" * 5, limits=replace(LIMITS, head_tokens=60)).head_end == 1


def test_the_head_ends_before_an_earlier_summary_and_starts_with_a_person() -> None:
    assert _layout("ua" * 20, limits=replace(LIMITS, head_limit=1)).head_end == 1
    assert _layout("ua" * 20, limits=replace(LIMITS, head_limit=0)).head_end == 0
    assert _layout("aua" * 20).head_end == 0


def test_a_call_and_its_results_stay_together_and_may_be_pruned() -> None:
    layout = _layout("ua" * 10 + "u" + "c" + "t" * 10)
    assert layout.cut == 21
    assert layout.protected_from == 26
    assert layout.carried == (19, 20)


def test_a_call_that_alone_is_too_much_goes_into_the_middle_with_its_results() -> None:
    tokens = [20] * 20 + [20, 400, 20, 20] + [20] * 3
    layout = _layout("ua" * 10 + "u" + "ctt" + "aua", tokens=tokens)
    assert layout.cut == 24
    assert {21, 22, 23} <= set(layout.middle)
    assert _layout("ua" * 10 + "u" + "ctt" + "aua", tokens=[*tokens[:21], 20, *tokens[22:]]).cut == 21


def test_the_request_and_the_last_answer_of_a_long_turn_are_carried() -> None:
    layout = _layout("ua" * 5 + "u" + "ct" * 40)
    assert layout.carried == (9, 10)
    assert 9 not in layout.middle
    assert 10 not in layout.middle
    assert layout.cut > 80


def test_a_budget_that_protects_everything_still_leaves_a_middle() -> None:
    layout = _layout("ua" * 5 + "u", each=1)
    assert layout.head_end == 3
    assert layout.middle == (3,)


def test_a_single_group_cannot_be_divided() -> None:
    assert _layout("uc" + "t" * 30).middle == ()


def test_the_latest_request_is_a_real_one() -> None:
    turns = _turns("uau")
    assert latest_request(turns) == 2
    turns[2] = {"role": "user", "content": "notes", "_legato": {"summary": True}}
    assert latest_request(turns) == 0
    assert latest_request(turns[1:2]) is None


@settings(suppress_health_check=list(HealthCheck))
@given(
    transcripts(), st.integers(0, 300), st.integers(1, 300), st.integers(0, 5), st.integers(1, 20), st.integers(0, 9)
)
def test_every_turn_has_exactly_one_place(
    messages: list[Message], head: int, tail: int, first: int, last: int, head_limit: int
) -> None:
    turns = [m for m in sanitize(messages) if m["role"] != "system"]
    tokens = [COUNTER.message(m) for m in turns]
    layout = find_layout(
        turns,
        tokens,
        Limits(head_tokens=head, tail_tokens=tail, protect_first_n=first, protect_last_n=last, head_limit=head_limit),
    )
    places = [*range(layout.head_end), *layout.middle, *layout.carried, *range(layout.cut, len(turns))]
    assert sorted(places) == list(range(len(turns)))
    assert layout.cut <= layout.protected_from <= len(turns)
    assert layout.head_end <= layout.cut
    for edge in (layout.head_end, layout.cut):
        assert edge == len(turns) or turns[edge]["role"] != "tool"
    request = latest_request(turns)
    assert request is None or request in (*layout.carried, *range(layout.cut, len(turns)))
    assert len(turns) - layout.cut >= min(3, len(turns) - layout.head_end)
