"""The properties of `window` for every transcript, and for a long conversation of any shape: requests are valid and
fit, the latest request stays, no input is mutated. Whole lives with restarts, and what is reachable after them, are
in `contract/test_engine_lineage.py`."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.context.assembly import sanitize
from gateway.context.policy import CompressionSettings
from gateway.context.window import Window
from gateway.domain.message import Message, assistant, is_summary, note_of, text_of, tool_result, user
from tests.support.transcripts import (
    COUNTER,
    call,
    counts_hold,
    flaws,
    last_request,
    stored,
    summaries,
    tokens,
    transcripts,
)

MODEST = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
LENGTHS = st.sampled_from([1_000, 4_000, 100_000])
OVERHEAD = 700  # tokens of system prompt and tools


def window(length: int) -> Window:
    """An engine in a session."""
    engine = Window(CompressionSettings(threshold=0.75, min_threshold_tokens=0), counter=COUNTER, redact=str)
    engine.on_session_start("s1", context_length=length, model="main")
    return engine


def check(before: list[Message], after: list[Message]) -> None:
    """Valid, smaller, one marker, the latest request verbatim after it."""
    if after == before:
        return
    assert flaws(after) == []
    sound = sanitize(before, opening=False)
    assert len(summaries(after)) <= max(1, len(summaries(sound)))
    assert any(message["role"] == "user" for message in after)
    assert tokens(after) < tokens(before)
    assert counts_hold(after)
    wanted = last_request(sound)
    # Where nothing left view, what an earlier pass noted stays where it was.
    place = next((index for index, m in enumerate(after) if is_summary(m) and m not in sound), None)
    if wanted is None or place is None or note_of(wanted).get("merged") or not isinstance(wanted.get("content"), str):
        return
    rest = [text_of(message) for message in after[place + 1 :] if message["role"] == "user"]
    merged = note_of(after[place]).get("merged") and text_of(after[place]).endswith(text_of(wanted))
    assert merged or text_of(wanted) in rest


@MODEST
@given(transcripts(), st.booleans(), LENGTHS)
def test_any_transcript(messages: list[Message], force: bool, length: int) -> None:
    engine = window(length)
    given_one = copy.deepcopy(messages)
    result = engine.compress(messages, force=force)
    assert messages == given_one
    assert result is not messages
    check(messages, result)
    changed = result != messages
    assert engine.compression_count == int(changed)
    assert changed or engine.last_outcome.error
    if not engine.has_content_to_compress(messages):
        assert engine.compress(messages, force=True) == messages


@st.composite
def turns(draw: st.DrawFn) -> list[list[Message]]:
    """Steps as a conversation has them: requests, answers, calls with results; none fills a window."""
    steps: list[list[Message]] = []
    for number in range(draw(st.integers(30, 60))):
        words = draw(st.integers(1, 150))
        steps.append([user(f"Request {number}: " + draw(st.sampled_from(["word ", "字词 ", "🙂 "])) * words)])
        for step in range(draw(st.integers(0, 2))):
            ids = [f"c{number}-{step}-{n}" for n in range(draw(st.integers(1, 3)))]
            calls: Any = [call(name, command="make " + "x " * draw(st.integers(0, 100))) for name in ids]
            steps.append([assistant(None, calls), *(tool_result(name, "line\n" * words) for name in ids)])
        steps.append([assistant(f"Answer {number}. " * draw(st.integers(1, 40)))])
    return steps


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(turns())
def test_every_request_of_a_long_conversation_fits_the_window(steps: list[list[Message]]) -> None:
    length, passes = 8_000, 0
    engine = window(length)
    transcript: list[Message] = []
    for step in steps:
        transcript = [*transcript, *stored(step)]
        prompt = OVERHEAD + tokens(transcript)
        if engine.should_compress(prompt):
            result = engine.compress(transcript, current_tokens=prompt)
            check(transcript, result)
            assert result != transcript
            assert OVERHEAD + tokens(result) < engine.threshold_tokens
            transcript, passes = result, passes + 1
            prompt = OVERHEAD + tokens(transcript)
        assert prompt <= length - length // 10, "the answer has its room"
        engine.update_from_response({"prompt_tokens": prompt, "completion_tokens": 9, "total_tokens": prompt + 9})
        assert not engine.automatic_blocked
        wanted = last_request(transcript)
        assert wanted is not None
        request = next(m for each in reversed(steps[: steps.index(step) + 1]) for m in each if m["role"] == "user")
        assert text_of(wanted).endswith(text_of(request))
