"""The titles of sessions, quotes from them, and times in sentences for people."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from gateway.domain.message import Message, assistant, user
from gateway.domain.titles import clipped, last_exchange, last_words, name_in, title_of
from gateway.domain.wording import lasting, moment


@pytest.mark.parametrize(
    ("said", "title"),
    [
        (["How tall is the tower? And the bridge?"], "How tall is the tower?"),
        (["hi", "hello again", "Plan a trip to the coast. Cheap, please."], "Plan a trip to the coast"),
        (["hi"], "hi"),
        (["  Two lines\nof one sentence  "], "Two lines of one sentence"),
        (["Version 3.11 or 3.12 of it?"], "Version 3.11 or 3.12 of it?"),
        (["我们的预算是五万元。够吗？"], "我们的预算是五万元。"),
        (["word " * 40], "word word word word word word word word word word word word…"),
        (["", "  "], ""),
        ([], ""),
    ],
)
def test_a_title_is_the_first_sentence_that_tells_something(said: list[str], title: str) -> None:
    assert title_of([user(text) for text in said]) == title


def test_a_compaction_knows_the_aim() -> None:
    notes = "## Active Task\nNone\n## Goal\nPlan a trip to Brittany. By train.\n## Key Decisions\n- none"
    assert title_of([user("hi"), user(notes, summary=True)]) == "Plan a trip to Brittany"


def test_the_last_exchange_is_quoted_in_one_line_each() -> None:
    spoken: list[Message] = [
        user("one"),
        assistant("two"),
        user("three\n\nfour"),
        assistant("Let me look."),
        assistant("five " * 80),
    ]
    you, me = last_exchange(spoken)
    assert you == "You: three four"
    assert me.startswith("Me: five five")
    assert me.endswith(" five…")
    assert len(me) < 300
    assert last_exchange(spoken[:1]) == ["You: one"]
    assert last_exchange([]) == []
    assert last_words(spoken) == "three four"


def test_a_clip_ends_between_words_or_within_a_long_one() -> None:
    assert clipped("one two three", 9) == "one two…"
    assert clipped("x" * 20, 9) == "xxxxxxxxx…"
    assert clipped("one", 9) == "one"


def test_a_moment_is_in_local_time() -> None:
    assert moment(1_795_000_000.0, ZoneInfo("Europe/Berlin")) == "18 Nov 2026, 12:06"
    assert moment(1_795_000_000.0, ZoneInfo("UTC")) == "18 Nov 2026, 11:06"


@pytest.mark.parametrize(
    ("seconds", "said", "short"),
    [
        (0.4, "0 seconds", "0 s"),
        (1, "1 second", "1 s"),
        (20, "20 seconds", "20 s"),
        (119.4, "119 seconds", "119 s"),
        (600, "10 minutes", "10 min"),
        (5_400, "90 minutes", "90 min"),
        (43_200, "12 h", "12 h"),
        (19_200, "5 h 20 min", "5 h 20 min"),
        (-5, "0 seconds", "0 s"),
    ],
)
def test_a_time_is_told_in_the_unit_that_people_would_choose(seconds: float, said: str, short: str) -> None:
    assert (lasting(seconds), lasting(seconds, short=True)) == (said, short)


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("Moving to Cologne", "Moving to Cologne"),
        ('Here is a title:\n\n"**Moving** to `Cologne`."', "Moving to Cologne"),
        ("标题：搬到科隆", "搬到科隆"),
        ("# <b onclick=x>Pay\u202e the</b>\tbill\x07\u2028now", "Pay the bill"),
        ("word " * 15, "word word word word word word word word word word word word…"),
        ("I cannot name this, because " + "x" * 10_000, ""),
        ("x" * 100_000, ""),
        ("\n \n", ""),
        ("--", ""),
    ],
)
def test_the_title_in_an_answer_is_one_clean_line(answer: str, title: str) -> None:
    assert name_in(answer) == title
