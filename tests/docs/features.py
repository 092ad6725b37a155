"""What chats are made of, by the real bot on the emulated Telegram and Discord, as pictures: each from what the
platform was sent."""

from __future__ import annotations

import json
import zlib
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from struct import pack
from typing import Any, Final

from gateway.agent.files.speech import SpeechSettings, TranscriptionSettings
from gateway.agent.tools.send_file import PictureSettings
from gateway.app.config.models import Chat, ToolSettings
from gateway.domain.message import text_of
from gateway.domain.turn import SessionSettings
from gateway.providers.base import ModelRequest, ModelSpec
from tests.docs.bubbles import DISCORD, Said, draw, on_discord, on_telegram
from tests.docs.telegram import Wall
from tests.emulators.discord import DiscordServer
from tests.emulators.discord.asked import Upload
from tests.emulators.media import MediaServer
from tests.emulators.telegram import TelegramServer
from tests.emulators.transcription import TranscriptionServer, opus
from tests.support.discord_live import on_discord as bot_on_discord
from tests.support.model import FakeModel, Say, newest
from tests.support.telegram_live import on_telegram as bot_on_telegram
from tests.support.tools import Payment

Call = tuple[str, dict[str, Any]]

_ALBUM: Final[list[Call]] = [
    ("send_file", {"file": name, "caption": caption})
    for name, caption in (("dawn.png", "At dawn"), ("noon.png", "At noon"), ("dusk.png", "At dusk"))
]
_CALLS: Final[dict[str, list[Call]]] = {
    "Draw the lake at noon": [("make_image", {"prompt": "the lake at noon", "caption": "The lake at noon"})],
    "Now at night": [("make_image", {"prompt": "at night", "edit": "{picture}", "caption": "… and at **night**"})],
    "Send me all three": _ALBUM,
    "Where do we go?": [("make_poll", {"question": "Where to?", "answers": ["The lake", "The hill"]})],
    "Order shirts for us": [("ask_person", {"question": "Which sizes?", "options": ["S", "M", "L"], "multiple": True})],
    "Pay for the tent": [("pay", {"sum": 50})],
    "open a topic for the tents": [("topic", {"action": "open", "name": "Tents"})],
}
_ANSWERS: Final = {
    "Draw the lake at noon": "There it is.",
    "Now at night": "It is night now.",
    "Send me all three": "All three are here.",
    "Where do we go?": "The poll is open.",
    "Pay for the tent": "The tent is paid.",
    "open a topic for the tents": "The topic is open.",
    "who brings the tent?": "Ben does, on **Friday**.",
    "Are you sure?": "No, I took him by his word. Let us ask him.",
    "When is the concert?": "It begins on Tuesday at eight.",
}


def _script(_: ModelSpec, request: ModelRequest) -> Say:
    if "may want to say next" in text_of(request.messages[0]):
        return Say(text="Put it into my calendar\nWho plays?" if "concert" in text_of(request.messages[-1]) else "")
    last, asked = request.messages[-1], newest(request).rpartition("\n")[2].rpartition("] ")[2].removeprefix("Lena, ")
    if last["role"] != "tool" and asked in _CALLS:
        picture = next((text_of(each).split()[2] for each in request.messages if each["role"] == "tool"), "")
        calls = [(name, json.dumps(given).replace("{picture}", picture)) for name, given in _CALLS[asked]]
        return Say(calls=calls)
    return Say(text=_ANSWERS.get(asked, "Good night, and sleep well."))


def _settings(speaker: MediaServer, scribe: TranscriptionServer) -> dict[str, Any]:
    pictures = PictureSettings(base_url=speaker.url, model="gpt-image-1")
    return {
        "model": FakeModel(_script),
        "speech": SpeechSettings(model="tts-1", base_url=speaker.url),
        "transcription": TranscriptionSettings(model="whisper-1", base_url=scribe.url),
        "tools": ToolSettings(pictures=pictures, topics=True),
        "sessions": SessionSettings(reactions=True, groups="shared", titles=False, suggestions=True),
        "chats": {"telegram:*": Chat(names=("Lena",), context=50)},
        "allow": ("telegram:*", "discord:*"),
    }


