"""The places of the marks of prompt caching."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agent.caching import Aside, Sent, chosen_lifetime, lifetime, prompt, repeated, with_marks
from gateway.domain.message import HOST, Message, assistant, noted, text_of, tool_result, user
from gateway.domain.session import SessionRef
from gateway.providers.base import ModelSpec

CALL: Any = {"id": "c1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}
SYSTEM: Message = {"role": "system", "content": "be kind"}
parts = st.lists(st.sampled_from([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), max_size=3)
messages = st.lists(
    st.one_of(
        st.builds(user, st.text(max_size=5)),
        st.builds(lambda content: {"role": "user", "content": content, HOST: {"id": "m1"}}, parts),
        st.builds(assistant, st.none() | st.text(max_size=5), st.just([CALL])),
        st.builds(lambda text: tool_result("c1", text), st.text(max_size=5)),
    ),
    max_size=8,
)


def marks(message: Any) -> list[Any]:
    content = message.get("content")
    listed = content if isinstance(content, list) else []
    found = [part["cache_control"] for part in listed if "cache_control" in part]
    return found + ([message["cache_control"]] if "cache_control" in message else [])


@given(messages, st.sampled_from(["5m", "1h"]))
def test_at_most_four_marks_on_the_system_prompt_and_the_last_three_that_can(given_: list[Any], ttl: str) -> None:
    prompt = [SYSTEM, *given_]
    before = copy.deepcopy(prompt)
    marked = with_marks(prompt, ttl)
    assert prompt == before, "the input is not touched"
    assert len(marked) == len(prompt)
    assert [text_of(one) for one in marked] == [text_of(other) for other in prompt]
    where = [index for index, message in enumerate(marked) if marks(message)]
    able = [i for i, m in enumerate(prompt) if i and m["role"] != "tool" and m.get("content")]
    assert where == [0, *able[-3:]]
    expected = {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": "1h"}
    assert all(marks(marked[index]) == [expected] for index in where)


def test_text_becomes_one_block_and_a_list_is_marked_at_its_end() -> None:
    listed: Any = {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    mark = {"type": "ephemeral"}
    assert with_marks([user("hi")], "5m")[0]["content"] == [{"type": "text", "text": "hi", "cache_control": mark}]
    assert with_marks([listed], "5m")[0]["content"] == [
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b", "cache_control": mark},
    ]


def test_a_marked_message_keeps_what_the_host_noted() -> None:
    original = {"api": "a", "model": "m", "blocks": [{"type": "thinking"}]}
    answer = assistant("yes", original=original)
    assert with_marks([answer], "5m")[0]["_legato"] == {"original": original}


SPEC = ModelSpec(provider="offline", name="m", context_length=100_000)


def test_what_stands_beside_a_message_leaves_the_message_as_it_was() -> None:
    listed: Any = {"role": "user", "content": [{"type": "image", "source": {}}]}
    whole = [user("hello"), assistant("hi"), user("is it paid?"), assistant("yes"), listed]
    beside = prompt("be kind", whole, SPEC, Aside(2, "[quotes]"))
    assert text_of(beside[3]) == "[quotes]\n\nis it paid?"
    assert [*beside[:3], *beside[4:]] == prompt("be kind", [*whole[:2], *whole[3:]], SPEC)
    assert prompt("be kind", whole, SPEC, Aside(4, "[quotes]"))[5]["content"] == [
        {"type": "text", "text": "[quotes]"},
        {"type": "image", "source": {}},
    ]
    assert whole[2] == user("is it paid?")
    assert listed["content"] == [{"type": "image", "source": {}}]


def test_a_request_is_repeated_with_what_stood_beside_its_message() -> None:
    whole = [user("hello"), assistant("hi"), user("is it paid?")]
    aside = Aside(2, "[quotes]")
    sent = Sent(
        session=SessionRef(id="s", epoch=1),
        spec=SPEC,
        system_prompt="be kind",
        tools=(),
        tool_choice="auto",
        count=3,
        tokens=10,
        at=0.0,
        caches=True,
        aside=aside,
    )
    again = repeated(sent, [*whole, assistant("yes")], "sum up", 100).messages
    assert again[:4] == prompt("be kind", whole, SPEC, aside)
    assert again[4:] == [assistant("yes"), user("sum up")]


SECONDS, MINUTES, HOURS = [20.0] * 20, [20.0, 900.0] * 10, [20.0, 20_000.0] * 10


@pytest.mark.parametrize(
    ("pauses", "prompt_tokens", "growth", "lasts"),
    [
        (SECONDS, 40_000, 800, "5m"),  # what is read now and then anew lives for ever
        (MINUTES, 40_000, 800, "1h"),  # every second request would write everything again
        (MINUTES, 3_000, 4_000, "5m"),  # what is new is more than what is known
        (HOURS, 40_000, 800, "5m"),  # an hour is too short as well
        ([20.0] * 19 + [1_200.0], 60_000, 200, "1h"),  # one long tool run in twenty steps
        ([20.0] * 19 + [1_200.0], 20_000, 4_000, "5m"),
        ([], 40_000, 800, "5m"),  # nothing is known yet
    ],
)
def test_the_cheaper_lifetime(pauses: list[float], prompt_tokens: int, growth: float, lasts: str) -> None:
    assert lifetime(pauses, prompt_tokens, growth) == lasts


def test_a_lifetime_is_chosen_by_the_times_of_the_answers() -> None:
    def talk(pause: float) -> list[Message]:
        said = [user("go on"), assistant("well …")] * 12
        return [noted(message, at=1_000.0 + place // 2 * pause, tokens=400) for place, message in enumerate(said)]

    assert chosen_lifetime(reversed(talk(1_200.0)), 30_000) == "1h"
    assert chosen_lifetime(reversed(talk(30.0)), 30_000) == "5m"
    assert chosen_lifetime([], 30_000) == "5m"
    compacted = [*talk(9_000.0)[:2], noted(user("notes", summary=True), at=90_000.0), *talk(30.0)[-6:]]
    assert chosen_lifetime(reversed(compacted), 30_000) == "5m", "the beginning is old, and its chat is quick"
