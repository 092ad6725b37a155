"""Markdown as WhatsApp shows it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.whatsapp import messages
from adapters.whatsapp.formatting import LONGEST, LONGEST_CAPTION, _lines, fits_caption, plain, shown, split
from adapters.whatsapp.limits import STAGE
from gateway.delivery.markdown.characters import length
from gateway.domain.chat import Button
from tests.emulators.whatsapp.checks import check, visible
from tests.support.markdown_pieces import fuzzed, replies, shredded, words


def _taken(text: str) -> None:
    check(messages.addressed("491700000001", messages.text(text)))


@given(replies)
def test_every_word_of_an_answer_is_shown_once_in_its_order(markdown: str) -> None:
    assert words("\n".join(visible(shown(part)) for part in split(markdown))) == words(markdown)


@given(st.one_of(replies, shredded, st.text(max_size=5_000)))
def test_no_answer_is_refused_too_long_or_empty(markdown: str) -> None:
    for part in split(markdown):
        _taken(shown(part))
        assert STAGE.bubble(part, "reply").text == shown(part)
        if fits_caption(part):
            assert length(shown(part), "utf16") <= LONGEST_CAPTION
    _taken(plain(markdown[: LONGEST // 2]))


@pytest.mark.slow
def test_ten_thousand_answers_are_taken() -> None:
    for markdown in fuzzed(7):
        for part in split(markdown):
            _taken(shown(part))
            _taken(plain(part))


@pytest.mark.parametrize(
    ("markdown", "sent"),
    [
        ("**a *b* c** ~~d~~ `e*f`", "*a _b_ c* ~d~ `e*f`"),
        ("# Plan\n\n> **one**\n> two", "*Plan*\n\n> *one*\n> two"),
        ("**two\nlines**", "*two*\n*lines*"),
        ("```\n\n*x*\n\n```", "```\n*x*\n```"),
        ("```python\nprint('*x*')\n```", "```print('*x*')```"),
        ("[docs](https://example.org/a)", "docs (https://example.org/a)"),
        ("all *.py and *.md", "all *.py and *.md"),
        ("un**believ**able", "un**\u200abeliev**able"),
        ("take `a` and a \\`b\\`", "take a and a `\u200ab`"),
    ],
)
def test_signs_mark_what_is_marked_and_nothing_else(markdown: str, sent: str) -> None:
    assert shown(markdown) == sent
    assert visible(sent) == visible(sent).replace("\u200a", "")


def test_signs_of_a_plain_text_mark_nothing() -> None:
    assert visible(plain("say *this* _or_ that")) == "say *this* _or_ that"


@given(st.lists(st.text(max_size=60), min_size=1, max_size=14), st.text(min_size=1, max_size=1_500))
def test_buttons_are_taken_however_they_are_called(labels: list[str], text: str) -> None:
    rows = [(Button(label=label, token=f"choose {number}"),) for number, label in enumerate(labels)]
    body = messages.with_buttons(plain(text), rows)
    check(messages.addressed("491700000001", body))
    check(messages.addressed("DE.1", messages.spelled_out(plain(text), rows)))
    check(messages.addressed("491700000001", messages.template("news", "en", text)))


def test_few_short_answers_are_buttons_and_others_a_list() -> None:
    few = [
        (Button(label="Approve", token="a"), Button(label="Deny", token="d"), Button(label="…", token="", kind="words"))
    ]
    assert messages.with_buttons("Pay?", few)["interactive"]["type"] == "button"
    assert messages.with_buttons("Pay? " * 300, few)["interactive"]["type"] == "list"
    edges = [("x" * 1_024, 3, "Y" * 20, "button"), ("x" * 1_025, 3, "Y", "list"), ("x", 4, "Y", "list")]
    for text, count, label, kind in [*edges, ("x", 3, "Y" * 21, "list")]:
        rows = [[Button(label=label, token=f"{number}")] for number in range(count)]
        assert messages.with_buttons(text, rows)["interactive"]["type"] == kind
    (section,) = messages.with_buttons("Who?", [[Button(label="Somebody with a long name", token="s")]])["interactive"][
        "action"
    ]["sections"]
    assert section["rows"] == [
        {"id": "s", "title": "Somebody with a long na…", "description": "Somebody with a long name"}
    ]


@given(st.text("a\n", max_size=9), st.integers(0, 3))
def test_a_stretch_is_read_line_by_line(text: str, start: int) -> None:
    found = [text[first:last] for first, last in _lines(text, start, len(text))]
    assert found == (text[start:].split("\n") if start <= len(text) else [])