def _painted(sky: str, hill: str) -> bytes:
    """A picture of a hill under a sky with a sun or a moon, as PNG."""
    rows = b""
    for y in range(40):
        colours = (
            "fff3b0" if (x - 44) ** 2 + (y - 10) ** 2 < 30 else hill if y > 28 - x * (60 - x) // 100 else sky
            for x in range(60)
        )
        rows += b"\0" + bytes.fromhex("".join(colours))
    head = pack(">IIBBBBB", 60, 40, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        pack(">I", len(data)) + kind + data + pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )


_DAWN, _NOON, _DUSK, _NIGHT = (
    _painted(*colours)
    for colours in (("f7b267", "7a9e7e"), ("9ad1f5", "5fa35f"), ("c06c84", "4a5a6a"), ("1d2b53", "16302b"))
)


_PLANS: Final = ("Bread for Sunday", "The tent", "Songs in May", "A present for Ben", "The boat", "Mushrooms",
                 "Train to Ghent", "Curtains", "The choir trip")  # fmt: skip

Told = Callable[[str, int], Awaitable[Any]]
"""`await told(text, count)`: Anna writes it, and the bot shows so many messages; returns the last of them."""


Scene = Callable[[Any, Told, MediaServer], Awaitable[list[Said]]]


async def _answered(bot: Any, clock: Wall, chat: Any, shown: Callable[[], list[Any]], say: Any, count: int) -> Any:
    """The bot's last message once there are so many more of its, and it has nothing left to do."""
    clock.moment += 60
    before = len(shown())
    say()
    await bot.until(lambda: len(shown()) >= before + count)
    await _settled(bot, chat, shown)
    return shown()[-1]


async def _settled(bot: Any, chat: Any, shown: Callable[[], list[Any]]) -> None:
    """Return once the bot's sign on what a person wrote last is there: 👀 alone while it asks something."""

    def has_sign() -> bool:
        people = [each for each in chat.visible if each not in shown()]
        text = getattr(people[-1], "text", "")
        asks = bool(chat.visible[-1].buttons) and "👀" in people[-1].reactions
        return text.startswith("/") or asks or bool(set(people[-1].reactions) - {"👀"})

    await bot.until(has_sign)


def _read(bot: Any) -> Said:
    """What the model was told last, by a person."""
    told = [text_of(each.messages[-1]) for each in bot.model.requests]
    return Said(words=[each for each in told if not each.startswith("<conversation>")][-1], note=True)


# -- Telegram ------------------------------------------------------------------------------------------


async def _on_telegram(folder: Path, scene: Scene, title: str = "Legato") -> str:
    clock = Wall()
    async with AsyncExitStack() as stack:
        speaker = await stack.enter_async_context(MediaServer())
        scribe = await stack.enter_async_context(TranscriptionServer("Say good night."))
        telegram = await stack.enter_async_context(TelegramServer(clock=clock, limits=None))
        anna = telegram.people.person("Anna")
        bot = await stack.enter_async_context(
            bot_on_telegram(folder, telegram, anna, with_tools=[Payment()], **_settings(speaker, scribe))
        )

        async def told(text: str, count: int) -> Any:
            say = partial(bot.says, text)
            return await _answered(bot, clock, bot.chat, lambda: telegram.shown(bot.chat), say, count)

        return draw(await scene(bot, told, speaker), title=title)


async def media_on_telegram(folder: Path) -> str:
    """A voice message and its answer, a picture made and changed, and an album."""

    async def scene(bot: Any, told: Told, speaker: MediaServer) -> list[Said]:
        people, chat = bot.telegram.people, bot.chat
        people.file(chat, bot.anna, "voice", opus(4))
        await bot.until(lambda: len(bot.telegram.shown(chat)) == 3)
        await _settled(bot, chat, lambda: bot.telegram.shown(chat))
        for text, picture in (("Draw the lake at noon", _NOON), ("Now at night", _NIGHT)):
            speaker.picture = picture
            await told(text, 2)
        begin = len(chat.visible)
        for name, content in (("dawn.png", _DAWN), ("noon.png", _NOON), ("dusk.png", _DUSK)):
            people.file(chat, bot.anna, "document", content, name=name)
            await bot.until(lambda: chat.visible[-1].sender is bot.telegram.bot)
        end = len(chat.visible)
        await told("Send me all three", 4)
        return on_telegram(bot.telegram, [*chat.visible[:begin], *chat.visible[end:]], me=bot.anna.id)

    return await _on_telegram(folder, scene)


