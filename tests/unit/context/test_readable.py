"""Transcripts from anywhere become ones that every API takes; what was sound stays the very same object."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from gateway.context.assembly import sanitize
from gateway.context.compressor import NOTHING
from gateway.context.prompts import CONTINUED
from gateway.context.readable import UNKNOWN_PART, is_image, plain_call, read_call, sound
from gateway.domain.message import text_of, user
from tests.support.transcripts import (
    BLOB,
    IMAGE,
    STRANGE,
    Extractive,
    ObjectCall,
    call,
    compressor,
    conversation,
    exchange,
    flaws,
    last_request,
    stored,
    tokens,
)


@pytest.mark.parametrize(
    ("given", "role"),
    [
        ({"role": "human"}, "user"),
        ({"role": "Assistant"}, "assistant"),
        ({"role": "model"}, "assistant"),
        ({"role": "developer"}, "system"),
        ({"role": 7}, "user"),
        ({}, "user"),
        ({"tool_call_id": "c"}, "tool"),
        ({"tool_calls": [{"id": "c"}]}, "assistant"),
    ],
)
def test_every_message_has_a_role(given: dict[str, Any], role: str) -> None:
    message = sound({"content": "x", **given})
    assert message is not None
    assert message["role"] == role


@pytest.mark.parametrize("given", [None, 5, "text", ["user"], object()])
def test_what_is_no_message_is_left_out(given: Any) -> None:
    assert sound(given) is None
    assert sanitize([given, user("hi"), given]) == [user("hi")]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("text", "text"),
        (None, None),
        (5, "5"),
        ({"a": 1}, '{"a": 1}'),
        ([], ""),
        ([None], ""),
        (["a", {"text": "b"}], [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
        ([{"type": "hologram"}], [{"type": "text", "text": UNKNOWN_PART.format(kind="hologram")}]),
        ([{"type": ["x"]}], [{"type": "text", "text": UNKNOWN_PART.format(kind="['x']")}]),
        ([IMAGE, 5], [IMAGE, {"type": "text", "text": "5"}]),
    ],
)
def test_every_content_is_text_or_known_parts(content: Any, expected: Any) -> None:
    message = sound({"role": "user", "content": content})
    assert message is not None
    assert message.get("content") == expected


def test_a_repaired_message_derives_from_what_it_was_and_a_sound_one_is_itself() -> None:
    broken: Any = {"role": "user", "content": 5, "_legato": {"id": "7", "tokens": 1, "at": 2.0, "identifiers": []}}
    repaired: Any = sound(broken)
    assert repaired["_legato"] == {"at": 2.0, "derived_from": ["7"]}
    whole: Any = {"role": "user", "content": [IMAGE, {"type": "text", "text": "x"}]}
    assert sound(whole) is whole


@pytest.mark.parametrize(
    "given",
    [
        ObjectCall("c1"),
        {"id": "c1", "name": "terminal", "arguments": {"command": "ls"}},
        {"call_id": "c1", "function": {"name": "terminal", "arguments": {"command": "ls"}}},
    ],
)
def test_calls_of_every_shape_become_plain_ones(given: Any) -> None:
    plain = plain_call(given, read_call(given))
    assert (plain["id"], plain["function"]["name"]) == ("c1", "terminal")
    assert json.loads(plain["function"]["arguments"]) == {"command": "ls"}


def test_a_plain_call_stays_the_same_object() -> None:
    given = call("c1", command="ls")
    assert plain_call(given, read_call(given)) is given


def test_arguments_that_hold_themselves_are_no_trap() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert "unreadable" in read_call({"id": "c", "name": "t", "arguments": endless}).arguments


def test_an_image_is_known_by_its_kind() -> None:
    assert [is_image(part) for part in (IMAGE, {"type": "text"}, {"type": ["image"]}, None, "image")] == [True] + [
        False
    ] * 4


# -- compress() on what may come ---------------------------------------------------------------


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "system", "content": "only system"}],
        [{"role": "system", "content": f"rule {n}"} for n in range(30)],
        [{"role": "tool", "tool_call_id": f"c{n}", "content": "only results"} for n in range(30)],
        [{"role": "assistant", "content": None, "tool_calls": [call(f"c{n}")]} for n in range(4)],
        [None] * 50,
    ],
)
@pytest.mark.parametrize("force", [False, True])
async def test_what_holds_nothing_to_compress_stays(messages: list[Any], force: bool) -> None:
    engine = compressor(Extractive())
    assert not engine.has_content_to_compress(messages)
    assert await engine.compress(messages, force=force) == messages
    assert engine.last_outcome.error == NOTHING


@pytest.mark.parametrize("strange", STRANGE, ids=lambda value: str(value)[:40])
async def test_a_strange_message_breaks_nothing(strange: Any) -> None:
    messages: list[Any] = [m for n in range(20) for m in exchange(n)]
    for place in (len(messages), 50, 2, 0):
        messages.insert(place, copy.deepcopy(strange))
    given_one = copy.deepcopy(messages)
    engine = compressor(Extractive())
    result = await engine.compress(messages, force=True)
    assert messages == given_one
    assert flaws(result) == []
    assert tokens(result) < tokens(messages) - 4_000
    assert engine.last_outcome.error is None


async def test_only_calls_and_results_are_compressed_and_open_with_a_persons_turn() -> None:
    messages: list[Any] = []
    for number in range(60):
        messages.append({"role": "assistant", "content": None, "tool_calls": [call(f"c{number}", path=f"a/{number}")]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": "line of text\n" * 40})
    result = await compressor(Extractive()).compress(messages, force=True)
    assert flaws(result) == []
    assert tokens(result) < tokens(messages) / 2
    assert result[0]["role"] == "user"
    assert CONTINUED not in text_of(result[0]), "the notes themselves open it"


async def test_a_megabyte_of_encoded_data_is_neither_read_nor_kept() -> None:
    messages = conversation(20)
    messages[40] = stored([{"role": "user", "content": f"here is the file: {BLOB * 50} and that was it"}])[0]
    model = Extractive()
    result = await compressor(model, window=16_000).compress(messages)
    shown = text_of(model.requests[0][1])
    assert "characters of encoded data] and that was it" in shown
    assert BLOB[:100] not in shown
    assert flaws(result) == []
    request = last_request(messages)
    assert request is not None
    assert any(text_of(request) == text_of(message) for message in result)
