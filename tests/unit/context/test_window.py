"""The engine without a model: what its marker says, what stays, what a pass without use does; and its properties."""

from __future__ import annotations

import copy
import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.context import budgeted
from gateway.context.archive import Archive
from gateway.context.assembly import sanitize
from gateway.context.budgeted import NO_GAIN, NOTHING
from gateway.context.policy import CompressionSettings
from gateway.context.prompts import END_MARKER, OPENER
from gateway.context.registry import builtin_engines
from gateway.context.window import Window
from gateway.domain.message import Message, assistant, is_request, is_summary, note_of, text_of, tool_result, user
from tests.support.examples import one_of
from tests.support.fakes import ManualClock
from tests.support.transcripts import (
    COUNTER,
    Extractive,
    call,
    compressor,
    conversation,
    counts_hold,
    exchange,
    flaws,
    last_request,
    stored,
    summaries,
    tokens,
    transcripts,
)

SETTINGS = CompressionSettings(threshold=0.75, min_threshold_tokens=0, protect_last_n=6, left_ratio=0.9)


def window(length: int = 8_000, rules: CompressionSettings = SETTINGS, **info: Any) -> Window:
    """An engine in a session."""
    engine = Window(rules, counter=COUNTER, redact=lambda text: text.replace("hunter2", "[REDACTED]"))
    engine.on_session_start("s1", context_length=length, model="main", **info)
    return engine


def timed(messages: list[Message], start: float = 0.0) -> list[Message]:
    """The messages as said one a minute from `start` on."""
    return [
        {**message, "_legato": {**note_of(message), "at": start + 60.0 * number}}  # type: ignore[typeddict-item]
        for number, message in enumerate(messages)
    ]


def usage(prompt: int) -> dict[str, int]:
    """Return usage as a provider reports it."""
    return {"prompt_tokens": prompt, "completion_tokens": 90_000, "total_tokens": prompt + 90_000}


def test_head_and_tail_stay_and_a_marker_says_what_is_gone() -> None:
    messages = timed(conversation(40))
    result = window().compress(messages)
    assert result[0] is messages[0]
    assert result[-1] is messages[-1]
    [marker] = summaries(result)
    text = text_of(marker)
    assert text.startswith(OPENER)
    assert text.endswith(END_MARKER)
    gone = [m for m in messages if note_of(m)["id"] in note_of(marker)["derived_from"]]
    first, last = messages.index(gone[0]), messages.index(gone[-1])
    span = f"said from 1970-01-01 {first // 60:02d}:{first % 60:02d} to 1970-01-01 {last // 60:02d}:{last % 60:02d} UTC"
    assert f"{len(gone)} older messages ({span}) left view." in text
    assert "search_history" in text
    assert "/recall" in text
    assert not any(line in text for m in gone for line in text_of(m).splitlines()), "nothing is told of what they say"
    kept = {note_of(m).get("id") for m in result} | {i for m in result for i in note_of(m).get("derived_from", [])}
    assert kept - {None} == {f"m{index}" for index in range(len(messages))}, "every message is reachable"


def test_a_message_that_stands_twice_is_named_once() -> None:
    messages = conversation(40)
    middle = [message for message in messages if message.get("role") == "user"][4]
    place = messages.index(middle)
    [marker] = summaries(window().compress([*messages[:place], middle, *messages[place:]]))
    named = note_of(marker)["derived_from"]
    assert note_of(middle)["id"] in named
    assert len(named) == len(set(named))


@pytest.mark.parametrize(("missing", "taken"), [(0, True), (1, False)])
def test_a_pass_that_saves_just_enough_is_taken(monkeypatch: pytest.MonkeyPatch, missing: int, taken: bool) -> None:
    messages = conversation(40)
    saved = tokens(messages) - tokens(window().compress(messages))
    monkeypatch.setattr(budgeted, "EFFECTIVE_SAVING", Fraction(saved + missing, tokens(messages)))
    engine = window()
    assert (len(engine.compress(messages)) < len(messages)) is taken
    assert engine.last_outcome.error == (None if taken else NO_GAIN)