async def choices_on_telegram(folder: Path) -> str:
    """A poll, a question with ticks, an approval, a page of sessions, and suggestions."""

    async def scene(bot: Any, told: Told, _: MediaServer) -> list[Said]:
        people, chat, shown = bot.telegram.people, bot.chat, list[Said]()

        def drawn(since: int) -> list[Said]:
            return on_telegram(bot.telegram, chat.visible[since:], me=bot.anna.id)

        await told("Where do we go?", 2)
        for answer in (0, 0, 1):
            people.vote(bot.telegram.shown(chat)[0], answer)
        question = await told("Order shirts for us", 1)
        for label in ("S", "L"):
            people.press(question, bot.anna, label)
            await bot.until(lambda label=label: f"✓ {label}" in [each["text"] for each in question.buttons])
        shown += drawn(0)
        people.press(question, bot.anna, "Refuse")
        await bot.quiet()
        since = len(chat.visible)
        asked = await told("Pay for the tent", 1)
        shown += drawn(since)
        people.press(asked, bot.anna, "This session")
        await bot.quiet()
        for number in range(9):
            await told("/new", 1)
            await told(_PLANS[number], 1)
        since = len(chat.visible)
        await told("/sessions", 1)
        answer = await told("When is the concert?", 1)
        await bot.until(lambda: answer.buttons)
        return [*shown, *drawn(since)]

    return await _on_telegram(folder, scene)


async def group_on_telegram(folder: Path) -> str:
    """Talk as context, signs, somebody's reaction and what the model reads of it, and a topic."""

    async def scene(bot: Any, _: Told, __: MediaServer) -> list[Said]:
        telegram, people, anna = bot.telegram, bot.telegram.people, bot.anna
        ben = people.person("Ben")
        group = people.group("Choir", anna, ben, bot="administrator")
        forum = people.group("Choir, by topics", anna, ben, forum=True, bot="administrator")
        people.say(group, ben, "I bring the tent on Friday")
        asked = people.say(group, anna, "Lena, who brings the tent?")
        await bot.until(lambda: asked.reactions == ["👌"] and telegram.shown(group))
        read = [_read(bot)]
        (answer,) = telegram.shown(group)
        await bot.quiet()
        people.react(answer, anna, "👎")
        people.say(group, anna, "Are you sure?", reply_to=answer)
        await bot.until(lambda: len(telegram.shown(group)) == 2)
        await _settled(bot, group, lambda: telegram.shown(group))
        await bot.quiet()
        again = [_read(bot)]
        people.say(forum, anna, "Lena, open a topic for the tents")
        await bot.until(lambda: telegram.shown(forum) and telegram.shown(forum)[-1].buttons)
        asks = on_telegram(telegram, forum.visible, me=anna.id, named=True)
        people.press(telegram.shown(forum)[-1], anna, "Approve")
        await bot.until(lambda: telegram.shown(forum)[-1].text == "The topic is open.")
        await _settled(bot, forum, lambda: telegram.shown(forum))
        await bot.quiet()
        said = on_telegram(telegram, group.visible, me=anna.id, named=True)
        there = [Said(words="In a forum", service=True), *asks]
        after = on_telegram(telegram, forum.visible, me=anna.id, named=True)[len(asks) :]
        return [*said[:2], *read, *said[2:4], *again, *said[4:], *there, *after]

    return await _on_telegram(folder, scene, "Choir")


# -- Discord -------------------------------------------------------------------------------------------


