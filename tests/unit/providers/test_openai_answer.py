"""Answers in pieces, as OpenAI sends them and as everybody else does."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.providers.base import Completed, ReasoningDelta, TextDelta
from gateway.providers.openai.answer import ChatAnswer
from gateway.runtime.errors import ProviderUnavailable


def fresh() -> ChatAnswer:
    numbers = itertools.count(1)
    return ChatAnswer(lambda: f"made_{next(numbers)}")


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def piece(index: int | None, call_id: str | None = None, name: str | None = None, arguments: Any = None) -> Any:
    made: dict[str, Any] = {"function": {"name": name, "arguments": arguments}}
    if index is not None:
        made["index"] = index
    if call_id is not None:
        made["id"] = call_id
    return delta(tool_calls=[made])


def answer(*chunks: dict[str, Any], done: bool = True) -> Completed:
    whole = fresh()
    for chunk in chunks:
        whole.feed(chunk)
    if done:
        whole.done()
    return whole.finish()


def calls(completed: Completed) -> list[tuple[str, str, str]]:
    return [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in completed.tool_calls]


CALLS: list[tuple[str, list[dict[str, Any]], list[tuple[str, str, str]]]] = [
    (
        "in order",
        [piece(0, "a", "f", ""), piece(0, arguments='{"x'), piece(0, arguments='":1}')],
        [("a", "f", '{"x":1}')],
    ),
    (
        "parallel and interleaved",
        [piece(0, "a", "f", ""), piece(1, "b", "g", ""), piece(1, arguments="{}"), piece(0, arguments='{"x":1}')],
        [("a", "f", '{"x":1}'), ("b", "g", "{}")],
    ),
    ("no id", [piece(0, name="f", arguments="{}")], [("made_1", "f", "{}")]),
    ("an empty id", [piece(0, "", "f", "{}")], [("made_1", "f", "{}")]),
    (
        "the same id twice",
        [piece(0, "a", "f", "{}"), piece(1, "a", "g", "{}")],
        [("a", "f", "{}"), ("made_1", "g", "{}")],
    ),
    (
        "a name in parts",
        [piece(0, "a", "get_"), piece(0, name="time"), piece(0, arguments="{}")],
        [("a", "get_time", "{}")],
    ),
    (
        "a name repeated with every part",
        [piece(0, "a", "f", ""), piece(0, "a", "f", '{"x"'), piece(0, "a", "f", ":1}"), piece(0, "a", "f", "")],
        [("a", "f", '{"x":1}')],
    ),
    (
        "whole calls that all carry the number 0",
        [piece(0, "a", "f", '{"x":1}'), piece(0, "b", "f", '{"x":2}')],
        [("a", "f", '{"x":1}'), ("b", "f", '{"x":2}')],
    ),
    (
        "whole calls with number 0 and no ids",
        [piece(0, name="f", arguments='{"x":1}'), piece(0, name="f", arguments='{"x":2}')],
        [("made_1", "f", '{"x":1}'), ("made_2", "f", '{"x":2}')],
    ),
    (
        "no numbers, ids repeated",
        [
            piece(None, "a", "f", '{"x'),
            piece(None, "b", "g", "{"),
            piece(None, "a", None, '":1}'),
            piece(None, "b", None, "}"),
        ],
        [("a", "f", '{"x":1}'), ("b", "g", "{}")],
    ),
    (
        "neither numbers nor ids",
        [piece(None, None, "f", '{"x'), piece(None, None, None, '":1}'), piece(None, None, "g", "{}")],
        [("made_1", "f", '{"x":1}'), ("made_2", "g", "{}")],
    ),
    ("arguments as an object", [piece(0, "a", "f", {"x": 1})], [("a", "f", '{"x": 1}')]),
    ("no arguments", [piece(0, "a", "f")], [("a", "f", "{}")]),
    ("an opening with empty arguments object", [piece(0, "a", "f", ""), piece(0, arguments="")], [("a", "f", "{}")]),
    ("the older function_call", [delta(function_call={"name": "f", "arguments": "{}"})], [("made_1", "f", "{}")]),
]  # fmt: skip


@pytest.mark.parametrize(("chunks", "expected"), [case[1:] for case in CALLS], ids=[case[0] for case in CALLS])
def test_tool_calls(chunks: list[dict[str, Any]], expected: list[tuple[str, str, str]]) -> None:
    completed = answer(*chunks, delta(finish="tool_calls"))
    assert calls(completed) == expected
    assert completed.stop == "tool_calls"


@pytest.mark.parametrize(
    ("finish", "stop"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("content_filter", "refused"),
        ("tool_calls", "stop"),  # it says so, but calls nothing
        ("STOP", "stop"),
        ("something new", "stop"),
    ],
)
def test_why_it_stopped(finish: str, stop: str) -> None:
    assert answer(delta(content="x"), delta(finish=finish)).stop == stop


def test_calls_count_even_if_the_server_says_stop() -> None:
    assert answer(piece(0, "a", "f", "{}"), delta(finish="stop")).stop == "tool_calls"


def test_a_call_that_was_cut_off_is_not_made() -> None:
    completed = answer(piece(0, "a", "f", "{}"), piece(1, "b", "g", '{"x'), delta(finish="length"))
    assert completed.stop == "length"
    assert completed.cut_call
    assert calls(completed) == [("a", "f", "{}")]


def test_a_refusal_is_text_and_says_so() -> None:
    completed = answer(delta(refusal="I will not."), delta(finish="stop"))
    assert (completed.text, completed.stop) == ("I will not.", "refused")


def test_reasoning_under_either_name_is_read_once() -> None:
    whole = fresh()
    assert whole.feed(delta(reasoning="hm", reasoning_content="hm")) == [ReasoningDelta(text="hm")]
    assert whole.feed(delta(reasoning=" so", content="x")) == [ReasoningDelta(text=" so"), TextDelta(text="x")]
    whole.done()
    assert whole.finish().reasoning == "hm so"


def test_the_last_usage_counts() -> None:
    completed = answer(
        {**delta(content="x"), "usage": {"prompt_tokens": 1}},
        {**delta(finish="stop"), "usage": None},
        {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}},
    )
    assert completed.usage is not None
    assert completed.usage.total_tokens == 9


def test_other_choices_are_not_mixed_in() -> None:
    two = {"choices": [{"index": 0, "delta": {"content": "a"}}, {"index": 1, "delta": {"content": "b"}}]}
    assert answer(two).text == "a"


@pytest.mark.parametrize(
    "chunks",
    [
        [],
        [delta(content="half an ans")],
        [piece(0, "a", "f", '{"x":')],
        [delta(role="assistant")],
    ],
)
def test_a_broken_off_answer_is_no_answer(chunks: list[dict[str, Any]]) -> None:
    with pytest.raises(ProviderUnavailable) as caught:
        answer(*chunks, done=False)
    assert caught.value.malformed


@pytest.mark.parametrize(
    "chunks",
    [[delta(finish="stop")], [delta(content=" \n"), delta(finish="stop")], [delta(finish="error", content="x")]],
)
def test_an_empty_or_failed_answer_is_no_answer(chunks: list[dict[str, Any]]) -> None:
    with pytest.raises(ProviderUnavailable):
        answer(*chunks)


def test_done_is_enough_where_something_whole_was_said() -> None:
    assert answer(delta(content="yes")).text == "yes"
    with pytest.raises(ProviderUnavailable):
        answer(piece(0, "a", "f", '{"x":'))


JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["choices", "delta", "index", "tool_calls", "function", "name", "arguments", "id", "content",
                         "usage", "finish_reason", "message", "reasoning", "function_call", "text", "type"]),
        inner,
        max_size=5,
    ),
    max_leaves=14,
)  # fmt: skip


@given(chunks=st.lists(st.dictionaries(st.just("choices"), st.lists(JUNK, max_size=3)) | JUNK, max_size=4))
def test_no_chunk_of_any_shape_upsets_it(chunks: list[Any]) -> None:
    whole = fresh()
    for chunk in chunks:
        if isinstance(chunk, dict):
            whole.feed(chunk)
    whole.done()
    try:
        completed = whole.finish()
    except ProviderUnavailable:
        return
    assert all(call["id"] and call["function"]["name"] for call in completed.tool_calls)


@given(
    arguments=st.lists(st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=6), max_size=3),
                       min_size=1, max_size=3),
    data=st.data(),
)  # fmt: skip
def test_however_arguments_are_cut_they_arrive_whole(arguments: list[dict[str, Any]], data: st.DataObject) -> None:
    chunks = []
    for index, value in enumerate(arguments):
        text = json.dumps(value)
        cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
        chunks.append(piece(index, f"id{index}", "f", ""))
        chunks += [piece(index, arguments=text[a:b]) for a, b in itertools.pairwise([0, *cuts, len(text)])]
    got = [json.loads(text) for _, _, text in calls(answer(*chunks, delta(finish="tool_calls")))]
    assert got == arguments


def test_what_is_attached_in_pieces_is_kept_whole() -> None:
    made = ChatAnswer(lambda: "made", model="m", server="s")
    common = {"type": "reasoning.text", "index": 0}
    for detail in ({**common, "text": "I "}, {**common, "text": "see."}, {**common, "signature": "s"}):
        made.feed(delta(reasoning_details=[detail]))
    made.feed(delta(reasoning_details=[{"type": "reasoning.encrypted", "index": 0, "data": "x"}, "odd"]))
    google = {"google": {"thought_signature": "abc"}}
    opening = {"index": 0, "id": "c1", "function": {"name": "t", "arguments": ""}, "extra_content": google}
    made.feed(delta(tool_calls=[opening]))
    made.feed(delta(tool_calls=[{"index": 0, "function": {"arguments": "{}"}}]))
    made.feed(delta(finish="tool_calls"))
    assert made.finish().original == {
        "api": "openai",
        "model": "m",
        "server": "s",
        "blocks": [
            {
                "type": "answer",
                "reasoning_details": [
                    {**common, "text": "I see.", "signature": "s"},
                    {"type": "reasoning.encrypted", "index": 0, "data": "x"},
                ],
            },
            {"type": "call", "id": "c1", "extra_content": google},
        ],
    }
