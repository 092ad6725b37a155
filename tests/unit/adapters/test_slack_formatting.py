"""Markdown as Slack shows it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.slack import formatting
from adapters.slack.formatting import LONGEST, plain, shown, split
from adapters.slack.limits import STAGE
from gateway.delivery.markdown.characters import length
from tests.emulators.slack.blocks import faults
from tests.support.markdown_pieces import fuzzed, replies, shredded, words


@given(replies)
def test_every_word_of_an_answer_is_shown_once_in_its_order(markdown: str) -> None:
    assert words("\n".join(shown(part).text for part in split(markdown))) == words(markdown)


@given(st.one_of(replies, shredded))
def test_no_answer_is_refused_too_long_or_empty(markdown: str) -> None:
    for part in split(markdown):
        made = shown(part)
        assert list(faults([made.block])) == []
        assert 0 < len(made.text) <= LONGEST
        assert 0 < len(made.fallback) <= LONGEST
        assert "".join(STAGE.bubble(part, "reply").text.split()) == "".join(made.text.split())


@pytest.mark.slow
def test_ten_thousand_answers_are_taken() -> None:
    for markdown in fuzzed(7):
        for part in split(markdown):
            for made in (shown(part), plain(part[:LONGEST])):
                assert list(faults([made.block])) == []
                assert 0 < length(made.text, "utf16") <= LONGEST
                assert 0 < length(made.fallback, "utf16") <= LONGEST


@given(st.text(max_size=5_000))
def test_a_text_of_any_characters_is_shown(text: str) -> None:
    assert list(faults([plain(text[:4_000]).block])) == []
    assert all(len(shown(part).text) <= LONGEST for part in split(text))


def test_styles_nest_and_addresses_in_code_are_no_links() -> None:
    (group,) = shown("**a *b* `https://example.org`** <https://example.org/c>.").elements
    assert group["elements"] == [
        {"type": "text", "text": "a ", "style": {"bold": True}},
        {"type": "text", "text": "b", "style": {"bold": True, "italic": True}},
        {"type": "text", "text": " ", "style": {"bold": True}},
        {"type": "text", "text": "https://example.org", "style": {"bold": True, "code": True}},
        {"type": "text", "text": " "},
        {"type": "link", "url": "https://example.org/c"},
        {"type": "text", "text": "."},
    ]


def test_signs_that_are_escaped_make_no_edit_too_long() -> None:
    assert all(len(shown(part).fallback) <= LONGEST for part in split("`<&>` " * 2_000))


@pytest.mark.parametrize("ping", ["<!channel>", "<@U012AB3CD>", "@here"])
def test_nothing_pings(ping: str) -> None:
    made = shown(f"Hello {ping}")
    assert not re.search(r"<[!@]", made.fallback)
    assert all(each["type"] == "text" for group in made.elements for each in group["elements"])


def test_an_address_at_the_beginning_has_no_empty_text_before_it() -> None:
    assert [each["type"] for each in formatting._texts("https://a.org is it", None, {})] == ["link", "text"]
    assert [each["type"] for each in formatting._texts("see https://a.org", None, {})] == ["text", "link"]
