"""Compactions made while nobody waits: ready when they are needed, and no trace of them if they are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.context.feedback import COMPRESSING
from gateway.context.policy import CompressionSettings
from gateway.domain.message import is_summary, note_of, text_of
from gateway.domain.session import Session
from gateway.providers.plugin import ModelSettings as ModelEntry
from gateway.runtime.errors import ProviderUnavailable
from tests.support.fakes import ManualClock
from tests.support.gateway import FEW_TOOLS, Live, config_in, running
from tests.support.model import FakeModel, Gate, Say, newest, summary_text

WINDOW = 20_000
THRESHOLD = 10_000  # half of it
WORDS = "the quick brown fox jumps over the lazy dog " * 80  # about 720 tokens


def settings(folder: Path, *, background: bool = True) -> Any:
    model = ModelEntry(provider="offline", name="fake", context_length=WINDOW)
    compression = CompressionSettings(min_threshold_tokens=0, background=background)
    return config_in(folder, model=model, compression=compression, tools=FEW_TOOLS)


def model_of(**more: Any) -> FakeModel:
    """Answers shortly and reports no usage, so that only our own count matters."""
    return FakeModel(lambda _, request: Say(text=f"heard {newest(request)[:3]}", prompt=None), **more)


async def say_until(live: Live, tokens: int) -> Session:
    """Talk until the transcript has that many tokens; the session it is in then."""
    number = 0
    while True:
        session = await live.tip()
        if session is not None and session.transcript_tokens >= tokens:
            return session
        await live.ask(f"{number:03} {WORDS}")
        number += 1


async def until_prepared(live: Live) -> None:
    await live.gateway.background.ended(f"preparation {(await present(live)).id}")


async def present(live: Live) -> Session:
    session = await live.tip()
    assert session is not None
    return session


def notices(live: Live) -> list[str]:
    return live.adapter.shown("c", "notice")


async def test_what_was_prepared_is_published_without_a_wait(tmp_path: Path) -> None:
    model = model_of()
    async with running(tmp_path, config=settings(tmp_path), model=model) as live:
        before = await say_until(live, int(0.85 * THRESHOLD))
        await until_prepared(live)
        assert model.summaries == 1
        assert (await present(live)).id == before.id  # nothing has happened yet
        await live.ask(f"xxx {WORDS}")
        await live.ask(f"yyy {WORDS}")
        after = await present(live)
        assert after.parent_id == before.id
        assert model.summaries == 1
        assert COMPRESSING not in notices(live)
        messages = await live.store.transcript(after)
        assert sum(map(is_summary, messages)) == 1
        said = [text_of(message)[:3] for message in messages if message["role"] == "user" and not is_summary(message)]
        assert said[-2:] == ["xxx", "yyy"]
        (compaction,) = await live.store.compactions(after.id)
        assert compaction.tokens_after < 0.9 * compaction.tokens_before


async def test_replies_do_not_wait_for_a_preparation_but_a_turn_without_room_does(tmp_path: Path) -> None:
    gate = Gate()
    model = model_of(summary=lambda spec, request: Say(text=summary_text(spec, request).text, gate=gate))
    async with running(tmp_path, config=settings(tmp_path), model=model) as live:
        await say_until(live, int(0.85 * THRESHOLD))
        await gate.until_waiting()
        assert await live.ask("short") == "heard sho"
        assert COMPRESSING not in notices(live)
        await live.tell(f"xxx {WORDS}")
        waits = await live.tell(f"yyy {WORDS}")
        await live.adapter.until(lambda: COMPRESSING in notices(live))
        assert live.adapter.answer_to(waits) is None
        gate.open()
        assert (await live.answer(waits)).text == "heard yyy"
        assert model.summaries == 1
        assert (await present(live)).compaction_count == 1


@pytest.mark.parametrize("command", ["/new", "/undo", "/branch"])
async def test_another_session_gets_nothing_of_what_was_prepared(tmp_path: Path, command: str) -> None:
    model = model_of()
    async with running(tmp_path, config=settings(tmp_path), model=model) as live:
        before = await say_until(live, int(0.85 * THRESHOLD))
        await until_prepared(live)
        await live.ask(command)
        await live.ask("short")
        after = await present(live)
        assert after.id != before.id
        assert not any(map(is_summary, await live.store.transcript(after)))
        assert await live.store.compactions(after.id) == []


async def test_what_a_preparation_cost_is_in_the_ledger_although_it_was_never_used(tmp_path: Path) -> None:
    def summary(spec: Any, request: Any) -> Say:
        return Say(text=summary_text(spec, request).text, prompt=4_321)

    async with running(tmp_path, config=settings(tmp_path), model=model_of(summary=summary)) as live:
        session = await say_until(live, int(0.85 * THRESHOLD))
        await until_prepared(live)
    async with running(tmp_path, config=settings(tmp_path)) as live:
        totals = {each.label: each for each in await live.store.usage(0.0, "purpose", session_id=session.id)}
        assert (totals["compression"].calls, totals["compression"].usage.input_tokens) == (1, 4_321)


async def test_a_preparation_that_no_model_helped_with_is_not_used(tmp_path: Path) -> None:
    broken = [ProviderUnavailable("away")]

    def summary(spec: Any, request: Any) -> Say:
        return Say(error=broken[0]) if broken else summary_text(spec, request)

    model = model_of(summary=summary)
    async with running(tmp_path, config=settings(tmp_path), model=model) as live:
        await say_until(live, int(0.85 * THRESHOLD))
        await until_prepared(live)
        tried = model.summaries
        assert tried
        await live.ask("short")  # too little was said for another attempt
        await until_prepared(live)
        assert model.summaries == tried
        broken.clear()
        await live.ask(f"xxx {WORDS}")
        await live.ask(f"yyy {WORDS}")
        session = await present(live)
        assert session.compaction_count == 1
        assert not (await live.store.compactions(session.id))[0].fallback


async def test_a_compaction_by_hand_takes_no_notice_of_what_was_prepared(tmp_path: Path) -> None:
    gate = Gate()
    asked: list[str] = []

    def summary(spec: Any, request: Any) -> Say:
        asked.append(newest(request))
        first = len(asked) == 1
        return Say(text=summary_text(spec, request).text, gate=gate if first else None)

    async with running(tmp_path, config=settings(tmp_path), model=model_of(summary=summary)) as live:
        await say_until(live, int(0.85 * THRESHOLD))
        await gate.until_waiting()
        assert (await live.ask("/compress foxes")).startswith("Compressed: ")
        assert gate.waiting == 0  # the preparation was called off
        assert "foxes" in asked[-1]
        assert len(asked) == 2


async def test_a_stop_ends_the_wait_for_a_preparation(tmp_path: Path) -> None:
    gate = Gate()
    model = model_of(summary=lambda spec, request: Say(text=summary_text(spec, request).text, gate=gate))
    async with running(tmp_path, config=settings(tmp_path), model=model) as live:
        before = await say_until(live, int(0.85 * THRESHOLD))
        await gate.until_waiting()
        stopped = await live.tell(f"yyy {WORDS} {WORDS}")
        await live.adapter.until(lambda: COMPRESSING in notices(live))
        await live.ask("/stop")
        gate.open()
        await live.quiet()
        assert live.adapter.answer_to(stopped) is None
        await live.ask("zzz")
        assert (await present(live)).parent_id == before.id
        assert model.summaries == 1


async def test_what_was_prepared_is_not_made_again_while_it_helps(tmp_path: Path) -> None:
    def said(_: Any, request: Any) -> Say:
        return Say(text=WORDS * 3 if int(newest(request)[:3]) % 2 == 0 else "short", prompt=None)

    model = FakeModel(said)
    async with running(tmp_path, config=settings(tmp_path), model=model) as live:
        for number in range(40):
            await live.ask(f"{number:03} {WORDS}")
            await until_prepared(live)
        passes = (await present(live)).compaction_count
        assert passes > 5
        assert model.summaries <= passes + 1  # one may wait for its turn


async def test_what_was_prepared_is_used_when_it_is_outgrown(tmp_path: Path) -> None:
    asked: list[str] = []

    def summary(spec: Any, request: Any) -> Say:
        asked.append(newest(request))
        return summary_text(spec, request)

    async with running(tmp_path, config=settings(tmp_path), model=model_of(summary=summary)) as live:
        await say_until(live, int(0.85 * THRESHOLD))
        await until_prepared(live)
        await live.ask(f"xxx {WORDS * 11}")
        first, *_ = sorted(await live.store.compactions((await present(live)).id), key=lambda each: each.at)
        assert first.tokens_after >= THRESHOLD  # later messages fill what room it makes
        assert "001 the quick" in asked[0]
        assert not any("001 the quick" in each for each in asked[1:])  # what was read for it is not read again


async def test_what_notes_say_against_the_originals_is_corrected_and_kept_on_record(tmp_path: Path) -> None:
    wrong = "## Facts\n- The deposit for the flat is 1,540 euros.\n- Eats pork.\n- Likes foxes."
    model = model_of(summary=lambda *_: Say(text=wrong))
    async with running(tmp_path, config=settings(tmp_path, background=False), model=model) as live:
        await live.ask("The deposit for the flat is 1,450 euros. I do not eat pork.")
        await say_until(live, int(0.85 * THRESHOLD))
        await live.ask("/compress")
        (notes,) = [each for each in await live.store.transcript(await present(live)) if is_summary(each)]
    assert "The deposit for the flat is 1,450 euros." in text_of(notes)
    assert "1,540" not in text_of(notes)
    assert "- “I do not eat pork.”\n- Likes foxes." in text_of(notes)
    assert note_of(notes).get("corrected") == [
        "“The deposit for the flat is 1,540 euros.” became “The deposit for the flat is 1,450 euros.”",
        "“Eats pork.” became “I do not eat pork.”",
    ]


async def test_nothing_is_prepared_when_it_is_switched_off(tmp_path: Path) -> None:
    model = model_of()
    async with running(tmp_path, config=settings(tmp_path, background=False), model=model) as live:
        await say_until(live, int(0.85 * THRESHOLD))
        await live.quiet()
        assert model.summaries == 0


@pytest.mark.parametrize(
    ("threshold", "pause", "compacted"), [("auto", 7_200.0, 1), ("auto", 60.0, 0), (0.5, 7_200.0, 0)]
)
async def test_what_was_prepared_is_published_after_a_pause_that_the_providers_cache_does_not_outlive(
    tmp_path: Path, clock: ManualClock, threshold: Any, pause: float, compacted: int
) -> None:
    entry = ModelEntry(provider="anthropic", name="claude-sonnet-4-5", api_key="none", context_length=WINDOW)
    compression = CompressionSettings(min_threshold_tokens=0, threshold=threshold)
    config = config_in(tmp_path, model=entry, compression=compression, tools=FEW_TOOLS)
    model = model_of()
    async with running(tmp_path, config=config, model=model, clock=clock, others={"anthropic": model}) as live:
        for number in range(10):  # between 0.8 and 0.9 of the threshold
            await live.ask(f"{number:03} {WORDS}")
            await live.quiet()
            await until_prepared(live)  # a pause would be longer than it may take
            await clock.advance(pause)
        assert model.summaries == compacted
        await live.ask("short")
        assert (await present(live)).compaction_count == compacted
        assert COMPRESSING not in notices(live)


async def test_the_person_is_told_once_that_a_compaction_comes(tmp_path: Path) -> None:
    async with running(tmp_path, config=settings(tmp_path), model=model_of()) as live:
        await say_until(live, int(0.85 * THRESHOLD))
        await live.ask("short")
        await live.quiet()
        (told,) = notices(live)
        assert f"tokens, and I compress it at {THRESHOLD:,}." in told
    async with running(tmp_path, config=settings(tmp_path), model=model_of()) as live:
        await live.ask("short again")
        await live.quiet()
        assert notices(live) == []  # not told again after a restart
        await live.ask("/new")
        await say_until(live, int(0.85 * THRESHOLD))
        await live.quiet()
        assert len(notices(live)) == 1


async def test_a_reset_ends_the_preparation_that_runs(tmp_path: Path) -> None:
    gate = Gate()
    model = model_of(summary=lambda spec, request: Say(text="never", gate=gate))
    async with running(tmp_path, config=settings(tmp_path), model=model) as live:
        await say_until(live, int(0.85 * THRESHOLD))
        await gate.until_waiting()
        await live.ask("/new")
        await gate.until(lambda: gate.waiting == 0)  # its model is not paid for words that nobody will read
        assert model.closed_early == 1