async def _on_discord(folder: Path, scene: Callable[[Any, Any, Told, MediaServer], Awaitable[list[Said]]]) -> str:
    clock = Wall()
    async with AsyncExitStack() as stack:
        speaker = await stack.enter_async_context(MediaServer())
        scribe = await stack.enter_async_context(TranscriptionServer("Say good night."))
        discord = await stack.enter_async_context(DiscordServer(clock=clock, limits=None))
        anna = discord.people.person("Anna")
        place = discord.people.general(discord.people.guild("Choir", anna))
        rules = {"quoted": 0}
        bot = await stack.enter_async_context(
            bot_on_discord(
                folder, discord, anna, with_tools=[Payment()], clock=clock, rules=rules, **_settings(speaker, scribe)
            )
        )

        async def told(text: str, count: int) -> Any:
            say = partial(bot.says, f"@Legato {text}", place)
            return await _answered(bot, clock, place, lambda: discord.shown(place), say, count)

        return draw(await scene(bot, place, told, speaker), DISCORD, "#general")


async def media_on_discord(folder: Path) -> str:
    """The same as on Telegram."""

    async def scene(bot: Any, place: Any, told: Told, speaker: MediaServer) -> list[Said]:
        voice = Upload(name="voice-message.ogg", content=opus(4), content_type="audio/ogg")
        bot.says("@Legato", place, voice=voice)
        await bot.until(lambda: len(bot.discord.shown(place)) == 3)
        await _settled(bot, place, lambda: bot.discord.shown(place))
        for text, picture in (("Draw the lake at noon", _NOON), ("Now at night", _NIGHT)):
            speaker.picture = picture
            await told(text, 2)
        begin = len(place.visible)
        named = (("dawn.png", _DAWN), ("noon.png", _NOON), ("dusk.png", _DUSK))
        files = [Upload(name=name, content=content, content_type="application/octet-stream") for name, content in named]
        bot.says("@Legato keep these", place, files=files)
        await bot.until(lambda: place.visible[-1].author is bot.discord.cloud.bot)
        await bot.quiet()
        end = len(place.visible)
        await told("Send me all three", 2)
        shown = on_discord(bot.discord, place)
        return [*shown[:begin], *shown[end:]]

    return await _on_discord(folder, scene)


async def choices_on_discord(folder: Path) -> str:
    """A poll, a menu and a form, an approval, somebody's reaction and what the model reads, a thread, suggestions."""

    async def scene(bot: Any, place: Any, told: Told, _: MediaServer) -> list[Said]:
        people, anna = bot.discord.people, bot.anna
        await told("Where do we go?", 2)
        for answer in (1, 1, 2):
            people.vote(bot.discord.shown(place)[0], answer)
        question = await told("Order shirts for us", 1)
        await bot.until(lambda: question.buttons)
        opened = people.press(question, anna, "In other words …")
        await bot.until(lambda: opened.modal is not None)
        (row,) = opened.modal["components"]
        shown = on_discord(bot.discord, place)
        shown.append(Said(words=f"A form opens: {row['components'][0]['label']}", service=True))
        people.press(question, anna, "Refuse")
        await bot.quiet()
        since = len(place.visible)
        asked = await told("Pay for the tent", 1)
        shown += on_discord(bot.discord, place)[since:]
        people.press(asked, anna, "Always")
        await bot.quiet()
        since = len(place.visible)
        answer = await told("When is the concert?", 1)
        await bot.until(lambda: answer.buttons)
        await bot.quiet()
        people.react(answer, anna, "👎")
        shown += on_discord(bot.discord, place)[since:]
        await told("Are you sure?", 1)
        return [*shown, *on_discord(bot.discord, place)[-2:-1], _read(bot), *on_discord(bot.discord, place)[-1:]]

    return await _on_discord(folder, scene)


SCENES: Final[dict[str, Callable[[Path], Awaitable[str]]]] = {
    "telegram_media": media_on_telegram,
    "telegram_choices": choices_on_telegram,
    "telegram_group": group_on_telegram,
    "discord_media": media_on_discord,
    "discord_choices": choices_on_discord,
}
"""The pictures, by their names."""
