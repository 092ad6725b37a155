"""OpenAI's Responses: requests as its API wants them, and odd answers read for what they are."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.domain.message import Message, assistant, user
from gateway.providers.base import Completed, ModelRequest, ModelSpec
from gateway.providers.openai_responses.answer import ResponsesAnswer
from gateway.providers.openai_responses.codec import Habits, encode_request, learn
from gateway.runtime.errors import ProviderUnavailable
from tests.emulators.llm_responses import violations

SPEC = ModelSpec(provider="openai-responses", name="gpt-5")
TOOL = {"type": "function", "function": {"name": "t", "description": "d", "parameters": {"type": "object"}}}


def call(call_id: str = "c1", arguments: Any = "{}") -> Any:
    return {"id": call_id, "type": "function", "function": {"name": "t", "arguments": arguments}}


def encoded(*messages: Message, **more: Any) -> dict[str, Any]:
    return encode_request(SPEC, ModelRequest(messages=messages, **more))


def test_nothing_stays_at_the_server_and_nothing_is_sent_in_vain() -> None:
    body = encoded(user("U"), tool_choice="none")
    assert body.keys() == {"model", "input", "include", "store", "stream"}
    assert body["store"] is False
    assert encoded(user("U"), max_tokens=3)["max_output_tokens"] == 16


def test_settings_of_one_call_by_the_names_of_this_api() -> None:
    form = {"type": "json_schema", "json_schema": {"name": "town", "schema": {"type": "object"}, "strict": True}}
    body = encoded(user("U"), chosen={"response_format": form, "verbosity": "low", "top_p": 0.5})
    format_ = {"type": "json_schema", "name": "town", "schema": {"type": "object"}, "strict": True}
    assert (body["text"], body["top_p"]) == ({"verbosity": "low", "format": format_}, 0.5)
    assert encoded(user("U"), chosen={"response_format": {"type": "json_object"}})["text"]["format"] == {
        "type": "json_object"
    }


def test_a_request_with_little_in_it() -> None:
    assert list(violations(encoded({"role": "system", "content": ""}))) == []
    assert list(violations(encoded({"role": "system", "content": "S"}, user(" ")))) == []


@pytest.mark.parametrize(
    ("refusal", "habits"),
    [
        ("Encrypted content is not supported with this model.", Habits(encrypts=False)),
        ("Unsupported parameter: 'include' is not supported with this model.", Habits(encrypts=False)),
        ("Unknown parameter: 'store'.", Habits(stores=False)),
        ("Unsupported parameter: 'temperature' is not supported with this model.", None),
        ("Invalid schema for function 't'.", None),
    ],
)
def test_what_is_learned_from_a_refusal(refusal: str, habits: Habits | None) -> None:
    assert learn(Habits(), refusal) == habits
    if habits is not None:
        assert learn(habits, refusal) is None, "each is learned once"


# --- answers ---------------------------------------------------------------------------------


def answered(*events: dict[str, Any]) -> Completed:
    answer = ResponsesAnswer("m", lambda: "new")
    for event in events:
        assert answer.refusal(event) is None
        answer.feed(event)
    return answer.finish()


def done(status: str = "completed", reason: str | None = None, **more: Any) -> dict[str, Any]:
    response = {"status": status, "incomplete_details": {"reason": reason} if reason else None, **more}
    return {"type": f"response.{status}", "response": response}


def message(text: str, kind: str = "output_text", **more: Any) -> dict[str, Any]:
    key = "refusal" if kind == "refusal" else "text"
    return {"type": "message", "role": "assistant", "content": [{"type": kind, key: text}], **more}


def whole(place: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": place, "item": item}


HELLO = {"type": "response.output_text.delta", "output_index": 0, "delta": "Hello"}
CALL = {"type": "function_call", "call_id": "c1", "name": "t", "arguments": "{}"}


@pytest.mark.parametrize(
    ("events", "stop"),
    [
        ((HELLO, done()), "stop"),
        ((HELLO, done("incomplete", "max_output_tokens")), "length"),
        ((HELLO, done("incomplete", "content_filter")), "refused"),
        ((whole(0, message("I will not.", "refusal")), done()), "refused"),
        (({"type": "response.refusal.delta", "delta": "No."}, done()), "refused"),
        ((HELLO, whole(1, CALL), done()), "tool_calls"),
    ],
)
def test_reasons_of_an_end(events: tuple[dict[str, Any], ...], stop: str) -> None:
    assert answered(*events).stop == stop


@pytest.mark.parametrize("events", [(HELLO,), (done(),), (HELLO, done("cancelled")), ()])
def test_a_broken_or_empty_answer_is_none(events: tuple[dict[str, Any], ...]) -> None:
    with pytest.raises(ProviderUnavailable) as caught:
        answered(*events)
    assert caught.value.malformed


def test_half_a_call_at_the_limit_is_left_out() -> None:
    added = {"type": "response.output_item.added", "output_index": 1, "item": {**CALL, "arguments": ""}}
    delta = {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '{"a'}
    completed = answered(HELLO, added, delta, done("incomplete", "max_output_tokens"))
    assert (completed.tool_calls, completed.cut_call) == ((), True)


def test_a_server_without_deltas_is_understood() -> None:
    completed = answered(whole(0, message("Hello")), whole(1, CALL), done())
    assert (completed.text, len(completed.tool_calls)) == ("Hello", 1)
    assert answered(done(output=[message("Hello"), CALL])) == completed
    assert completed.original is None, "nothing is in it that the message does not say"


def test_two_messages_stand_apart_and_go_back_as_two() -> None:
    thoughts = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "gAAAA"}
    items = [thoughts, message("I look.", phase="commentary"), message("Found.", phase="final_answer")]
    completed = answered(*(whole(at, item) for at, item in enumerate(items)), done())
    assert completed.text == "I look.\n\nFound."
    assert completed.original == {"api": "openai-responses", "model": "m", "blocks": items}


def test_thoughts_without_their_content_are_not_kept() -> None:
    """The server keeps nothing: it would not know them again."""
    thoughts = {"type": "reasoning", "id": "rs", "summary": []}
    assert answered(whole(0, thoughts), whole(1, message("Hello")), done()).original is None


def test_repeated_ids_are_replaced() -> None:
    completed = answered(whole(0, CALL), whole(1, CALL), done())
    assert [each["id"] for each in completed.tool_calls] == ["c1", "new"]
    assert completed.original is None


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "server_error", "message": "Sorry."},
        {"type": "error", "error": {"message": "Sorry."}},
        {
            "type": "response.failed",
            "response": {"status": "failed", "error": {"message": "Sorry."}, "instructions": "429"},
        },
        {"status": "failed", "error": {"message": "Sorry."}, "instructions": "429"},
    ],
)
def test_an_error_is_told_without_what_stands_around_it(event: dict[str, Any]) -> None:
    told = ResponsesAnswer("m", lambda: "new").refusal(event)
    assert told is not None
    assert "Sorry." in told
    assert "429" not in told


def test_a_rewritten_message_is_sent_as_it_says_now() -> None:
    original = {"api": "openai-responses", "model": "gpt-5", "blocks": [message("long", phase="final_answer")]}
    sent = encoded(user("U"), assistant("short", original=original), user("V"))["input"][1]
    assert sent == {"type": "message", "role": "assistant", "content": "short"}


@pytest.mark.parametrize("content", [None, "", " \n", [], [{"type": "text", "text": ""}]])
def test_a_message_that_says_nothing_leaves_no_empty_item(content: Any) -> None:
    empty: list[Any] = [{"role": role, "content": content} for role in ("user", "assistant")]
    sent = encoded(*empty, user("hi"), *empty)["input"]
    assert [item["role"] for item in sent] == ["user"]
    assert all(part["text"].strip() for part in sent[0]["content"])
