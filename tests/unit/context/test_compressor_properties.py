"""The properties that hold for every transcript, however broken, and for every summariser."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.context.assembly import sanitize
from gateway.context.compressor import Compressor
from gateway.context.prompts import IMAGE_MARKER, OPENER
from gateway.domain.message import Message, note_of, text_of
from gateway.runtime.errors import ProviderUnavailable
from tests.support.examples import one_of
from tests.support.transcripts import (
    Extractive,
    Failing,
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

SUMMARISERS = st.sampled_from(["extractive", "failing", "none"])


def _engine(summariser: str, window: int) -> Compressor:
    models: dict[str, Any] = {"extractive": Extractive(), "failing": Failing(ProviderUnavailable("down")), "none": None}
    return compressor(models[summariser], window=window)


def _check(before: list[Message], after: list[Message]) -> None:
    if after == before:
        return
    assert flaws(after) == []
    written = [m for m in summaries(after) if m not in before and OPENER in text_of(m)]
    assert len(summaries(after)) == 1 or not written
    assert any(message["role"] == "user" for message in after)
    assert tokens(after) < tokens(before)
    assert counts_hold(after)
    wanted = last_request(sanitize(before, opening=False))
    summary = next((index for index, m in enumerate(after) if m in written), None)
    if wanted is not None and summary is not None and not note_of(wanted).get("merged"):
        _verbatim_after(wanted, after, summary)


def _verbatim_after(wanted: Message, after: list[Message], summary: int) -> None:
    said = [_without_images(message).get("content") for message in after[summary + 1 :]]
    merged = note_of(after[summary]).get("merged") and text_of(after[summary]).endswith(
        text_of(_without_images(wanted))
    )
    assert merged or _without_images(wanted)["content"] in said


def _without_images(message: Message) -> Message:
    """A message without its images and without what stands for them."""
    content: Any = message.get("content")
    if isinstance(content, list):
        content = [p for p in content if p.get("type") != "image_url" and p.get("text") != IMAGE_MARKER]
    return {**message, "content": content}


@settings(suppress_health_check=list(HealthCheck))
@given(transcripts(), SUMMARISERS, st.booleans(), st.sampled_from([1_000, 4_000, 100_000]))
async def test_any_transcript(messages: list[Message], summariser: str, force: bool, window: int) -> None:
    engine = _engine(summariser, window)
    given_one = copy.deepcopy(messages)
    result = await engine.compress(messages, force=force)
    assert messages == given_one
    assert result is not messages
    _check(messages, result)
    changed = result != messages
    assert engine.compression_count == int(changed)
    assert changed or engine.last_outcome.error


@settings(suppress_health_check=list(HealthCheck))
@given(transcripts(), SUMMARISERS, st.booleans())
async def test_asking_first_agrees_and_mutates_nothing(messages: list[Message], summariser: str, force: bool) -> None:
    engine = _engine(summariser, 2_000)
    given_one = copy.deepcopy(messages)
    has_content = engine.has_content_to_compress(messages)
    assert messages == given_one
    if not has_content:
        assert await engine.compress(messages, force=True) == messages


@one_of(4, suppress_health_check=list(HealthCheck))
@given(st.lists(transcripts(), min_size=6, max_size=6), SUMMARISERS)
async def test_a_conversation_that_is_compacted_again_and_again(parts: list[list[Message]], summariser: str) -> None:
    engine = _engine(summariser, 3_000)
    transcript: list[Message] = conversation(3)
    for part in parts:
        transcript = [
            *transcript,
            *(m for m in part if not isinstance(m, dict) or m.get("role") != "system"),
            *exchange(7),
            *exchange(8),
        ]
        result = await engine.compress(transcript, force=True)
        _check(transcript, result)
        transcript = stored(result) if part else result
        _keep_notes(transcript, result)


def _keep_notes(transcript: list[Message], result: list[Message]) -> None:
    """The store adds ids and keeps what a compaction noted."""
    for kept, made in zip(transcript, result, strict=True):
        kept["_legato"] = {**note_of(made), **note_of(kept)}  # type: ignore[typeddict-item]


async def test_one_step_of_three_hundred_parallel_results_is_pruned_to_fit() -> None:
    calls: Any = [call(f"k{n}", command=f"step {n}") for n in range(300)]
    messages: list[Message] = [
        {"role": "user", "content": "Everything at once."},
        {"role": "assistant", "content": None, "tool_calls": calls},
        *({"role": "tool", "tool_call_id": f"k{n}", "content": f"{n} done\n" * 100} for n in range(300)),  # type: ignore[typeddict-item]
    ]
    engine = _engine("extractive", 64_000)
    result = await engine.compress(messages)
    _check(messages, result)
    assert tokens(result) < tokens(messages) / 3
    assert result[-1] is messages[-1]
    assert [m.get("tool_call_id") for m in result[2:]] == [f"k{n}" for n in range(300)]


async def test_a_cancelled_pass_changes_nothing() -> None:
    started, never = asyncio.Event(), asyncio.Event()

    async def hang(messages: object, max_tokens: int) -> str:
        started.set()
        await never.wait()
        return ""

    engine = compressor(hang)
    messages = conversation(20)
    given_one, state = copy.deepcopy(messages), engine.dump_state()
    task = asyncio.create_task(engine.compress(messages))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert messages == given_one
    assert engine.dump_state() == state
