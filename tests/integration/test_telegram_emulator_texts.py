"""Texts in the emulated Bot API: lengths, entities and parse modes, before python-telegram-bot's own client."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from telegram import MessageEntity

from tests.emulators.telegram import Settings
from tests.emulators.telegram.entities import OWN, settle
from tests.emulators.telegram.units import length
from tests.support.telegram_client import emulated, refused, started


async def test_a_text_is_shown_as_it_was_sent():
    async with emulated() as (server, bot):
        _, chat = started(server)
        message = await bot.send_message(chat.id, "Good morning")
        assert [shown.text for shown in server.shown(chat)] == [message.text] == ["Good morning"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (" \n\t ", "Text must be non-empty"),
        ("\u200b", "Text must be non-empty"),
        ("x" * 4097, "Message is too long"),
        ("\N{FOX FACE}" * 2049, "Message is too long"),
        ("x" * 40_000, "Text is too long"),
    ],
)
async def test_texts_that_cannot_be_shown(text, reason):
    async with emulated() as (server, bot):
        _, chat = started(server)
        with refused(reason):
            await bot.send_message(chat.id, text)
        assert server.shown(chat) == []


async def test_the_longest_text_by_either_count():
    async with emulated(settings=Settings(text_unit="characters")) as (server, bot):
        _, chat = started(server)
        await bot.send_message(chat.id, "\N{FOX FACE}" * 4096)
        with refused("Message is too long"):
            await bot.send_message(chat.id, "\N{FOX FACE}" * 4097)


async def test_control_characters_become_spaces_and_ends_are_trimmed():
    async with emulated() as (server, bot):
        _, chat = started(server)
        message = await bot.send_message(chat.id, " \n a\tb\r\nc \n")
        assert message.text == "a b\nc"


@pytest.mark.parametrize(
    ("text", "offset", "length", "reason"),
    [
        ("abc", 3, 1, "Entity begins after the end of the text at UTF-16 offset 3"),
        ("abc", 1, 5, "Entity beginning at UTF-16 offset 1 ends after the end of the text at UTF-16 offset 6"),
        ("a\N{FOX FACE}b", 2, 1, "Entity begins in a middle of a UTF-16 symbol"),
        ("a\N{FOX FACE}b", 0, 2, "ends in a middle of a UTF-16 symbol"),
        ("abc", -1, 1, "Receive an entity with incorrect offset -1"),
    ],
)
async def test_entities_must_lie_within_the_text(text, offset, length, reason):
    async with emulated() as (server, bot):
        _, chat = started(server)
        with refused(reason):
            await bot.send_message(chat.id, text, entities=[MessageEntity("bold", offset, length)])


async def test_entities_are_counted_in_utf16():
    async with emulated() as (server, bot):
        _, chat = started(server)
        bold = MessageEntity("bold", 3, 4)
        message = await bot.send_message(chat.id, "\N{FOX FACE} bold?", entities=[bold])
        assert message.parse_entities() == {bold: "bold"}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ([("code", 0, 4), ("bold", 2, 4)], [("code", 0, 4), ("bold", 4, 2)]),
        ([("pre", 0, 4), ("code", 2, 4)], [("pre", 0, 4)]),
        ([("bold", 0, 0)], []),
        ([("blockquote", 0, 6), ("code", 1, 2)], [("blockquote", 0, 6), ("code", 1, 2)]),
    ],
)
async def test_entities_that_cross_are_put_in_order(given, kept):
    async with emulated() as (server, bot):
        _, chat = started(server)
        message = await bot.send_message(chat.id, "abcdef", entities=[MessageEntity(*entity) for entity in given])
        assert [(str(entity.type), entity.offset, entity.length) for entity in message.entities] == kept


async def test_no_more_than_a_hundred_entities_are_kept():
    async with emulated() as (server, bot):
        _, chat = started(server)
        entities = [MessageEntity("code", place * 2, 1) for place in range(150)]
        message = await bot.send_message(chat.id, "a " * 150, entities=entities)
        assert len(message.entities) == 100


# Whatever the text


def spans(text):
    """Entities of any kind that lie within a text and split no character."""
    edges = st.integers(0, len(text))
    span = st.tuples(st.sampled_from(sorted(OWN - {"date_time"})), edges, edges)
    return st.lists(span.map(lambda drawn: entity(text, *drawn)), max_size=8)


def entity(text, kind, one, other):
    start, end = length(text[: min(one, other)]), length(text[: max(one, other)])
    extra = {"text_link": {"url": "https://example.com/"}, "custom_emoji": {"custom_emoji_id": "5"}}
    mention = {"text_mention": {"user": {"id": 5, "is_bot": False, "first_name": "Eve"}}}
    return {"type": kind, "offset": start, "length": end - start, **(extra | mention).get(kind, {})}


letters = st.text(st.sampled_from("ab \n\t\r\u0301\u2028\N{FOX FACE}/@#."), min_size=1, max_size=20)


@given(letters.flatmap(lambda text: st.tuples(st.just(text), spans(text))))
def test_what_is_settled_stays_as_it_is(drawn):
    text, entities = settle(*drawn, allow_empty=True)
    assert settle(text, [found for found in entities if found["type"] in OWN], allow_empty=True) == (text, entities)
    for found in entities:
        assert 0 <= found["offset"] < found["offset"] + found["length"] <= length(text)
