"""Markdown as a voice says it."""

from __future__ import annotations

import pytest

from gateway.delivery.markdown.spoken import spoken, words_of


@pytest.mark.parametrize(
    ("markdown", "said"),
    [
        ("# Hello\n\nA **bold** `word`, *so*.", "Hello.\nA bold word, so."),
        ("See [the page](https://x.org/a?b=c) or https://www.example.org/very/long#x!", "See the page or example.org."),
        ("Run:\n\n```sh\nrm -rf /\n```\nDone", "Run:\nDone."),
        ("- one\n- two\n  - three", "one.\ntwo.\nthree."),
        (
            "| City | People |\n|---|---|\n| Bern | 134,000 |\n| Basel | 178,000 |\n| Chur | 38,000 |\n| Zug | 3 |",
            "City, People.\nBern, 134,000.\nBasel, 178,000.\nChur, 38,000.",
        ),
        ("Well done 🎉👍🏽", "Well done."),
        ("东京是日本的首都", "东京是日本的首都。"),
        ("> quoted\n\n---\n\n![a cat](https://x.org/c.png)", "quoted.\na cat."),
        ("half \ud800 a sign", "half ? a sign."),
    ],
)
def test_what_is_said(markdown: str, said: str) -> None:
    assert words_of(markdown) == said


def test_parts_are_whole_sentences_and_the_first_is_short() -> None:
    parts = spoken(1_500, "This is a sentence. " * 200)
    assert [len(part) < most for part, most in zip(parts, (200, 1_000, 1_000), strict=True)] == [True, True, True]
    assert all(part.startswith("This") and part.endswith(".") for part in parts)
    assert sum(map(len, parts)) <= 1_500


@pytest.mark.parametrize("markdown", ["", "```\ncode\n```", "🎉", "---", "***"])
def test_where_there_is_nothing_to_say_nothing_is_said(markdown: str) -> None:
    assert spoken(1_500, markdown) == []


def test_a_sentence_without_an_end_is_cut_at_words() -> None:
    parts = spoken(5_000, "word " * 2_000)
    assert all(part.startswith("word") for part in parts)
    assert max(map(len, parts)) <= 1_001
