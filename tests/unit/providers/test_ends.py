"""The ends of answers in the words of the vendors."""

import pytest

from gateway.providers.ends import stop_reason
from gateway.runtime.errors import ContextOverflow, ProviderUnavailable


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
