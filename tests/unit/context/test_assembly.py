"""Valid transcripts out of any, and the summary's place and role."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.context.archive import Archive
from gateway.context.assembly import Noted, joined, sanitize, summary_message, with_system_note
from gateway.context.prompts import CONTINUED, RESULT_MISSING, SYSTEM_NOTE
from gateway.context.readable import Calls, calls_by_id
from gateway.context.summary import extract
from gateway.domain.message import Message, is_request, is_summary, note_of, text_of, user
from tests.support.transcripts import COUNTER, call, conversation, counts_hold, flaws, transcripts


def _calls(*names: str) -> Message:
    return {"role": "assistant", "content": "", "tool_calls": [call(name) for name in names]}  # type: ignore[typeddict-item]


def _result(name: str, text: str = "done") -> Message:
    return {"role": "tool", "tool_call_id": name, "content": text}


def test_a_valid_transcript_passes_as_the_same_objects() -> None:
    messages = conversation(4)
    result = sanitize(messages)
    assert result is not messages
    assert all(new is old for new, old in zip(result, messages, strict=True))


def test_orphans_go_and_missing_results_get_a_stub() -> None:
    result = sanitize(
        [user("hi"), _result("lost"), _calls("a", "b"), _result("b"), _result("b", "again"), user("next")]
    )
    assert [(m["role"], text_of(m)) for m in result] == [
        ("user", "hi"),
        ("assistant", ""),
        ("tool", RESULT_MISSING),
        ("tool", "done"),
        ("user", "next"),
    ]


def test_a_result_that_came_after_something_else_follows_its_call() -> None:
    late = _result("a", "late")
    result = sanitize([user("hi"), _calls("a"), user("steered"), late])
    assert result[2] is late
    assert text_of(result[3]) == "steered"


def test_a_reused_id_belongs_to_the_nearest_call() -> None:
    result = sanitize([user("hi"), _calls("a"), _result("a", "1"), _calls("a"), _result("a", "2")])
    assert [text_of(m) for m in result if m["role"] == "tool"] == ["1", "2"]


def test_both_id_and_call_id_match() -> None:
    calls: Any = [{"id": "fc_1", "call_id": "call_1", "type": "function", "function": {"name": "t", "arguments": "{}"}}]
    result = sanitize([user("hi"), {"role": "assistant", "content": None, "tool_calls": calls}, _result("call_1")])
    assert [m.get("tool_call_id") for m in result] == [None, None, "fc_1"]


def test_the_result_of_another_call_answers_none() -> None:
    result = sanitize([user("hi"), _calls("a"), _result("b", "of another"), user("and?")])
    assert flaws(result) == []
    assert "of another" not in [text_of(message) for message in result]


@pytest.mark.parametrize("calls", [None, [], "x", [None], [{}], [{"id": ""}], {"id": "a"}])
def test_calls_that_nothing_can_answer_are_stripped(calls: Any) -> None:
    spoken: Message = {"role": "assistant", "content": "words", "tool_calls": calls}
    assert sanitize([user("hi"), spoken])[1] == {"role": "assistant", "content": "words"}
    silent: Message = {"role": "assistant", "content": None, "tool_calls": calls}
    assert sanitize([user("hi"), silent]) == [user("hi")]


@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize("content", [None, "", " \n\t", [], [{"type": "text", "text": " "}], [None]])
def test_a_message_that_says_nothing_never_passes(role: Any, content: Any) -> None:
    asked: list[Message] = [user("hi"), {"role": "assistant", "content": "hello"}, user("and?")]
    assert sanitize([*asked[:2], {"role": role, "content": content}, asked[2]]) == asked
    assert sanitize([*asked, {"role": role}]) == asked


def test_pictures_calls_and_refusals_say_something() -> None:
    picture: Message = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}
    refusal: Any = {"role": "assistant", "content": None, "refusal": "I would rather not."}
    messages = [picture, _calls("a"), _result("a", ""), refusal]
    assert all(new is old for new, old in zip(sanitize(messages), messages, strict=True))


def test_a_transcript_never_opens_with_an_assistant() -> None:
    result = sanitize([{"role": "system", "content": "s"}, {"role": "assistant", "content": "hello"}])
    assert [(m["role"], text_of(m)) for m in result] == [("system", "s"), ("user", CONTINUED), ("assistant", "hello")]
    assert sanitize([]) == []


@settings(suppress_health_check=list(HealthCheck))
@given(transcripts())
def test_any_transcript_becomes_valid_once_and_for_all(messages: list[Message]) -> None:
    given_one = copy.deepcopy(messages)
    result = sanitize(messages)
    assert messages == given_one
    assert flaws(result) == []
    again = sanitize(result)
    assert len(again) == len(result)
    assert all(new is old for new, old in zip(again, result, strict=True))


U: Message = {"role": "user", "content": "u"}
A: Message = {"role": "assistant", "content": "a"}


@pytest.mark.parametrize(
    ("head", "tail", "roles"),
    [
        ([], [A], ["user", "assistant"]),
        ([], [U], ["user"]),
        ([U, A], [A], ["user", "assistant", "user", "assistant"]),
        ([U], [U], ["user", "assistant", "user"]),
        ([U, A], [U], ["user", "assistant", "user"]),
        ([U], [A], ["user", "assistant"]),
        ([U, _calls("x"), _result("x")], [A], ["user", "assistant", "tool", "user", "assistant"]),
        ([], [], ["user"]),
    ],
)
def test_the_summary_never_repeats_a_neighbours_role(
    head: list[Message], tail: list[Message], roles: list[str]
) -> None:
    summary = summary_message("notes", ["1", "2"], Archive(), fallback=False)
    result = joined(head, summary, tail, COUNTER)
    assert [m["role"] for m in result] == roles
    assert sum(map(is_summary, result)) == 1
    assert counts_hold(result)


@pytest.mark.parametrize(
    "content",
    ["the request\n\nin two parts", "", [{"type": "text", "text": "the request"}, {"type": "text", "text": "!"}]],
)
def test_what_was_merged_comes_apart_again(content: Any) -> None:
    summary = summary_message("notes", ["1"], Archive(), fallback=True)
    request: Message = {"role": "user", "content": content, "_legato": {"id": "9", "recalled": True}}
    merged = joined([], summary, [request], COUNTER)[0]
    assert is_request(merged)
    assert note_of(merged)["derived_from"] == ["1", "9"]
    found = extract([merged, A], COUNTER)
    assert found.notes == "notes"
    if content:
        assert found.turns[0]["content"] == content
        assert note_of(found.turns[0]).get("recalled") is True
        assert not is_summary(found.turns[0])
        assert counts_hold(found.turns)


def test_a_summary_that_is_merged_again_and_again_names_each_original_once() -> None:
    request = user("What now?", id="9")
    for number in range(12):  # a host may leave what an engine returns without an id of its own
        found = extract([request, A], COUNTER)
        summary = summary_message(
            "notes", [*found.ids, str(number)], Archive(), fallback=False, kept=Noted(identifiers={})
        )
        request = joined([], summary, [found.turns[0]], COUNTER)[0]
    assert sorted(note_of(request)["derived_from"], key=int) == [str(number) for number in range(12)]


def test_a_leading_system_message_is_told_once() -> None:
    once = with_system_note({"role": "system", "content": "Be kind."}, COUNTER)
    assert text_of(once) == f"Be kind.\n\n{SYSTEM_NOTE}"
    assert with_system_note(once, COUNTER) is once
    parts = with_system_note({"role": "system", "content": [{"type": "text", "text": "Be kind."}]}, COUNTER)
    assert text_of(parts).endswith(SYSTEM_NOTE)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(transcripts(), st.integers(0, 80))
def test_what_is_in_order_at_sight_is_what_repair_would_leave(messages: list[Message], without: int) -> None:
    messages = [*messages[:without], *messages[without + 1 :]]
    for each in (messages, sanitize(messages, opening=False)):
        seen, repaired = Calls(), Calls()
        result = sanitize(each, opening=False, calls=seen)
        # A result of no call is never in order, so that all of it goes through the repair.
        assert result == sanitize([*each, _result("nobody asked")], opening=False, calls=repaired)
        assert dict(seen) == dict(repaired) == calls_by_id(result)


def test_a_result_without_a_content_says_nothing_instead() -> None:
    empty: Message = {"role": "tool", "content": None, "tool_call_id": "a"}  # type: ignore[typeddict-item]
    assert sanitize([user("hi"), _calls("a"), empty])[-1]["content"] == ""
