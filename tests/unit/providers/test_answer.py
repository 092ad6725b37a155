"""Words and thoughts of an answer, whatever API it comes by."""

import pytest

from gateway.providers.answer import Speech
from gateway.providers.base import ReasoningDelta, Restarted, TextDelta
from gateway.providers.openai.codec import thinks_by_name


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
