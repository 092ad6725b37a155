"""A line of a file is understood, changed in one place, and otherwise left alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.trajectories.sharegpt import Change, NotATrajectory, changed_turns, parse, turns_of
from tests.support.trajectory_runs import line_of, lines, turn, worked


def test_what_stays_keeps_its_order_and_its_values() -> None:
    first = '{"value": "café", "from": "human", "n": 1.5}'
    line = f'\ufeff{{"id": 12345678901234567890123, "conversations": [{first}, %s], "x": 1}}\r\n'
    gone, stays = '{"from": "gpt", "value": "b"}', '{"from": "gpt", "value": "c"}'
    changed = parse(line % f"{gone}, {stays}").changed(Change(first=1, end=2, summary="new"))
    new = '{"from": "human", "value": "new"}'
    assert changed.decode() == (line % f"{new}, {stays}").removeprefix("\ufeff")


def test_half_a_character_is_spelled_out() -> None:
    line = '{"conversations": [{"from": "gpt", "value": "\\ud800"}, {"from": "gpt", "value": "é"}]}'
    assert b"\\ud800" in parse(line).changed(Change(first=1, end=2, summary="é"))


def test_a_notice_goes_to_the_end_of_its_text() -> None:
    line = '{"conversations": [{"value": "be A", "from": "system"}, {"from": "gpt", "value": "x"}]}'
    changed = parse(line).changed(Change(first=1, end=2, summary="s", notice='\nsay "it"', noticed=0))
    assert json.loads(changed)["conversations"][0] == {"value": 'be A\nsay "it"', "from": "system"}


@given(line=lines())
def test_turns_are_read_as_the_library_reads_them(line: bytes) -> None:
    assert parse(line.decode()).turns == turns_of(json.loads(line)["conversations"])


@given(line=lines(), data=st.data())
def test_a_change_in_a_line_is_the_change_in_memory(line: bytes, data: st.DataObject) -> None:
    values = json.loads(line)["conversations"]
    if not values:
        return
    first = data.draw(st.integers(0, len(values) - 1))
    end = data.draw(st.integers(first + 1, len(values)))
    others = [place for place in range(len(values)) if not first <= place < end]
    noticed = data.draw(st.sampled_from([None, *others]))
    change = Change(first=first, end=end, summary="短い\n", notice=' "n"', noticed=noticed)
    changed = json.loads(parse(line.decode()).changed(change))
    assert changed == {**json.loads(line), "conversations": changed_turns(values, change)}


def test_a_change_in_memory_touches_nothing_that_was_given() -> None:
    run = worked(3)
    before = json.dumps(run)
    changed_turns(run, Change(first=2, end=4, summary="s", notice="n", noticed=0))
    assert json.dumps(run) == before


def test_speakers_have_many_names() -> None:
    run = [
        turn("user", "a"), turn("assistant", "b"), turn("observation", "c"), turn("function_call", "d"),
        turn("human", "<tool_response>e</tool_response>"), turn("narrator", "f"), turn("system", "g"),
    ]  # fmt: skip
    speakers = [each.speaker for each in turns_of(run)]
    assert speakers == ["human", "gpt", "tool", "gpt", "tool", "other", "system"]


def test_a_summary_speaks_under_the_name_that_people_have_in_this_run() -> None:
    run = [turn("user", "a"), turn("assistant", "b")]
    assert changed_turns(run, Change(first=1, end=2, summary="s"))[1] == turn("user", "s")
    assert json.loads(parse(line_of(run).decode()).changed(Change(first=1, end=2, summary="s")))["conversations"][
        1
    ] == (turn("user", "s"))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "not JSON (at character 1)"),
        ("{", "not JSON (at character 2)"),
        ('{"conversations": [{"from": "gpt", "value": "x"}]', "not JSON"),
        ('{"conversations": []} {}', "not JSON (at character 23)"),
        ('{"conversations": [],}', "not JSON"),
        ('{"conversations": [,]}', "not JSON"),
        ('{"conversations" []}', "not JSON"),
        ('{"a": 1 "conversations": []}', "not JSON"),
        ("{1: 2}", "not JSON"),
        ('{"a": ' + "1" * 5_000 + "}", "not JSON"),
        ("[]", "The line is not a JSON object"),
        ('"conversations"', "The line is not a JSON object"),
        ("{}", "It has no 'conversations'"),
        ('{"a": {"conversations": []}}', "It has no 'conversations'"),
        ('{"conversations": {}}', "'conversations' is not a list"),
        ('{"conversations": null}', "'conversations' is not a list"),
        ('{"conversations": ["x"]}', "Turn 1 is not an object"),
        ('{"conversations": [{"from": "human"}]}', "The 'value' of turn 1 is not a text"),
        ('{"conversations": [{"from": "gpt", "value": null}]}', "The 'value' of turn 1 is not a text"),
        ('{"conversations": [{"from": "a", "value": ""}, {"value": "x"}]}', "Turn 2 does not say whom it is 'from'"),
        ('{"conversations": [{"role": "user", "content": "x"}]}', "Turn 1 does not say whom it is 'from'"),
        ('{"a": ' + "[" * 200_000 + "]" * 200_000 + "}", "It is nested too deeply"),
    ],
)
def test_what_is_no_run_says_why(line: str, why: str) -> None:
    with pytest.raises(NotATrajectory) as caught:
        parse(line)
    assert why in str(caught.value)
