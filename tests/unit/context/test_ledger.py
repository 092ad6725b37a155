"""The ledger: which identifiers notes should hold, and in which order."""

from __future__ import annotations

import copy

import pytest
from hypothesis import HealthCheck, given, settings

from gateway.context import identifiers
from gateway.context.assembly import sanitize
from gateway.context.identifiers import found
from gateway.context.ledger import CORRECTION, EARLIER, LEDGER, WEIGHTS, ledger
from gateway.domain.message import Message, tool_result
from tests.support.transcripts import call, transcripts


def _turn(role: str, *names: str) -> Message:
    return {"role": role, "content": "", "_legato": {"identifiers": list(names)}}  # type: ignore[typeddict-item]


def test_people_weigh_more_than_tools_and_the_recent_more_than_the_old() -> None:
    assert list(ledger([_turn("tool", "t"), _turn("assistant", "a"), _turn("user", "u")])) == ["u", "a", "t"]
    # Of equals the newer one.
    assert list(ledger([_turn("user", "old"), _turn("assistant"), _turn("user", "new")])) == ["new", "old"]


def test_what_somebody_pasted_does_not_push_out_what_they_said() -> None:
    pasted = _turn("user", *(f"req-{n}c1b0ff3" for n in range(30)))
    said = [_turn("user", f"/srv/out-{n}.csv", f"ORD-{n}") for n in range(20)]
    filler = [_turn("assistant")] * 20
    chosen = ledger([*said, *filler, pasted])
    assert {value for turn in said for value in identifiers.of(turn)} <= chosen.keys()


def test_what_is_mentioned_again_and_again_comes_first() -> None:
    assert list(ledger([_turn("tool", "b"), _turn("tool", "b"), _turn("tool", "b", "a")])) == ["b", "a"]


def test_as_many_are_looked_at_as_the_room_may_take() -> None:
    middle = [_turn("user", *(f"n{n}-{k}" for k in range(30))) for n in range(20)]
    assert len(ledger(middle)) == LEDGER
    assert len(ledger(middle, most=500)) == 500


def test_a_time_of_day_weighs_less_than_what_means_something_by_itself() -> None:
    assert list(ledger([_turn("user", "10:30"), _turn("assistant", "a")])) == ["a", "10:30"]


def test_what_earlier_notes_held_stays_by_who_said_it_and_fades_with_every_compaction() -> None:
    middle = [_turn("user", "u"), _turn("tool", "t")]
    earlier = {"said": 4.0, "again": 3.0, "faint": 0.1, "row": 0.0}
    known = ledger([*middle, _turn("tool", "again", "b")], earlier)
    assert list(known) == ["u", "said", "again", "b", "t", "faint", "row"]
    assert {value for value, entry in known.items() if not entry.lasting} == {"row"}
    assert [entry.source is None for entry in known.values()] == [False, True, False, False, False, True, True]
    passed = known["said"].weight
    for _ in range(3):
        passed = ledger(middle, {"said": passed})["said"].weight
    assert passed == pytest.approx(4 * 0.5 ** (4 / 4))  # half after four
    assert known["again"].weight == 3.0  # mentioned again: it does not fade


def test_a_place_in_eight_is_kept_for_what_people_said_long_ago() -> None:
    own = {"said": 4.0}
    weight = 4.0
    for number in range(24):
        printed = [_turn("tool", f"t{number}-{each}") for each in range(30)]
        known = ledger(printed, {"said": weight}, owned=own)
        weight, own = known["said"].weight, {"said": known["said"].own}
    assert list(known).index("said") == 7
    assert [value for value, entry in known.items() if entry.own] == ["said"]


def test_no_value_outranks_a_correction() -> None:
    address = "https://a.example.com/reports/2026/week-48.html"
    corrected = ledger([_turn("user", address, "QX-17")], corrections=frozenset({address}))
    assert list(corrected) == [address, "QX-17"]


def test_earlier_ones_are_bounded_the_lightest_are_let_go() -> None:
    earlier = {f"old{n}": float(n % 4) for n in range(EARLIER + 5)}
    known = ledger([], earlier)
    assert len(known) == EARLIER
    assert {earlier[value] for value in earlier.keys() - known.keys()} == {0.0}


def test_a_correction_comes_first_and_does_not_fade() -> None:
    middle = [_turn("user", "new"), *(_turn("user", f"n{n}") for n in range(2 * LEDGER))]
    known = ledger(middle, {"once": CORRECTION}, frozenset({"new"}))
    assert list(known)[:2] == ["new", "once"]
    assert all(known[value].weight == CORRECTION for value in ("new", "once"))


def test_alike_values_share_their_weight_and_what_repeats_what_was_said_has_none() -> None:
    rows = [f"ORD-{n}" for n in range(4)]
    known = ledger([_turn("tool", "alone"), _turn("tool", *rows), _turn("user", "a", "b")])
    weights = {value: entry.weight for value, entry in known.items()}
    assert weights == {"a": WEIGHTS["user"], "b": WEIGHTS["user"], "alone": 1.0, **dict.fromkeys(rows, 0.25)}
    assert found(tool_result("c", "2026-11-21, user (session s_1):\nthe port is 80801", recalled=True)) == []


def test_codes_in_a_list_of_their_own_belong_to_one_thing_and_are_no_rows() -> None:
    account = '{"id": "mia_li_2711", "reservations": ["4WQ150", "V2AOX1", "ZZ9PQ2", "H8K2LL"]}'
    flights = '[{"flight": "HAT101"}, {"flight": "HAT102"}, {"flight": "HAT103"}, {"flight": "HAT104"}]'
    known = ledger([tool_result("a", account), tool_result("b", flights)])
    assert {known[value].weight for value in ("4WQ150", "V2AOX1", "ZZ9PQ2", "H8K2LL")} == {1.0}
    assert {known[f"HAT10{number}"].weight for number in range(1, 5)} == {0.25}


def test_a_code_that_the_model_gives_a_tool_counts_as_its_word_and_a_path_does_not() -> None:
    calls = [call("k1", "look", order_id="#W8841", path="/srv/out/april-7.csv")]
    known = ledger([{"role": "assistant", "content": None, "tool_calls": calls}])  # type: ignore[typeddict-item]
    weights = {value: entry.weight for value, entry in known.items()}
    assert weights == {"#W8841": WEIGHTS["assistant"], "/srv/out/april-7.csv": 0.0}


@settings(suppress_health_check=list(HealthCheck))
@given(transcripts())
def test_any_transcript_has_a_ledger(messages: list[Message]) -> None:
    middle = sanitize(messages)
    given_one = copy.deepcopy(middle)
    assert len(ledger(middle)) <= LEDGER
    assert middle == given_one
