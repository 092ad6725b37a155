"""The compressor as the host sees it: when, what comes out, what goes wrong, what survives."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from gateway.context.budgeted import NO_GAIN, NOTHING
from gateway.context.compressor import Compressor
from gateway.context.engine import ModelText
from gateway.context.policy import CompressionSettings
from gateway.context.prompts import END_MARKER, OPENER, SYSTEM_NOTE
from gateway.context.summariser import NO_MODEL, PATIENCE
from gateway.domain.message import Message, is_summary, note_of, text_of, user
from gateway.domain.notes import SUMMARY_REQUEST
from gateway.runtime.errors import (
    ConfigError,
    GatewayError,
    ProviderRejected,
    ProviderUnavailable,
    QuotaExceeded,
    SummaryRefused,
)
from tests.support.fakes import ManualClock
from tests.support.transcripts import (
    COUNTER,
    Extractive,
    Failing,
    Scripted,
    compressor,
    conversation,
    exchange,
    flaws,
    stored,
    summaries,
    tokens,
)

GOOD = "## Active Task\nthe last one\n## Goal\nAll parts fixed."


def _usage(prompt: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": 90_000, "total_tokens": prompt + 90_000}


async def test_a_pass_keeps_head_and_tail_and_replaces_the_middle() -> None:
    engine = compressor(Scripted(GOOD))
    messages = conversation(20)
    result = await engine.compress(messages)
    assert result[0] is messages[0]
    assert result[1] is messages[1]
    assert result[-1] is messages[-1]
    [summary] = summaries(result)
    assert text_of(summary).startswith(OPENER)
    assert GOOD in text_of(summary)
    assert END_MARKER in text_of(summary)
    assert flaws(result) == []
    assert engine.compression_count == 1
    outcome = engine.last_outcome
    assert (outcome.fallback, outcome.error, outcome.aborted) == (False, None, False)
    assert outcome.dropped == len(note_of(summary)["derived_from"])
    kept = {note_of(m).get("id") for m in result} | {i for m in result for i in note_of(m).get("derived_from", [])}
    assert kept - {None} == {f"m{index}" for index in range(len(messages))}, "every message is reachable"


async def test_the_request_that_a_summariser_gets() -> None:
    model = Scripted(GOOD)
    await compressor(model).compress(conversation(20), focus_topic="part 3", memory_context="likes tea")
    [system, task] = model.requests[0]
    assert text_of(system).splitlines()[0] == SUMMARY_REQUEST
    assert "Topic" not in text_of(task)
    for expected in ("part 3", "likes tea", "Request 15: fix src/part15.py", "out 15\nout 15"):
        assert expected in text_of(task)
    assert "And now the last one" not in text_of(task), "the tail is not summarised"


async def test_without_a_topic_the_newest_requests_are_what_it_dwells_on() -> None:
    model = Scripted(GOOD)
    await compressor(model).compress(conversation(20))
    task = text_of(model.requests[0][1])
    newest = task.partition("<newest-requests>")[2].partition("</newest-requests>")[0].split("\n")[1:-1]
    assert newest == [
        "- Request 18: fix src/part18.py",
        "- Request 19: fix src/part19.py",
        "- And now the last one, please.",
    ]
    assert "60 to 70 percent" in task


async def test_an_earlier_summary_is_updated_and_never_fed_back_as_a_turn() -> None:
    model = Scripted(GOOD, "## Active Task\nsecond")
    engine = compressor(model)
    first = await engine.compress(conversation(20))
    grown = [*first, *stored([m for n in range(30, 45) for m in exchange(n, 30)]), user("go on")]
    second = await engine.compress(grown)
    task = text_of(model.requests[1][1])
    assert task.count(GOOD) == 1
    assert task.index("<previous-notes>") < task.index(GOOD) < task.index("<conversation>")
    assert OPENER not in task
    assert "second" in text_of(summaries(second)[0])
    assert len(summaries(second)) == 1
    assert engine.compression_count == 2


async def test_the_earlier_summary_is_found_after_a_restart() -> None:
    first = await compressor(Scripted(GOOD)).compress(conversation(20))
    model = Scripted("## Active Task\nsecond")
    await compressor(model).compress([*first, *conversation(10)])
    assert GOOD in text_of(model.requests[0][1])


async def test_a_leading_system_message_is_kept_and_told_once() -> None:
    engine = compressor(Extractive())
    result = await engine.compress([{"role": "system", "content": "Be kind."}, *conversation(20)])
    assert text_of(result[0]) == f"Be kind.\n\n{SYSTEM_NOTE}"
    again = await engine.compress([*result, *conversation(20)])
    assert again[0] is result[0]


@pytest.mark.parametrize("count", [0, 1, 7])
async def test_few_messages_are_left_alone(count: int) -> None:
    model = Scripted()
    engine = compressor(model)
    messages = conversation(2)[:count]
    assert not engine.has_content_to_compress(messages)
    assert await engine.compress(messages, force=True) == messages
    assert engine.last_outcome.error == NOTHING
    assert model.requests == []


async def test_asking_on_a_short_conversation_in_a_large_window_does_something() -> None:
    engine = compressor(Scripted(GOOD), window=200_000)
    messages = conversation(12)
    assert engine.has_content_to_compress(messages)
    result = await engine.compress(messages, force=True)
    assert tokens(result) < tokens(messages) / 2


async def test_an_automatic_pass_that_saves_too_little_changes_nothing_and_is_a_strike() -> None:
    chat = stored([*({"role": "user" if n % 2 == 0 else "assistant", "content": f"{n}"} for n in range(12))])  # type: ignore[typeddict-item]
    engine = compressor(Scripted())
    for _ in range(2):
        assert not engine.automatic_blocked
        assert await engine.compress(chat) == chat
    assert engine.last_outcome.error == NO_GAIN
    assert engine.automatic_blocked
    assert not engine.should_compress(7_000)
    revived = compressor(Scripted())
    revived.load_state(json.loads(json.dumps(engine.dump_state())))
    assert revived.automatic_blocked
    await revived.compress(chat, force=True)
    assert not revived.automatic_blocked
    engine.update_model("other", 8_000)
    assert not engine.automatic_blocked


async def test_no_model_writes_notes_again_for_a_pass_that_would_save_too_little() -> None:
    notes = GOOD + "\n" + "\n".join(f"- part {n} is built and was tested twice" for n in range(50))
    model = Scripted(notes, notes)
    engine = compressor(model)
    result = await engine.compress(conversation(20))
    assert len(model.requests) == 1
    again = await engine.compress(result)
    assert len(model.requests) == 1
    assert text_of(summaries(again)[0]) == text_of(summaries(result)[0])
    await engine.compress(result, force=True)
    assert len(model.requests) == 2


async def test_a_pass_after_which_the_prompt_is_still_too_long_is_a_strike() -> None:
    engine = compressor(Extractive())
    for _ in range(2):
        assert engine.should_compress(4_000)
        assert await engine.compress(conversation(20)) != conversation(20)
        engine.update_from_response(_usage(4_500))
    assert not engine.should_compress(4_500)
    assert await engine.compress(conversation(20)) != conversation(20), "only automatic passes are held back"


def test_only_prompt_tokens_count() -> None:
    engine = compressor()
    engine.update_from_response(_usage(3_999))
    assert not engine.should_compress()
    assert engine.should_compress(4_000)
    engine.update_from_response(_usage(4_000))
    assert engine.should_compress()
    assert (engine.last_completion_tokens, engine.last_total_tokens) == (90_000, 94_000)


async def test_no_model_means_notes_by_rule() -> None:
    engine = compressor()
    result = await engine.compress(conversation(20))
    assert engine.last_outcome.fallback
    assert engine.last_outcome.error == NO_MODEL
    assert note_of(summaries(result)[0])["fallback"]
    assert "And now the last one, please." in text_of(summaries(result)[0])


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (ProviderUnavailable("down"), 60),
        (ProviderUnavailable("junk", malformed=True), 30),
        (ProviderUnavailable("slow", timed_out=True), 60),
        (TimeoutError(), 60),
        (ConfigError(["no provider"]), 600),
        (GatewayError("strange"), 60),
    ],
)
async def test_a_failing_summariser_is_left_alone_for_a_while(error: Exception, seconds: float) -> None:
    clock, model = ManualClock(), Failing(error)
    engine = compressor(model, clock=clock)
    assert summaries(await engine.compress(conversation(20)))
    assert engine.last_outcome.fallback
    revived = compressor(model, clock=clock)
    revived.load_state(engine.dump_state())
    clock.jump(seconds - 1)
    await revived.compress(conversation(20))
    assert model.calls == 1
    assert revived.last_outcome.fallback
    await revived.compress(conversation(20), force=True)
    assert model.calls == 2, "force bypasses a cooldown"
    clock.jump(1_000)
    await revived.compress(conversation(20))
    assert model.calls == 3


@pytest.mark.parametrize("error", [QuotaExceeded("no credit"), ProviderRejected("bad key", status=401)])
async def test_a_refused_key_aborts_with_the_transcript_untouched(error: Exception) -> None:
    clock, model, messages = ManualClock(), Failing(error), conversation(20)
    engine = compressor(model, clock=clock)
    for _ in range(2):
        assert await engine.compress(messages, current_tokens=5_000) == messages
        assert engine.last_outcome.aborted
        assert not engine.last_outcome.fallback
    assert model.calls == 1, "the second pass did not ask again"
    assert not engine.should_compress(5_000), "nor need the turn be held up to hear so"
    assert engine.compression_count == 0
    assert not engine.automatic_blocked
    clock.jump(601)
    assert engine.should_compress(5_000)
    result = await engine.compress(messages, current_tokens=7_700)
    assert engine.last_outcome.fallback, "an emergency takes what there is"
    assert summaries(result)


async def test_a_summariser_that_hangs_is_given_up_before_the_turn_is() -> None:
    started, clock = asyncio.Event(), ManualClock()

    async def hang(messages: object, max_tokens: int) -> str:
        started.set()
        await asyncio.Event().wait()
        return ""

    engine = compressor(hang, clock=clock)
    task = asyncio.create_task(engine.compress(conversation(20)))
    await started.wait()
    await clock.advance(PATIENCE - 1)
    assert not task.done()
    await clock.advance(1)
    assert summaries(await task)
    assert engine.last_outcome.fallback
    assert engine.last_outcome.error == "The summary model did not answer in time."
    assert engine.get_status()["summariser_resting_until"] == clock.now() + 60


@pytest.mark.parametrize("bad", ["", "word " * 5_000, ModelText(GOOD, stop="length")])
async def test_an_unusable_answer_gets_one_stricter_try(bad: str) -> None:
    model = Scripted(bad, GOOD)
    engine = compressor(model)
    result = await engine.compress(conversation(20))
    assert GOOD in text_of(summaries(result)[0])
    assert not engine.last_outcome.fallback
    assert "could not be used because" in text_of(model.requests[1][1])


async def test_a_summariser_that_says_itself_that_it_was_cut_off_is_asked_again() -> None:
    class CutOff(Extractive):
        async def __call__(self, messages: Any, max_tokens: int) -> str:
            text = await super().__call__(messages, max_tokens)
            if len(self.requests) == 1:
                raise SummaryRefused("the answer was cut off")
            return text

    model = CutOff()
    engine = compressor(model)
    await engine.compress(conversation(20))
    assert len(model.requests) == 2
    assert engine.last_outcome.error is None


async def test_a_model_switch_while_nobody_looked_is_noticed() -> None:
    engine = compressor()
    for _ in range(2):
        await engine.compress(conversation(2)[:3])
    assert engine.automatic_blocked
    for model, blocked in (("main", True), ("other", False)):
        revived = Compressor(engine.settings, counter=COUNTER, clock=ManualClock(), redact=str)
        revived.load_state(engine.dump_state())
        revived.update_model(model, 8_000)
        assert revived.automatic_blocked is blocked


async def test_two_unusable_answers_fall_back() -> None:
    engine = compressor(Scripted("", ""))
    await engine.compress(conversation(20))
    assert engine.last_outcome.fallback
    assert engine.last_outcome.error == "The summary could not be used because it was empty."


async def test_secrets_stay_out_of_requests_summaries_fallbacks_and_errors() -> None:
    secret = "open" + "-sesame-42"

    def redact(text: str) -> str:
        return text.replace(secret, "[REDACTED]")

    messages = conversation(20)
    messages[5] = {"role": "user", "content": f"the key is {secret}, never lose it"}
    leaky = Scripted(f"## Goal\nuse {secret}")
    result = await compressor(leaky, redact=redact).compress(messages)
    assert secret not in json.dumps([leaky.requests, [m for m in result if is_summary(m)]])
    engine = compressor(Failing(ProviderUnavailable(f"bad {secret}")), redact=redact)
    result = await engine.compress(messages)
    assert secret not in json.dumps([m for m in result if is_summary(m)])
    assert engine.last_outcome.error == "bad [REDACTED]"


async def test_the_failed_auxiliary_model_is_named() -> None:
    engine = compressor(Scripted(ModelText(GOOD, failed_model="small-one")))
    await engine.compress(conversation(20))
    assert engine.last_outcome.failed_model == "small-one"


async def test_a_plain_function_may_be_the_summariser() -> None:
    engine = compressor(lambda messages, max_tokens: GOOD)
    assert GOOD in text_of(summaries(await engine.compress(conversation(20)))[0])


async def test_a_window_that_turns_out_smaller_holds_for_the_summariser_too() -> None:
    model = Extractive()
    engine = compressor(model, window=100_000, auxiliary_context_length=100_000)
    engine.update_model("main", 8_000)
    await engine.compress(conversation(100))
    assert model.requests
    assert all(sum(map(COUNTER.message, request)) < 8_000 - 1_000 for request in model.requests)


async def test_a_model_that_counts_more_gets_smaller_parts() -> None:
    plain, ample = compressor(Extractive()), compressor(Extractive())
    for _ in range(20):
        ample.update_from_response({**_usage(3_900), "estimated_prompt_tokens": 1_950})
    assert ample.correction.ratio == pytest.approx(2.0)
    messages = conversation(40, size=10)
    assert tokens(await ample.compress(messages)) < 0.85 * tokens(await plain.compress(messages))
    revived = compressor()
    revived.load_state(json.loads(json.dumps(ample.dump_state())))
    assert revived.correction == ample.correction


def test_a_model_switch_recomputes_and_a_reset_forgets() -> None:
    engine = compressor(settings=CompressionSettings())
    assert (engine.context_length, engine.threshold_tokens) == (8_000, 6_120)
    engine.update_model("large", 200_000)
    assert engine.threshold_tokens == 100_000
    engine.update_model("large", 200_000, max_output_tokens=150_000)
    assert engine.threshold_tokens == 42_500
    engine.update_from_response(_usage(50_000))
    engine.on_session_reset()
    assert (engine.last_prompt_tokens, engine.compression_count) == (0, 0)
    assert engine.get_status()["usage_percent"] == 0.0


@pytest.mark.parametrize("state", [{}, {"strikes": 3, "cooldown": "x", "corrections": [1], "compression_count": "9"}])
def test_a_malformed_state_starts_afresh(state: dict[str, Any]) -> None:
    engine: Compressor = compressor()
    engine.load_state(state)
    assert (engine.compression_count, engine.automatic_blocked) == (0, False)


async def test_stored_counts_are_trusted_and_untouched_messages_are_not_recounted() -> None:
    messages: list[Message] = conversation(400, size=2)

    class Counting(type(COUNTER)):  # type: ignore[misc]
        counted = 0

        def message(self, message: Any) -> int:
            Counting.counted += 1
            return super().message(message)  # type: ignore[no-any-return]

    engine = Compressor(
        CompressionSettings(min_threshold_tokens=0), counter=Counting(), clock=ManualClock(), redact=str
    )
    engine.on_session_start("s", context_length=32_000)
    await engine.compress(messages)
    assert engine.compression_count == 1
    assert Counting.counted < 20


async def test_a_long_transcript_is_read_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = compressor(None)
    plan, threads = engine._plan, set[int]()

    def read(*given: Any, **named: Any) -> Any:
        threads.add(threading.get_ident())
        return plan(*given, **named)

    monkeypatch.setattr(engine, "_plan", read)
    assert summaries(await engine.compress(stored(conversation(40)), force=True))
    assert threads
    assert threading.get_ident() not in threads
