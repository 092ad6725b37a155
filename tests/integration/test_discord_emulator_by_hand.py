"""The emulated Discord as somebody at a terminal uses it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import discord
import pytest
from discord import app_commands
from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from gateway.app.config import load_config, variables
from tests.emulators.discord import DiscordServer, Settings
from tests.emulators.discord.drawing import draw_channel, draw_text
from tests.emulators.discord.lines import Lines
from tests.emulators.discord.terminal import Terminal, configuration
from tests.emulators.discord.typist import Typist
from tests.support.discord_client import client_of, connected


@asynccontextmanager
async def typing() -> AsyncIterator[tuple[DiscordServer, asyncio.Queue[discord.Message], Typist]]:
    """A server, what a bot on it hears, and somebody who types."""
    heard: asyncio.Queue[discord.Message] = asyncio.Queue()
    async with DiscordServer(Settings(identify_every=0), limits=None) as server:
        typist = Typist(server)
        async with connected(server, client_of(heard)):
            yield server, heard, typist


def drawn(server: DiscordServer, typist: Typist) -> str:
    return fragment_list_to_text(draw_channel(typist.channel, typist.me, server.bot, server.cloud.users))


async def test_what_it_prints_is_a_configuration_that_is_taken(tmp_path):
    async with DiscordServer() as server:
        settings, _, line = configuration(server).partition("# .env beside it\n")
        path = tmp_path / "config.yaml"
        path.write_text(settings)
        (tmp_path / ".env").write_text(line)
        found = load_config(path, variables([path.parent], {})).adapters["discord"]
        assert found.enabled
        assert (found.token.get_secret_value(), found.base_url) == (server.token, server.api_url)


async def test_what_is_typed_is_said_and_the_answer_shown():
    async with typing() as (server, heard, anna):
        anna.enter("@Legato Sure?")
        view = discord.ui.View(timeout=None)
        view.add_item(discord.ui.Button(label="Yes", custom_id="y"))
        message = await heard.get()
        sent = await message.reply("Su", view=view)
        await sent.edit(content="**Sure**, @Anna", view=view)
        assert "edited 1×  @you\n**Sure**, @Anna\n 1 Yes  \n" in drawn(server, anna)
        assert anna.enter("/press 1")
        assert anna.said == "(the bot has been asked)"
        anna.enter("/edit 1 Sure indeed")
        anna.enter("/reply 2 Yes!")
        assert "to #2\nYes!" in drawn(server, anna)
        assert "edited 1×\nSure indeed" in drawn(server, anna)


async def test_the_bots_commands_are_typed_with_their_options():
    heard: list[tuple[str, int]] = []
    client = client_of()
    tree = app_commands.CommandTree(client)

    @tree.command(name="sing", description="Sing a song")
    async def sing(interaction: discord.Interaction, song: str, times: int = 1) -> None:
        heard.append((song, times))
        await interaction.response.send_message("La", ephemeral=True)

    async with DiscordServer(Settings(identify_every=0), limits=None) as server:
        anna = Typist(server)
        async with connected(server, client):
            await tree.sync()
            for line in ("/sing alle Vögel", "/sing times:3 song:Die Gedanken sind frei"):
                anna.enter(line)
                await server.until(lambda: not anna.said)
            assert heard == [("alle Vögel", 1), ("Die Gedanken sind frei", 3)]
            assert "used by anna: /sing  only you can see this" in drawn(server, anna)
            anna.enter("/as Bert")
            assert "only you" not in drawn(server, anna)
            anna.enter("/dance")
            assert drawn(server, anna).endswith("/dance\n\n"), "what is no command is said"
            anna.enter("/?")
            assert "/sing  Sing a song" in anna.said


async def test_one_can_be_several_people_in_several_places():
    async with typing() as (_, heard, typist):
        for line in (
            "/as Bert",
            "/forum Ideas",
            "/thread A trip",
            "/as Anna",
            "where to, @Legato?",
            "/dm",
            "/photo look",
        ):
            typist.enter(line)
        post, answer, photo = [await heard.get() for _ in range(3)]
        assert [message.author.display_name for message in (post, answer, photo)] == ["Bert", "Anna", "Anna"]
        assert post.channel.id == answer.channel.id
        assert isinstance(photo.channel, discord.DMChannel)
        assert (photo.content, photo.attachments[0].filename) == ("look", "photo.png")


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("/press 1", "Name a button by its number."),
        ("/reply x", "Name a message by the number after its #."),
        ("/fault boredom", "The faults are lose, slow, break, refuse, limit."),
        ("/gateway tea", "The connection can drop, reconnect, invalidate, silence."),
        ("/file /nowhere/at/all", "No such file"),
        ("/? sing", "There is no command /sing here"),
    ],
)
async def test_what_cannot_be_done_is_said(line, answer):
    async with DiscordServer() as server:
        typist = Typist(server)
        assert typist.enter(line)
        assert answer in typist.said


async def test_the_whole_screen_takes_keys():
    async with DiscordServer() as server:
        with create_pipe_input() as keys:
            terminal = Terminal(server, stdin=keys, stdout=DummyOutput())
            running = asyncio.create_task(terminal.run())
            (place,) = server.cloud.channels.values()
            keys.send_text("Good morning\r")
            await server.until(lambda: place.visible)
            keys.send_text("/quit\r")
            await running
        assert [message.content for message in place.visible] == ["Good morning"]


async def test_without_a_screen_what_changes_is_told_once():
    told: list[str] = []
    async with DiscordServer() as server:
        reader = asyncio.StreamReader()
        reader.feed_data(b"Good morning\nGood evening\n/nothing\n")
        reader.feed_eof()
        await Lines(server, told.append).run(reader)
    assert [block.splitlines()[-1] for block in told] == ["Good morning", "Good evening", "/nothing"]


def test_markdown_is_drawn_as_it_was_sent():
    assert draw_text("a **b** `c`", {}) == [("", "a "), ("bold", "**b**"), ("", " "), ("class:code", "`c`")]
