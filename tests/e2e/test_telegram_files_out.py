"""Files that the model writes, on their way to people on Telegram."""

from __future__ import annotations

from typing import Any

import pytest

from tests.emulators.llm_replies import Reply
from tests.emulators.telegram import Disconnect, Flood, Message, Refuse
from tests.emulators.telegram.people import PIXEL
from tests.support.pictures import png
from tests.support.telegram_files import World
from tests.support.telegram_live import Bot

pytest_plugins = ["tests.support.telegram_files"]


def writing(name: str, content: str, **more: str) -> Any:
    """A model that sends a file and then says so."""
    return sending(name=name, content=content, **more)


def sending(**arguments: str) -> Any:
    """The same of any file."""

    def reply(body: dict[str, Any]) -> Reply:
        if body["messages"][-1]["role"] == "tool":
            return Reply(text=body["messages"][-1]["content"].partition(";")[0])
        return Reply(tool_calls=[("send_file", arguments)])

    return reply


def documents(world: World) -> list[tuple[str, bytes]]:
    """The files in Anna's chat: names and contents."""
    files = world.telegram.cloud.files
    shown = [message.content for message in world.telegram.shown(world.telegram.people.private(world.anna))]
    ids = [(each["document"]["file_name"], each["document"]["file_id"]) for each in shown if "document" in each]
    return [(name, files.take("document", file_id).content) for name, file_id in ids]


async def test_a_file_that_the_model_writes_is_a_document_before_its_answer(world: World) -> None:
    world.model.reply = writing("../../etc/plan \u202e.md", "# Plan\n你好\n")
    async with world.bot() as bot:
        bot.says("write me a plan")
        await bot.until(lambda: any("on its way" in text for text in bot.shown()))
        await bot.quiet()
        assert documents(world) == [("plan _.md", "# Plan\n你好\n".encode("utf-8-sig"))]
        assert "document" in world.telegram.shown(bot.chat)[0].content
    assert world.model.violations == []


@pytest.mark.parametrize("fault", [Flood(seconds=1), Disconnect(), Refuse(status=502)], ids=repr)
async def test_a_file_that_was_not_taken_is_sent_again(world: World, fault: Any) -> None:
    world.model.reply = writing("a.txt", "text")
    world.telegram.faults.add(fault, method="sendDocument")
    async with world.bot() as bot:
        bot.says("go")
        await bot.until(lambda: any("on its way" in text for text in bot.shown()))
        await bot.quiet()
        assert documents(world) == [("a.txt", b"text")]


@pytest.mark.parametrize(
    "page", ['{"ok":false,"error_code":413,"description":"Request Entity Too Large"}', "<h1>413 Content Too Large</h1>"]
)
async def test_a_file_that_is_too_large_for_what_stands_before_telegram_holds_up_nothing(
    world: World, page: str
) -> None:
    world.model.reply = writing("a.txt", "text")
    world.telegram.faults.add(Refuse(status=413, body=page), method="sendDocument", times=100)
    async with world.bot() as bot:
        bot.says("go")
        await bot.until(lambda: any("on its way" in text for text in bot.shown()))
        assert bot.shown()[0] == "I could not show a message here because telegram refused it: it is too large"


# -- captions ------------------------------------------------------------------------------------


def shown(bot: Bot) -> list[Message]:
    """Return the bot's messages except the last."""
    messages = bot.telegram.shown(bot.chat)
    assert "on its way" in messages[-1].text
    return messages[:-1]


async def test_a_caption_goes_with_its_file_and_is_laid_out(world: World) -> None:
    world.model.reply = writing("a.txt", "text", caption="Your **plan**, with `code`")
    async with world.bot() as bot:
        bot.says("go")
        await bot.until(lambda: any("on its way" in text for text in bot.shown()))
        (file,) = shown(bot)
        assert file.content["caption"] == "Your plan, with code"
        assert [each["type"] for each in file.content["caption_entities"]] == ["bold", "code"]
        assert documents(world) == [("a.txt", b"text")]


async def test_a_caption_that_has_no_room_comes_behind_its_file(world: World) -> None:
    world.model.reply = writing("a.txt", "text", caption="**Mind:** " + "\U0001f600" * 600)
    async with world.bot() as bot:
        bot.says("go")
        await bot.until(lambda: any("on its way" in text for text in bot.shown()))
        file, words = shown(bot)
        assert "caption" not in file.content
        assert words.text == "Mind: " + "\U0001f600" * 600
        assert [each["type"] for each in words.entities] == ["bold"]


