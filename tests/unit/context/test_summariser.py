"""The request for notes: behind the conversation, or alone in parts; and the use of the answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.context.listing import HEADING as LIST_HEADING
from gateway.context.policy import CompressionSettings
from gateway.context.prompts import OPENER, framed
from gateway.context.readable import calls_by_id
from gateway.context.summary_input import parts
from gateway.domain.message import Message, note_of, text_of, user
from gateway.domain.notes import SUMMARY_REQUEST
from gateway.runtime.errors import ContextOverflow, ProviderRejected, ProviderUnavailable, SummaryRefused
from tests.support.transcripts import (
    COUNTER,
    Extractive,
    Failing,
    Scripted,
    compressor,
    conversation,
    exchange,
    stored,
    summaries,
)

GOOD = "## Active Task\nthe last one\n## Goal\nAll parts fixed."
ROOMY = CompressionSettings(min_threshold_tokens=0, left_ratio=0.9)  # the tail keeps its whole share
SECRET = "tulip-meadow-77"


def hide(text: str) -> str:
    """A redactor that knows a secret by the words in front of it only."""
    return text.replace(f"password is {SECRET}", "password is [REDACTED]")


class Aligned:
    """The host's way to the conversation's own model: gives the answers it was given, in turn."""

    def __init__(self, *answers: str | Exception | None) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[list[Message], str, int]] = []

    async def __call__(self, messages: Sequence[Message], instruction: str, max_tokens: int) -> str | None:
        """The next answer, or what it raises."""
        self.asked.append((list(messages), instruction, max_tokens))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_earlier_notes_that_are_too_long_are_shown_without_the_list_at_their_end() -> None:
    told = "\n".join(f"- Part {n} was mended, which took a while." for n in range(60))
    notes = f"## Completed Actions\n{told}"
    listed = "\n".join(f"- src/mended/file_{n}.py · It was … that broke." for n in range(160))
    summary: Message = user(framed(f"{notes}\n\n{LIST_HEADING}\n{listed}"), summary=True)
    alone = Scripted(*[GOOD] * 4)
    await compressor(alone, window=16_000).compress([*conversation(8)[:2], summary, *conversation(40)])
    shown = text_of(alone.requests[0][1]).partition("<previous-notes>\n")[2].partition("\n</previous-notes>")[0]
    assert shown == notes


# -- behind the conversation -------------------------------------------------------------------


async def test_the_conversations_own_model_is_asked_in_place_and_nobody_else() -> None:
    aligned, alone, messages = Aligned(GOOD), Scripted(), conversation(20)
    result = await compressor(alone, call_aligned=aligned).compress(messages, memory_context="likes tea")
    [(given_messages, instruction, cap)] = aligned.asked
    assert all(one is other for one, other in zip(given_messages, messages, strict=True))
    assert instruction.startswith(f"{SUMMARY_REQUEST}\n")
    assert "call no tool" in instruction
    assert "likes tea" in instruction
    assert "- Request 19: fix src/part19.py" in instruction
    assert 0 < cap < 8_000
    assert alone.requests == []
    assert GOOD in text_of(summaries(result)[0])


async def test_the_instruction_says_where_what_stays_in_view_begins() -> None:
    aligned = Aligned(GOOD)
    result = await compressor(Scripted(), call_aligned=aligned, settings=ROOMY).compress(conversation(20))
    quoted = aligned.asked[0][1].partition("<stays-in-view>\n")[2].partition("\n</stays-in-view>")[0]
    first = result[result.index(summaries(result)[0]) + 1]
    _, call = first["tool_calls"]
    assert quoted.startswith("[assistant calls terminal]")
    assert call["function"]["arguments"] in quoted


async def test_a_topic_stands_in_the_place_of_the_newest_requests() -> None:
    aligned = Aligned(GOOD)
    await compressor(Scripted(), call_aligned=aligned).compress(conversation(20), focus_topic="part 3")
    instruction = aligned.asked[0][1]
    assert "most about this topic: part 3" in instruction
    assert "<newest-requests>" not in instruction


async def test_earlier_notes_are_named_not_repeated_for_the_model_has_them_before_it() -> None:
    aligned = Aligned(GOOD, "## Active Task\nsecond")
    engine = compressor(Scripted(), call_aligned=aligned)
    first = await engine.compress(conversation(20))
    assert OPENER not in aligned.asked[0][1]
    grown = [*first, *stored([m for n in range(30, 50) for m in exchange(n, 30)]), user("go on")]
    await engine.compress(grown)
    messages, instruction, _ = aligned.asked[1]
    assert OPENER in instruction
    assert GOOD not in instruction
    assert any(GOOD in text_of(message) for message in messages)


async def test_where_it_cannot_be_asked_in_place_the_request_stands_alone() -> None:
    aligned, alone = Aligned(None), Scripted(GOOD)
    result = await compressor(alone, call_aligned=aligned).compress(conversation(20))
    [[_, task]] = alone.requests
    assert "could not be used" not in text_of(task), "nothing was tried before"
    assert GOOD in text_of(summaries(result)[0])


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("I have fixed part 20 as well. Shall I go on?", "went on with the conversation"),
        (SummaryRefused("the model called a tool instead of writing"), "called a tool"),
        ("", "empty"),
        ("## Goal\n" + "word " * 5_000, "cut off"),
    ],
)
async def test_an_unusable_answer_is_followed_by_one_stricter_request_that_stands_alone(
    answer: Any, reason: str
) -> None:
    alone = Scripted(GOOD)
    engine = compressor(alone, call_aligned=Aligned(answer))
    result = await engine.compress(conversation(20))
    [[_, task]] = alone.requests
    assert f"could not be used because {'it' if reason != 'called a tool' else 'the model'}" in text_of(task)
    assert reason in text_of(task)
    assert GOOD in text_of(summaries(result)[0])
    assert not engine.last_outcome.fallback


async def test_after_that_the_notes_are_made_by_rule() -> None:
    engine = compressor(Scripted(""), call_aligned=Aligned("Hello!"))
    await engine.compress(conversation(20))
    assert engine.last_outcome.fallback
    assert engine.last_outcome.error == "The summary could not be used because it was empty."


async def test_a_model_that_is_away_is_not_asked_another_way() -> None:
    alone = Scripted()
    engine = compressor(alone, call_aligned=Aligned(ProviderUnavailable("down")))
    await engine.compress(conversation(20))
    assert engine.last_outcome.error == "down"
    assert alone.requests == []
    refused = compressor(alone, call_aligned=Aligned(ProviderRejected("bad key", status=401)))
    messages = conversation(20)
    assert await refused.compress(messages) == messages
    assert refused.last_outcome.aborted


async def test_what_redaction_would_have_kept_from_the_request_is_taken_out_of_the_answer() -> None:
    messages = conversation(20)
    messages[10] = {"role": "user", "content": f"The password is {SECRET}."}
    leaky = Aligned(f"## Goal\nLog in with {SECRET}.")
    result = await compressor(Scripted(), call_aligned=leaky, redact=hide).compress(messages)
    assert SECRET not in text_of(summaries(result)[0])
    assert "Log in with [REDACTED]." in text_of(summaries(result)[0])


async def test_nothing_secret_is_in_the_instruction() -> None:
    messages = conversation(20)
    messages[-1] = {"role": "user", "content": f"My password is {SECRET}, is it safe?"}
    aligned = Aligned(GOOD)
    engine = compressor(Scripted(), call_aligned=aligned, redact=hide)
    await engine.compress(messages, memory_context=f"password is {SECRET}")
    assert SECRET not in aligned.asked[0][1]


# -- in parts ----------------------------------------------------------------------------------


async def test_a_small_window_is_fed_in_parts_each_of_which_updates_the_notes_before_it() -> None:
    model = Extractive(300)
    engine = compressor(model, window=100_000, auxiliary_context_length=6_000, settings=ROOMY)
    result = await engine.compress(conversation(70))
    assert 2 <= len(model.requests) <= 4
    tasks = [text_of(request[-1]) for request in model.requests]
    assert "<previous-notes>" not in tasks[0]
    assert all("<previous-notes>\n## Active Task" in task for task in tasks[1:])
    assert [task.count("[user] Request 5:") for task in tasks] == [1] + [0] * (len(tasks) - 1)
    assert "[user] Request 30:" in tasks[-1]
    assert not engine.last_outcome.fallback
    assert len(summaries(result)) == 1


@pytest.mark.parametrize(
    "window", [3_000, *(pytest.param(window, marks=pytest.mark.slow) for window in (4_000, 6_000)), 12_000]
)
async def test_every_request_fits_the_window_with_its_answer_however_much_there_is(window: int) -> None:
    asked: list[int] = []

    async def model(messages: Sequence[Message], max_tokens: int) -> str:
        asked.append(sum(map(COUNTER.message, messages)) + max_tokens)
        return "## Goal\n" + "notes " * (max_tokens // 2)

    engine = compressor(model, window=200_000, auxiliary_context_length=window)
    first = await engine.compress(conversation(400))
    await engine.compress([*first, *conversation(400)])
    assert 2 <= len(asked) <= 8, "four a pass at most"
    assert max(asked) <= window


async def test_what_fits_at_once_is_asked_for_at_once() -> None:
    model = Extractive()
    await compressor(model, window=100_000, auxiliary_context_length=32_000).compress(conversation(70))
    assert len(model.requests) == 1


async def test_when_a_part_fails_the_notes_of_those_before_stay_and_the_rest_is_noted_by_rule() -> None:
    calls: list[str] = []

    async def model(messages: Sequence[Message], max_tokens: int) -> str:
        calls.append(text_of(messages[-1]))
        if len(calls) > 1:
            raise ProviderUnavailable("gone away")
        return "## Goal\nPaint the bridge green.\n## Key Decisions\nGreen, because blue was sold out."

    engine = compressor(model, window=100_000, auxiliary_context_length=6_000)
    messages = conversation(70)
    [summary] = summaries(await engine.compress(messages))
    assert len(calls) == 2
    assert engine.last_outcome.fallback
    assert engine.last_outcome.error == "gone away"
    assert "Paint the bridge green." in text_of(summary)
    assert "Green, because blue was sold out." in text_of(summary)
    assert "And now the last one, please." in text_of(summary)
    left = int(text_of(summary).partition(" messages left view and no model")[0].rpartition("\n")[2])
    assert 0 < left < engine.last_outcome.dropped, "only the rest is counted as not read by a model"


async def test_one_stricter_try_for_all_parts_together() -> None:
    model = Scripted("", GOOD, "")
    engine = compressor(model, window=100_000, auxiliary_context_length=6_000)
    [summary] = summaries(await engine.compress(conversation(70)))
    assert len(model.requests) == 3
    assert engine.last_outcome.fallback
    assert "All parts fixed." in text_of(summary)


sizes = st.lists(st.integers(1, 400), min_size=1, max_size=60)


@given(sizes, st.integers(100, 3_000), st.integers(0, 40), st.integers(1, 5))
def test_parts_follow_one_another_cover_everything_and_keep_their_sizes(
    words: list[int], tokens: int, less: int, most: int
) -> None:
    each = tokens - less
    middle = stored([user("word " * count) for count in words])
    made = parts(middle, {}, str, chars=160_000, tokens=tokens, each=each, most=most, counter=COUNTER)
    assert 1 <= len(made) <= most
    assert [part.end for part in made] == sorted({part.end for part in made})
    assert made[-1].end == len(middle)
    slack = 120 + len(middle)  # lines for gaps, line breaks
    limit = tokens if len(made) == 1 else each
    assert all(COUNTER.text(part.text) <= limit + slack for part in made)


def test_the_oldest_is_left_out_where_the_parts_are_too_few() -> None:
    middle = stored([m for n in range(60) for m in exchange(n, 30)])
    made = parts(middle, calls_by_id(middle), str, chars=10**6, tokens=2_000, each=2_000, most=3, counter=COUNTER)
    assert len(made) == 3
    assert "older messages did not fit here]" in made[0].text
    assert "Part 59 is fixed." in made[-1].text
    shown = [n for n in range(60) if any(f"Part {n} is fixed." in part.text for part in made)]
    assert shown == list(range(shown[0], 60)) or len(shown) > 20


@pytest.mark.parametrize("stated", [pytest.param(None, marks=pytest.mark.slow), 6_000])
async def test_a_summariser_whose_window_is_smaller_than_known_is_given_less_until_it_fits(stated: int | None) -> None:
    class Small(Extractive):
        async def __call__(self, messages: Sequence[Message], max_tokens: int) -> str:
            if sum(map(COUNTER.message, messages)) + max_tokens > 6_000:
                self.overflows += 1
                raise ContextOverflow("The prompt is too long.", limit=stated)
            return await super().__call__(messages, max_tokens)

        overflows = 0

    small = Small()
    result = await compressor(small, window=64_000).compress(conversation(300, 120))
    assert 1 <= small.overflows <= 4
    assert len(summaries(result)) == 1
    assert not note_of(summaries(result)[0]).get("fallback")


async def test_a_summariser_that_fits_nothing_is_given_up() -> None:
    failing = Failing(ContextOverflow("The prompt is too long."))
    result = await compressor(failing, window=64_000).compress(conversation(300, 120))
    assert note_of(summaries(result)[0]).get("fallback")
    assert 2 <= failing.calls <= 6
