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


def sending(**arguments: Any) -> Any:
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


# -- albums and music ----------------------------------------------------------------------------

MUSIC = b"\xff\xfb" + bytes(99)


async def kept(world: World, bot: Bot, **files: bytes) -> None:
    """Have Anna send these first."""
    asked, world.model.reply = world.model.reply, lambda _: Reply(text="seen")
    for number, (name, content) in enumerate(files.items(), 1):
        world.sends("document", content, name=name)
        await bot.until(lambda count=number: bot.shown().count("seen") == count)  # type: ignore[misc]
    world.model.reply = asked


def kinds(bot: Bot) -> list[tuple[str, bool]]:
    """What the bot's messages show, and whether they stand in an album."""
    known = ("photo", "video", "document", "audio")
    shown = bot.telegram.shown(bot.chat)
    return [(next((kind for kind in known if kind in each.content), "text"), "media_group_id" in each.content)
            for each in shown]  # fmt: skip


@pytest.mark.parametrize("fault", [None, Flood(seconds=1), Disconnect(), Refuse(status=502)], ids=repr)
async def test_several_pictures_are_one_album_with_one_caption(world: World, fault: Any) -> None:
    if fault:
        world.telegram.faults.add(fault, method="sendMediaGroup")
    world.model.reply = sending(file="1.png", more=["2.png", "1.png", "三.png"], caption="The **three** 猫")
    async with world.bot() as bot:
        pictures = [PIXEL + bytes([number]) for number in range(3)]
        await kept(world, bot, **dict(zip(("1.png", "2.png", "三.png"), pictures, strict=True)))
        bot.says("show them")
        await bot.until(lambda: any("on their way" in text for text in bot.shown()))
        await bot.quiet()
        assert [kind for kind in kinds(bot) if kind[1]] == [("photo", True)] * 3
        album = [each for each in bot.telegram.shown(bot.chat) if "media_group_id" in each.content]
        assert [each.text.removeprefix("↻ ") for each in album] == ["The three 猫", "", ""]
        assert [each["type"] for each in album[0].entities] == ["bold"]
        taken = [world.telegram.cloud.files.take("photo", each.content["photo"][-1]["file_id"]) for each in album]
        assert [each.content for each in taken] == pictures  # in order, each once
        world.model.reply = lambda _: Reply(text="gone")
        bot.says("/last")
        await bot.until(lambda: len([kind for kind in kinds(bot) if kind[1]]) == 6)  # the album is shown again


VIDEO = b"\0\0\0\x18ftypmp42" + bytes(99)


def together(*calls: tuple[str, dict[str, Any]]) -> Any:
    """A model that makes these calls in one answer, and then says so."""

    def reply(body: dict[str, Any]) -> Reply:
        return Reply(text="There.") if body["messages"][-1]["role"] == "tool" else Reply(tool_calls=calls)

    return reply


async def test_what_calls_of_one_answer_send_is_shown_together(world: World) -> None:
    texts = [("send_file", {"name": f"{name}.txt", "content": name, "caption": f"**{name}**"}) for name in "123"]
    seen = [("send_file", {"file": name, "caption": name[0]}) for name in ("b.png", "v.mp4", "a.png")]
    world.model.reply = together(*seen, ("send_file", {"file": "n.mp3"}), *texts, seen[0])
    async with world.bot() as bot:
        await kept(world, bot, **{"a.png": PIXEL, "b.png": PIXEL + b"b", "v.mp4": VIDEO, "n.mp3": MUSIC})
        before = len(kinds(bot))
        bot.says("all")
        await bot.until_shown(*bot.shown()[:before], "b\n\nv\n\na", "", "", "", "1", "2", "3", "There.")
        album = [("photo", True), ("video", True), ("photo", True)]
        assert kinds(bot)[before:] == [*album, ("audio", False), *[("document", True)] * 3, ("text", False)]
        documents = bot.telegram.shown(bot.chat)[-4:-1]
        assert [each.entities[0]["type"] for each in documents] == ["bold"] * 3
    assert world.model.violations == []


async def test_files_of_many_kinds_are_shown_by_their_kinds(world: World) -> None:
    names = [f"{number}.txt" for number in range(8)]
    world.model.reply = sending(file="a.png", more=["n.mp3", *names[:7]])
    async with world.bot() as bot:
        await kept(world, bot, **{"a.png": PIXEL, "n.mp3": MUSIC, **{name: name.encode() for name in names}})
        bot.says("all")
        await bot.until(lambda: any("on their way" in text for text in bot.shown()))
        assert kinds(bot)[10:-1] == [("photo", False), ("audio", False), *[("document", True)] * 7]


async def test_pictures_that_telegram_will_not_have_are_an_album_of_documents(world: World) -> None:
    world.model.reply = sending(file="a.png", more=["b.png"])
    async with world.bot() as bot:
        await kept(world, bot, **{"a.png": png(9_000, 1_001), "b.png": PIXEL})
        bot.says("both")
        await bot.until(lambda: any("on their way" in text for text in bot.shown()))
        assert [kind for kind in kinds(bot) if kind[1]] == [("document", True)] * 2