async def test_what_a_model_asks_for_twice_in_a_turn_is_shown_once_with_its_caption(world: World) -> None:
    def reply(body: dict[str, Any]) -> Reply:
        if sum(each["role"] == "tool" for each in body["messages"]) == 2:
            return Reply(text="It is on its way")
        return Reply(tool_calls=[("send_file", {"name": "a.txt", "content": "text", "caption": "long " * 300})])

    world.model.reply = reply
    async with world.bot() as bot:
        bot.says("go")
        await bot.until(lambda: any("on its way" in text for text in bot.shown()))
        assert ["document" in message.content for message in shown(bot)] == [True, False]


async def test_a_caption_whose_looks_are_refused_is_shown_as_it_was_written(world: World) -> None:
    world.model.reply = writing("a.txt", "text", caption="a **bold** word")
    refusal = '{"ok":false,"error_code":400,"description":"Bad Request: can\'t parse entities"}'
    world.telegram.faults.add(Refuse(status=400, body=refusal), method="sendDocument")
    async with world.bot() as bot:
        bot.says("go")
        await bot.until(lambda: any("on its way" in text for text in bot.shown()))
        assert [file.content["caption"] for file in shown(bot)] == ["a **bold** word"]


# -- pictures ------------------------------------------------------------------------------------


async def test_a_picture_of_the_conversation_is_shown_as_one_with_its_caption(world: World) -> None:
    world.model.reply = sending(file="cat.png", caption="There *it* is")
    async with world.bot() as bot:
        world.sends("document", PIXEL, name="cat.png", mime_type="image/png", caption="keep it")
        await bot.until(lambda: any("on its way" in text for text in bot.shown()))
        (picture,) = shown(bot)
        assert picture.content["caption"] == "There it is"
        sent = world.telegram.cloud.files.take("photo", picture.content["photo"][-1]["file_id"])
        assert sent.content == PIXEL


@pytest.mark.parametrize(
    "content", [png(9_000, 1_001), png(2_000, 99), PIXEL + bytes(10 * 1024 * 1024)], ids=["large", "narrow", "heavy"]
)
async def test_a_picture_that_telegram_takes_for_no_photo_is_a_document(world: World, content: bytes) -> None:
    world.model.reply = sending(file="cat.png", caption="There it is")
    async with world.bot() as bot:
        world.sends("document", content, name="cat.png", mime_type="image/png")
        await bot.until(lambda: any("on its way" in text for text in bot.shown()))
        assert [file.content["caption"] for file in shown(bot)] == ["There it is"]
        assert documents(world) == [("cat.png", content)]


@pytest.mark.parametrize("words", ["PHOTO_INVALID_DIMENSIONS", "IMAGE_PROCESS_FAILED", "PHOTO_SAVE_FILE_INVALID"])
async def test_a_photo_that_is_refused_after_all_is_a_document(world: World, words: str) -> None:
    world.model.reply = sending(file="cat.png", caption="There it is")
    refusal = f'{{"ok":false,"error_code":400,"description":"Bad Request: {words}"}}'
    world.telegram.faults.add(Refuse(status=400, body=refusal), method="sendPhoto")
    async with world.bot() as bot:
        world.sends("document", PIXEL, name="cat.png", mime_type="image/png")
        await bot.until(lambda: any("on its way" in text for text in bot.shown()))
        assert [file.content["caption"] for file in shown(bot)] == ["There it is"]
        assert documents(world) == [("cat.png", PIXEL)]


@pytest.mark.parametrize("fault", [Flood(seconds=1), Disconnect(), Refuse(status=502)], ids=repr)
async def test_a_photo_that_was_not_taken_is_sent_again_as_one(world: World, fault: Any) -> None:
    world.model.reply = sending(file="cat.png")
    world.telegram.faults.add(fault, method="sendPhoto")
    async with world.bot() as bot:
        world.sends("document", PIXEL, name="cat.png", mime_type="image/png")
        await bot.until(lambda: any("on its way" in text for text in bot.shown()))
        assert ["photo" in message.content for message in shown(bot)] == [True]
