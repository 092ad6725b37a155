"""Ids of calls are sound, differ, and stay the same for the same transcript."""

import re

from hypothesis import given
from hypothesis import strategies as st

from gateway.providers.names import CallNames


def named(ids: list[str]) -> list[tuple[str, str]]:
    """(the name of each call, that of its result)."""
    names = CallNames(40)
    return [(names.call(each), names.result(each)) for each in ids]


@given(st.lists(st.text("ab:é-_", max_size=60), max_size=8))
def test_every_call_has_a_sound_name_of_its_own(ids: list[str]) -> None:
    found = named(ids)
    calls = [call for call, _ in found]
    assert all(re.fullmatch("[a-zA-Z0-9_-]{1,40}", call) for call in calls)
    assert len(set(calls)) == len(calls)
    assert all(call == result for call, result in found)
    assert named(ids) == found


def test_a_sound_name_stays() -> None:
    assert named(["call_1", "call_1", "functions.clock:0"])[:2] == [("call_1", "call_1"), ("call_1_2", "call_1_2")]


def test_a_name_of_the_apis_own_is_not_given_again() -> None:
    names = CallNames(40)
    names.keep(["toolu_1"])
    assert (names.result("toolu_1"), names.call("toolu_1")) == ("toolu_1", "toolu_1_2")
