"""The sources of an answer as a card on Discord, and as text where there can be none."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.discord.formatting import split_off
from tests.emulators.discord import Channel, DiscordServer, User
from tests.emulators.discord.permissions import Permission
from tests.support.discord_live import on_discord
from tests.support.model import FakeModel, Say, in_turn

ANSWER = "It rained.\n\n**Sources:**\n- [The Times](https://times.example/a)\n2. Weather: https://w.example/b\n"
CARD = {"title": "Sources", "description": "- [The Times](https://times.example/a)\n2. Weather: https://w.example/b"}


@pytest.mark.parametrize(
    "text",
    [
        "It rained.",
        "Sources:\n- https://a.example",  # there is no answer beside them
        "See https://a.example.\n\nSources:\n- https://a.example",  # it would get a preview
        "It rained.\n\nSources:\n- the Times",
        "It rained.\n\nSources:\n- https://a.example\n\nAnd more.",
        "```\nx\n\nSources:\n- https://a.example",
        "It rained.\n\nSources:\n" + "- https://a.example/long\n" * 200,
    ],
)
def test_all_else_stays_text(text: str) -> None:
    assert split_off(text) == (text, None)


def test_the_line_that_a_search_leaves_is_a_card() -> None:
    line = "Sources: [1. Rye, a.example](https://a.example/x) · [2. Oats, b.example](https://b.example)"
    links = "[1. Rye, a.example](https://a.example/x)\n[2. Oats, b.example](https://b.example)"
    assert split_off(f"Bake it [1][2].\n\n{line}") == ("Bake it [1][2].", {"title": "Sources", "description": links})


async def test_sources_are_a_card_once_also_of_an_answer_that_grew(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    model = FakeModel(in_turn(Say(text=ANSWER), Say(text=ANSWER)))
    async with on_discord(tmp_path, discord, anna, model=model) as bot:
        bot.says("@Legato did it rain?", place)
        await bot.until_shown("It rained.", chat=place)
        await bot.until(lambda: discord.shown(place)[0].embeds == [{"type": "rich", **CARD}])
        assert not discord.shown(place)[0].flags & 1 << 2, "Discord would hide the card"
        discord.people.forbid(place, Permission.EMBED_LINKS)
        bot.says("@Legato again?", place)
        await bot.until_shown("It rained.", ANSWER.strip(), chat=place)
        assert discord.shown(place)[1].embeds == []
