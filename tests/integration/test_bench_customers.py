"""The bench of returning customers in short: what it measures can be told apart, and the same seed gives the same."""

from __future__ import annotations

import asyncio

import pytest

from gateway.domain.message import note_of
from gateway.runtime.tokens import TokenCounter
from tests.bench.context import delegated, drive
from tests.bench.context.archive import searched
from tests.bench.context.customers import Life, write
from tests.bench.context.facts import stands
from tests.bench.context.sheet import Sheet, render

WINDOW = 16_000
NAMES = ("none", "tail", "sliding window", "ours, empty: by rule")


@pytest.fixture(scope="module")
def counter() -> TokenCounter:
    return TokenCounter()


@pytest.fixture(scope="module")
def life(counter: TokenCounter) -> Life:
    return write(1, drive.span_of(WINDOW), counter, length=14, rows=5)


def test_the_same_seed_writes_the_same_conversation(counter: TokenCounter) -> None:
    first, again = (write(7, 4_000, counter, length=3) for _ in range(2))
    assert first == again
    assert first != write(8, 4_000, counter, length=3)


def test_what_is_needed_was_said_before_and_is_not_in_the_question(life: Life) -> None:
    said = ""
    needs = 0
    for turn in life.turns:
        for need in turn.needs:
            needs += 1
            assert all(stands(said, fact.value) for fact in need.facts)
            assert not any(stands(need.words, fact.value) for fact in need.facts)
        said += "\n".join(map(drive.readable, turn.messages)) + "\n"
    assert needs > 20


def test_messages_are_noted_as_a_store_notes_them(life: Life, counter: TokenCounter) -> None:
    assert all(note_of(message)["tokens"] == counter.message(message) for message in life.messages[:50])
    assert len({note_of(message)["id"] for message in life.messages}) == len(life.messages)


@pytest.mark.slow
def test_policies_are_told_apart(life: Life, counter: TokenCounter) -> None:
    records = drive.run(life, NAMES, WINDOW, counter)
    shares = {
        name: sum(probe.in_view for probe in record.probes) / len(record.probes) for name, record in records.items()
    }
    assert shares["none"] == 1
    assert shares["tail"] < shares["sliding window"] < 1
    assert shares["tail"] < shares["ours, empty: by rule"]
    assert all(size <= record.threshold for record in records.values() for size in record.passes)
    found = {where: hits.shown for where, hits in asyncio.run(searched(life)).items()}
    assert 0 < sum(found.values()) < len(found)
    sheet = Sheet(seed=1, messages=len(life.messages), tokens=1, records=records, found=found)
    assert "sliding window" in render(WINDOW, [sheet])


def test_a_turn_does_not_find_its_own_question_and_answer(life: Life) -> None:
    asked = next(turn for turn in life.turns if any(need.way == "other words" for need in turn.needs))
    found = asyncio.run(searched(Life(seed=1, turns=(asked,), needed={})))
    assert found
    assert not any(hits.at_10 for hits in found.values())


@pytest.mark.slow
def test_helpers_spare_a_conversation_what_they_read(life: Life, counter: TokenCounter) -> None:
    spared, told = (delegated.delegated(life, counter, told=each) for each in (False, True))
    whole, less, more = (drive.size_of(each.messages) for each in (life, spared, told))
    assert less < more < 0.8 * whole
    assert len(spared.messages) == len(life.messages)
