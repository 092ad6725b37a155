"""Any Markdown of a model: every part is a message that Telegram takes, and nothing is missing."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.telegram.formatting import render, split
from tests.emulators.telegram.entities import read_entities, settle
from tests.support.markdown_pieces import BLOCKS, SHREDS, is_hidden, numbered, replies, shredded, words
from tests.support.telegram_rules import faults, in_units

SOLID = {"pre", "code", "text_link", "blockquote", "expandable_blockquote"}


def shown(markdown: str) -> list[str]:
    """The texts of all messages that `markdown` becomes, each of which Telegram takes and leaves as it is."""
    texts = []
    for part in split(markdown):
        rendered = render(part)
        entities = [entity.as_dict() for entity in rendered.entities]
        assert faults(rendered.text, entities) == []
        assert len(part.encode("utf-16-le", "surrogatepass")) <= 2 * 4096
        text, settled = settle(rendered.text, read_entities(entities))
        assert text == rendered.text.lstrip(" ")  # what code at the beginning is indented by
        assert solid(settled) == solid(entities) or len(settled) == 100
        texts.append(text)
    return texts


def solid(entities: list[dict]) -> list[str]:
    """The entities that Telegram neither finds by itself nor cuts and joins as it likes."""
    return [entity["type"] for entity in entities if entity["type"] in SOLID]


@settings(max_examples=150, deadline=None)
@given(replies)
def test_every_word_of_a_reply_is_shown_once_and_in_its_place(markdown: str) -> None:
    assert words(*shown(markdown)) == words(markdown)


@settings(max_examples=150, deadline=None)
@given(replies)
def test_fences_are_balanced_in_every_part(markdown: str) -> None:
    assert [open_fence(part) for part in split(markdown)] == [""] * len(split(markdown))


def open_fence(part: str) -> str:
    """The fence that is not closed at the end of `part`."""
    fence = ""
    for line in part.split("\n"):
        marks = line.lstrip("> ")[:3]
        if marks in ("```", "~~~") and fence in ("", marks):
            fence = "" if fence else marks
    return fence


@settings(max_examples=200, deadline=None)
@given(shredded)
def test_nothing_that_somebody_might_write_is_refused_or_lost(markdown: str) -> None:
    found = set(words(*shown(markdown)))
    assert [number for number in words(markdown) if number not in found and not is_hidden(markdown, number)] == []


@settings(max_examples=200, deadline=None)
@given(st.text(min_size=1), st.integers(1, 400))
def test_absurd_characters_are_sent_as_well(text: str, times: int) -> None:
    assert all(len(in_units(message)) <= 2 * 4096 for message in shown(text * times))


@settings(max_examples=100, deadline=None)
@given(st.one_of(replies, shredded))
def test_the_same_part_is_always_laid_out_the_same_way(markdown: str) -> None:
    assert split(markdown) == split(markdown)
    assert [render(part) for part in split(markdown)] == [render(part) for part in split(markdown)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))  # ten thousand in all, and none of them runs long by itself
def test_a_thousand_fuzzed_replies(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(500):
        reply = numbered(chance.choices(BLOCKS, k=chance.randint(1, 80)), "\n\n")
        assert words(*shown(reply)) == words(reply)
        shreds = numbered(chance.choices(SHREDS, k=chance.randint(1, 80)), "")
        lost = set(words(shreds)).difference(words(*shown(shreds)))
        assert [word for word in lost if not is_hidden(shreds, word)] == []
