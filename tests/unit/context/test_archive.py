"""The line that leads back: what it counts, when it was said, what survives a restart, an import, another engine."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import to_builtins

from gateway.context.archive import Archive, without_line
from gateway.context.policy import CompressionSettings
from gateway.context.prompts import framed
from gateway.context.window import Window
from gateway.domain.message import Message, is_summary, note_of, noted, text_of, user
from tests.support.transcripts import COUNTER, Extractive, compressor, conversation, exchange, stored, summaries

ARCHIVE = Archive(count=12_345, first="2026-01-02 03:04", last="2026-05-06 07:08")
DAY = 86_400.0


def timed(messages: list[Message], start: float = 0.0) -> list[Message]:
    """The messages as said one a minute from `start` on."""
    return [noted(message, at=start + 60.0 * number) for number, message in enumerate(messages)]


@pytest.mark.parametrize("summariser", [Extractive(200), None], ids=["by a model", "by rule"])
async def test_every_summary_says_how_many_messages_it_stands_for_and_from_when_to_when(summariser: Any) -> None:
    engine, transcript = compressor(summariser), timed(conversation(20))
    total = len(transcript)
    for number in range(1, 5):
        result = await engine.compress(transcript, force=True)
        [summary] = summaries(result)
        visible = [m for m in result if not is_summary(m) or note_of(m).get("merged")]
        archive = Archive.read(text_of(summary))
        assert archive.count == total - len(visible), number
        assert archive.line() in text_of(summary)
        assert text_of(summary).count("left view.") == 1
        assert archive.first == "1970-01-01 00:04", "the head stays"
        assert archive.last.startswith(f"1970-01-0{number}"), number
        assert "search_history" in text_of(summary)
        more = [m for n in range(10) for m in exchange(100 * number + n)]
        transcript = [*result, *timed(stored(more), start=number * DAY)]
        total += len(more)


async def test_another_engine_counts_on() -> None:
    result = await compressor(Extractive(200)).compress(timed(conversation(20)), force=True)
    [before] = summaries(result)
    window = Window(CompressionSettings(min_threshold_tokens=0), counter=COUNTER, redact=str)
    window.on_session_start("s", context_length=8_000, model="main")
    result = window.compress([*result, *timed(conversation(20), start=DAY)], force=True)
    [marker] = summaries(result)
    middle = Archive.of(marker)
    assert middle.count > Archive.of(before).count + 50
    assert middle.first == Archive.of(before).first
    assert text_of(marker).count("left view.") == 1, "nothing of the earlier line is kept"
    again = await compressor(Extractive(200)).compress([*result, *timed(conversation(20), start=2 * DAY)], force=True)
    assert Archive.of(summaries(again)[0]).count > middle.count + 50


def test_what_it_says_of_itself_it_reads_again() -> None:
    assert Archive.read(f"{ARCHIVE.line()} More about it.\nKept from earlier notes:\ntheirs") == ARCHIVE
    assert Archive.of(user(framed("notes", ARCHIVE.line()))) == ARCHIVE, "an import has no note"
    assert Archive.of(user("x", archive=to_builtins(ARCHIVE))) == ARCHIVE


def test_a_persons_words_behind_a_summary_count_for_nothing() -> None:
    assert Archive.of(user(f"{framed('notes', ARCHIVE.line())}\n\n7 older messages left view.")) == ARCHIVE


def test_a_summary_of_an_earlier_version_stands_for_the_rows_it_was_made_from() -> None:
    assert Archive.of(user("notes", summary=True, derived_from=["1", "2", "3"])) == Archive(count=3)


@pytest.mark.parametrize(
    "note", [{}, {"count": -1}, {"count": "9"}, {"count": True}, {"count": 10**20}, [], "x", {"count": None}]
)
def test_a_note_that_is_none_is_left_out(note: Any) -> None:
    assert Archive.of(user("notes", archive=note)) == Archive()


@pytest.mark.parametrize(
    "text", ["", "no line", "9 older messages left view", "99999999999999999999 older messages left view. x", "\x00"]
)
def test_what_is_no_line_stays_in_the_notes(text: str) -> None:
    assert Archive.read(text) == Archive()
    assert without_line(text) == text


@pytest.mark.parametrize("at", [float("nan"), float("inf"), -1e300, "soon", None, [], 1e18])
def test_a_time_that_is_none_is_left_out(at: Any) -> None:
    assert Archive().grown([user("x", at=at)]).line() == "1 older message left view."