def test_it_asks_no_model() -> None:
    def ask(*_: Any) -> str:
        raise AssertionError("a model was asked")

    engine = window(call_model=ask)
    assert len(engine.compress(conversation(40))) < 100
    assert engine.last_outcome.fallback is False, "nothing stands in for a summary: there is none to miss"
    assert engine.last_outcome.error is None
    assert engine.last_outcome.dropped > 100
    assert engine.supports_background is False


def test_three_quarters_of_the_window_unless_the_answer_needs_them() -> None:
    assert window(200_000).threshold_tokens == 150_000
    assert window(8_000).threshold_tokens == 6_000
    assert window(200_000, max_output_tokens=64_000).threshold_tokens == int(136_000 * 0.85)
    engine = window()
    engine.update_from_response(usage(5_999))
    assert not engine.should_compress()
    assert engine.should_compress(6_000)
    assert engine.last_total_tokens == 95_999


@pytest.mark.parametrize(("configured", "threshold"), [(0.5, 6_000), (0.6, 4_800), (0.9, 6_120)])
def test_the_compressors_default_threshold_is_not_its_own(configured: float, threshold: int) -> None:
    rules = CompressionSettings(threshold=configured, target_ratio=0.4)
    made = builtin_engines(rules, counter=COUNTER, clock=ManualClock(), redact=str)["window"]()
    assert isinstance(made, Window)
    made.update_model("m", 8_000)
    assert made.threshold_tokens == threshold, "never above what leaves the answer its room"
    assert (made.protect_first_n, made.protect_last_n, made.settings.target_ratio) == (3, 20, 0.4)


def test_the_next_pass_renews_the_marker_and_counts_on() -> None:
    engine = window()
    transcript = timed(conversation(40))
    total, first = len(transcript), ""
    for number in range(1, 8):
        result = engine.compress(transcript, force=True)
        [marker] = summaries(result)
        archive = Archive.read(text_of(marker))
        visible = [m for m in result if not note_of(m).get("summary") or note_of(m).get("merged")]
        assert archive.count == total - len(visible)
        first = first or archive.first
        assert archive.first == first
        assert archive.last >= first
        assert engine.compression_count == number
        more = stored([m for n in range(10) for m in exchange(100 * number + n)])
        transcript = [*result, *timed(more, start=86_400.0 * number)]
        total += len(more)


def test_restarts_between_passes_change_nothing() -> None:
    steady, restarted = window(), window()
    one = two = conversation(40)
    for number in range(5):
        steady.update_from_response(usage(6_500))
        restarted.update_from_response(usage(6_500))
        one, two = steady.compress(one), restarted.compress(two)
        assert one == two
        more = [m for n in range(10) for m in exchange(10 * number + n)]
        one, two = [*one, *more], [*two, *more]
        state = json.loads(json.dumps(restarted.dump_state()))
        restarted = Window(SETTINGS, counter=COUNTER, redact=str)
        restarted.load_state(state)
        restarted.on_session_start("s2", context_length=8_000, model="main", parent_session_id="s1")
        assert restarted.dump_state() == steady.dump_state()


async def test_notes_of_the_engine_before_are_kept_below_the_marker_once() -> None:
    written = await compressor(Extractive(200)).compress(conversation(20))
    [notes] = summaries(written)
    theirs = text_of(notes).split("=== notes ===")[1].split("===")[0].strip()
    transcript = [*written, *(m for n in range(30) for m in exchange(n)), user("Go on.")]
    engine = window(32_000)
    for _ in range(3):
        result = engine.compress(transcript, force=True, memory_context="They like tea; the word is hunter2.")
        [marker] = summaries(result)
        assert text_of(marker).count(theirs.splitlines()[0]) == 1
        assert text_of(marker).count("They like tea; the word is [REDACTED].") == 1
        transcript = [*result, *(m for n in range(30) for m in exchange(n)), user("Go on.")]


