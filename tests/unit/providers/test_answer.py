"""Words and thoughts of an answer, the ids of its calls and its end, whatever API it comes by."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.providers.answer import PendingCall, Room, Speech, stop_reason
from gateway.providers.base import ReasoningDelta, Restarted, TextDelta
from gateway.providers.calls import CallNames
from gateway.providers.openai.codec import thinks_by_name
from gateway.runtime.errors import ContextOverflow, ProviderUnavailable


def test_an_emoji_that_two_deltas_share_stays_one() -> None:
    speech = Speech()
    events = [event for piece in ("Hi \ud83d", "\ude00", "!") for event in speech.say(piece)] + speech.say(last=True)
    assert speech.text == "Hi 😀!"
    assert events == [TextDelta(text="Hi "), TextDelta(text="😀"), TextDelta(text="!")]


@pytest.mark.parametrize("pieces", [("a\ud83d",), ("a\ud83d", "b"), ("a", "\ude00")])
def test_a_half_that_stays_alone_becomes_a_sign(pieces: tuple[str, ...]) -> None:
    speech = Speech()
    for piece in pieces:
        speech.say(piece)
    speech.say(last=True)
    assert speech.text.encode().decode() == speech.text


def test_words_that_turn_out_to_be_thoughts_are_taken_back() -> None:
    speech = Speech()
    assert speech.say("I should greet.") == [TextDelta(text="I should greet.")]
    assert speech.say("\n</think>\n\nHello.") == [
        Restarted(),
        ReasoningDelta(text="I should greet.\n"),
        TextDelta(text="Hello."),
    ]
    assert (speech.text, speech.reasoning, speech.unopened) == ("Hello.", "I should greet.\n", True)


@pytest.mark.parametrize(
    ("name", "thinks"),
    [("deepseek-r1:8b", True), ("DeepSeek-R1-Distill", True), ("qwq", True), ("qwen3-4b-thinking-2507", True),
     ("qwen3", False), ("mistral-7b", False), ("model-r12", False), ("grok-1", False)],
)  # fmt: skip
def test_models_that_are_likely_to_begin_with_thoughts(name: str, thinks: bool) -> None:
    assert thinks_by_name(name) is thinks


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


@pytest.mark.parametrize(
    ("word", "stop"),
    [
        (None, "stop"),
        ("stop", "stop"),
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("COMPLETE", "stop"),
        ("a word of tomorrow", "stop"),
        ("tool_use", "tool_calls"),
        ("MAX_TOKENS", "length"),
        ("max_output_tokens", "length"),
        ("SAFETY", "refused"),
        ("refusal", "refused"),
    ],
)
def test_words_for_the_same(word: str | None, stop: str) -> None:
    assert stop_reason(word) == stop


def test_a_window_that_filled_up_is_an_overflow() -> None:
    with pytest.raises(ContextOverflow):
        stop_reason("model_context_window_exceeded")


@pytest.mark.parametrize("word", ["network_error", "error", "insufficient_system_resource", "abort"])
def test_an_answer_that_broke_off_may_work_later(word: str) -> None:
    with pytest.raises(ProviderUnavailable) as caught:
        stop_reason(word)
    assert caught.value.malformed


def test_calls_without_an_end_are_given_up() -> None:
    room = Room()
    call = PendingCall(room=room)
    for _ in range(1_990):
        call.add("x" * 1_000)
    assert call.size == len(call.arguments) == 1_990_000
    PendingCall(room=room).add("y" * 5_000)
    with pytest.raises(ProviderUnavailable, match="did not finish it"):
        PendingCall(room=room).add("y" * 5_000)


def test_calls_without_arguments_have_an_end_too() -> None:
    room = Room()
    for _ in range(5_000):
        PendingCall(room=room)
    with pytest.raises(ProviderUnavailable, match="did not finish it"):
        PendingCall(room=room)
