"""Pictures that the model has made by a strict server, and that people see on Telegram and on Discord."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.caps import Caps
from gateway.agent.tools.send_file import PictureSettings
from gateway.app.config.models import ToolSettings
from gateway.providers.plugin import ModelPrices
from tests.emulators.discord import DiscordServer, User
from tests.emulators.llm_replies import Reply
from tests.emulators.media import BY_POLICY, MediaServer
from tests.emulators.telegram.people import PIXEL
from tests.emulators.transcription import Refusal
from tests.support.discord_live import on_discord
from tests.support.model import FakeModel, Say, in_turn
from tests.support.telegram_files import World, words

pytest_plugins = ["tests.support.telegram_files"]


@pytest.fixture
async def painter() -> AsyncIterator[MediaServer]:
    async with MediaServer() as server:
        yield server
        assert server.violations == []


def by(painter: MediaServer, **more: Any) -> ToolSettings:
    return ToolSettings(pictures=PictureSettings(**{"model": "gpt-image-1", "base_url": painter.url, **more}))


def making(**arguments: str) -> Any:
    """A model that has a picture made, and then repeats what it was told of it."""

    def reply(body: dict[str, Any]) -> Reply:
        last = body["messages"][-1]
        return Reply(text=last["content"]) if last["role"] == "tool" else Reply(tool_calls=[("make_image", arguments)])

    return reply


async def told(world: World, bot: Any, about: str = "a cat") -> str:
    """What the model was told of a picture that Anna asked for."""
    before = len(bot.shown())
    bot.says(about)
    await bot.until(lambda: any("icture" in text for text in bot.shown()[before:]))
    return str(bot.shown()[-1])


async def test_a_picture_is_shown_with_its_caption_kept_paid_and_changed(world: World, painter: MediaServer) -> None:
    world.model.reply = making(prompt="a cat", size="1024x1024", caption="Your **cat**")
    async with world.bot(tools=by(painter, usd_per_picture=0.04)) as bot:
        name = (await told(world, bot)).split()[2]
        (shown, _) = world.telegram.shown(bot.chat)
        assert shown.content["caption"] == "Your cat"
        sent = world.telegram.cloud.files.take("photo", shown.content["photo"][-1]["file_id"])
        assert sent.content == painter.picture
        assert painter.asked[0] == {"model": "gpt-image-1", "prompt": "a cat", "size": "1024x1024", "n": 1}
        (spent,) = [each for each in await bot.gateway.store.usage(0.0, "purpose") if each.label == "picture"]
        assert (spent.calls, spent.cost_usd) == (1, pytest.approx(0.04))
        painter.picture = PIXEL
        world.model.reply = making(prompt="with a hat", edit=name)
        await told(world, bot, "with a hat")
        assert (painter.asked[1]["image"], painter.asked[1]["prompt"]) == (sent.content, "with a hat")


async def test_a_picture_that_was_sent_is_changed_and_one_at_an_address_of_the_server_is_fetched(
    world: World, painter: MediaServer
) -> None:
    painter.links = True
    world.model.reply = making(prompt="brighter", edit="cat.png")
    async with world.bot(tools=by(painter, model="flux")) as bot:
        world.sends("document", PIXEL, name="cat.png", mime_type="image/png", caption="brighter")
        await bot.until(lambda: any("is shown" in text for text in bot.shown()))
        assert painter.asked[0]["image"] == PIXEL
        assert "photo" in world.telegram.shown(bot.chat)[0].content


async def test_a_model_without_eyes_has_a_picture_changed(world: World, painter: MediaServer) -> None:
    world.model.reply = making(prompt="brighter", edit=sha256(PIXEL).hexdigest()[:12])
    async with world.bot(tools=by(painter), entry={"pictures": False}) as bot:
        world.sends("photo", PIXEL, caption="brighter")
        await bot.until(lambda: any("is shown" in text for text in bot.shown()))
        assert painter.asked[0]["image"] == PIXEL
        assert "which you cannot be shown" in words(world.heard(0))


def linked(address: str) -> bytes:
    return json.dumps({"data": [{"url": address}]}).encode()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (BY_POLICY, "its policy forbids this picture, so ask for another one"),
        (b'{"data": [{"b64_json": "' + b"A" * 300_000, "the server that makes pictures does not stop"),
        (b'{"data": [{"b64_json": "PGh0bWw+"}]}', "the server that makes pictures sent something else"),
        (b"<html>", "the server that makes pictures sent nothing"),
        (linked("http://169.254.169.254/x.png"), "the server that makes pictures redirects to another address, which"),
        (Refusal(hangs=True), "it took longer than 0.3 seconds"),
    ],
    ids=["policy", "large", "type", "page", "address", "slow"],
)
async def test_why_there_is_no_picture_is_told(
    world: World, painter: MediaServer, answer: Any, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.providers.media._MOST_ANSWER", 200_000)
    painter.answers = [answer]
    world.model.reply = making(prompt="a cat")
    limits = {"timeout": 0.3} if isinstance(answer, Refusal) and answer.hangs else {}
    async with world.bot(tools=by(painter, **limits)) as bot:
        assert (await told(world, bot)).startswith(f"Error: No picture was made: {reason}")
        assert len(bot.shown()) == 1


async def test_a_picture_of_a_hundred_megabytes_is_read_no_further_than_it_may_be(
    world: World, painter: MediaServer
) -> None:
    painter.answers = [b'{"data": [{"b64_json": "' + b"A" * (100 * 1024**2) + b'"}]}']
    world.model.reply = making(prompt="a cat")
    async with world.bot(tools=by(painter)) as bot:
        assert "the server that makes pictures does not stop" in await told(world, bot)
        bot.says("and a dog")
        await bot.until(lambda: len(bot.shown()) == 3)
        assert "is shown" in bot.shown()[-1]


async def test_a_spend_cap_holds_for_pictures(world: World, painter: MediaServer) -> None:
    world.model.reply = making(prompt="a cat")
    budget: dict[str, Any] = {"budgets": Caps(daily_usd=0.05), "entry": {"prices": ModelPrices(input=0.0, output=0.0)}}
    async with world.bot(tools=by(painter, usd_per_picture=0.04), **budget) as bot:
        assert "is shown" in await told(world, bot)
        assert "No picture was made: a spend cap does not allow it." in await told(world, bot)
    assert len(painter.asked) == 1


async def test_there_is_no_such_tool_without_a_server(world: World) -> None:
    async with world.bot() as bot:
        bot.says("hello")
        await bot.until_shown("seen")
    names = [tool["function"]["name"] for tool in world.model.requests[0]["tools"]]
    assert "send_file" in names
    assert "make_image" not in names


async def test_discord_shows_a_picture_with_its_caption_and_the_workspace_has_it(
    tmp_path: Path, discord: DiscordServer, anna: User, painter: MediaServer
) -> None:
    asks = Say(calls=[("make_image", json.dumps({"prompt": "a cat", "caption": "A **cat**"}))])
    model = FakeModel(in_turn(asks, Say(calls=[("list_files", "{}")]), Say(text="There.")))
    async with on_discord(tmp_path, discord, anna, model=model, tools=by(painter)) as bot:
        bot.says("a cat, please")
        await bot.until(lambda: bot.shown()[-1:] == ["There."])
        (shown, _) = discord.shown(bot.chat)
        name = shown.attachments[0].name
        assert (shown.content, name[-4:]) == ("A **cat**", ".png")
        assert name in model.spoken(2)[-1][1]