async def test_notes_that_do_not_fit_are_cut_to_the_room_there_is() -> None:
    written = await compressor(Extractive(9_000), window=200_000).compress(conversation(100, size=300), force=True)
    [notes] = summaries(written)
    transcript = [*written, *(m for n in range(30) for m in exchange(n)), user("Go on.")]
    sizes = [
        COUNTER.message(summaries(window(length).compress(transcript, force=True))[0])
        for length in (32_000, 8_000, 1_000)
    ]
    assert COUNTER.message(notes) > 1_500
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[1] > sizes[2]
    assert sizes[2] < 250


async def test_the_compressor_takes_a_marker_for_the_notes_that_it_is() -> None:
    archived = window().compress(conversation(40))
    transcript = [*archived, *(m for n in range(30) for m in exchange(n)), user("Go on.")]
    result = await compressor(Extractive()).compress(transcript, force=True)
    assert len(summaries(result)) == 1
    assert flaws(result) == []


def test_a_marker_merged_into_a_request_leaves_it_whole() -> None:
    engine = window(rules=CompressionSettings(threshold=0.75, min_threshold_tokens=0, protect_first_n=2))
    turns = [m for n in range(60) for m in (user(f"Question {n}: " + "why so? " * 30), assistant(f"Answer {n}. " * 30))]
    transcript: list[Message] = [*turns, user("The last question, please.")]
    for _ in range(3):
        result = engine.compress(transcript, force=True)
        assert flaws(result) == []
        assert len(summaries(result)) == 1
        assert [text_of(m) for m in result if is_request(m)][-1].endswith("The last question, please.")
        transcript = [*result, assistant("Done. " * 200), *turns[-40:], user("The last question, please.")]
    assert [m["role"] for m in result[:3]] == ["user", "assistant", "user"]


def test_short_conversations_stay_as_they_are() -> None:
    engine = window()
    for messages in ([], [user("hi")], conversation(1)):
        assert engine.compress(messages, force=True) == messages
        assert engine.last_outcome.error == NOTHING
        assert not engine.has_content_to_compress(messages)


def test_passes_in_vain_end_and_a_fit_lifts_the_block() -> None:
    engine = window()
    giant: list[Message] = [user("Read this."), *([assistant("a " * 3)] * 8), user("word " * 7_000)]
    for _ in range(2):
        assert engine.should_compress(7_000)
        assert engine.compress(giant) == giant
        assert engine.last_outcome.error == NO_GAIN
    assert engine.automatic_blocked
    assert not engine.should_compress(7_000)
    assert engine.get_status()["automatic_blocked"] is True
    engine.update_from_response(usage(2_000))
    assert engine.should_compress(7_000)


def test_another_tokenizer_narrows_what_is_kept() -> None:
    plain, wordy = window(), window()
    for _ in range(9):
        wordy.update_from_response({**usage(8_000), "estimated_prompt_tokens": 4_000})
    messages = conversation(60)
    assert tokens(wordy.compress(messages)) < 0.7 * tokens(plain.compress(messages))


# Properties. Whole lives with restarts, and what is reachable after them: contract/test_engine_lineage.py


LENGTHS = st.sampled_from([1_000, 4_000, 100_000])
PLAIN = CompressionSettings(threshold=0.75, min_threshold_tokens=0)
OVERHEAD = 700  # tokens of system prompt and tools


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


@settings(suppress_health_check=list(HealthCheck))
@given(transcripts(), st.booleans(), LENGTHS)
def test_any_transcript(messages: list[Message], force: bool, length: int) -> None:
    engine = window(length, PLAIN)
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


@one_of(4, suppress_health_check=list(HealthCheck))
@given(turns())
def test_every_request_of_a_long_conversation_fits_the_window(steps: list[list[Message]]) -> None:
    length, passes = 8_000, 0
    engine = window(length, PLAIN)
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
