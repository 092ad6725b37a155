"""The emulated Bot API before python-telegram-bot's own client: what it takes, what it refuses, in whose words."""

from __future__ import annotations

import aiohttp
import pytest
import telegram
from telegram import BotCommand, BotCommandScopeChat, InlineKeyboardButton, InlineKeyboardMarkup, MessageEntity
from telegram.error import Forbidden, InvalidToken

from tests.emulators.telegram import Settings
from tests.emulators.telegram.files import LARGEST_DOWNLOAD, LARGEST_PHOTO
from tests.emulators.telegram.people import PIXEL
from tests.support.pictures import FORMATS
from tests.support.telegram_client import client, durations, emulated, refused, started

__all__ = ["durations"]
pytestmark = pytest.mark.usefixtures("durations")


def keyboard(*buttons):
    return InlineKeyboardMarkup([[InlineKeyboardButton(text, callback_data=data) for text, data in buttons]])


# Who calls what


async def test_the_bot_is_introduced():
    async with emulated(settings=Settings(bot_username="other_bot", privacy=False)) as (_, bot):
        me = await bot.get_me()
        assert (me.username, me.is_bot, me.can_read_all_group_messages) == ("other_bot", True, True)


async def test_a_wrong_token_is_refused():
    async with emulated() as (server, _), client(server, token="1:nobody") as stranger:
        with pytest.raises(InvalidToken, match="Unauthorized"):
            await stranger.get_me()


async def test_an_unknown_method_is_refused_and_noted():
    async with emulated() as (server, bot):
        with pytest.raises(InvalidToken, match="'paintTheFence' does not exist"):
            await bot.do_api_request("paintTheFence")
        assert [violation.method for violation in server.violations] == ["paintTheFence"]


@pytest.mark.parametrize(
    ("method", "body", "reason"),
    [
        ("sendMessage", {"text": "\ud800"}, "strings must be encoded in UTF-8"),
        ("sendMessage", {"text": "x", "entities": [{"type": "bold"}]}, 'Can\'t find field "offset"'),
        ("sendMessage", {"text": "x", "entities": [{"type": "bold", "offset": "a", "length": 1}]}, "of type Number"),
        ("sendMessage", {"text": "x", "reply_parameters": {"quote": "x"}}, 'can\'t find field "message_id"'),
        ("sendMessage", {"text": "x", "reply_markup": {"inline_keyboard": [{"text": "a"}]}}, "an Array of Arrays"),
        ("sendMessage", {"text": "x", "reply_markup": {"inline_keyboard": [[{"text": "a"}]]}}, "Text buttons are"),
        ("sendMessage", {"text": "x", "reply_markup": "{"}, "can't parse reply keyboard markup JSON object"),
        ("setMessageReaction", {"message_id": 1, "reaction": [{"type": "emoji", "emoji": 5}]}, "REACTION_INVALID"),
        ("setMessageReaction", {"message_id": 1, "reaction": [5]}, "can't parse ReactionType"),
        ("sendChatAction", {"action": "dance"}, "wrong parameter action in request"),
        ("sendMediaGroup", {"media": [5, 5]}, "can't parse InputMedia: expected an Object"),
        ("setMyCommands", {"commands": [{"command": "x"}]}, 'Can\'t find field "description"'),
        ("setMyCommands", {"commands": [], "scope": {"type": "street"}}, "can't parse BotCommandScope"),
    ],
)
async def test_calls_that_no_library_would_make(method, body, reason):
    async with emulated() as (server, bot), aiohttp.ClientSession() as http:
        _, chat = started(server)
        call = http.post(f"{bot.base_url}/{method}", json={"chat_id": chat.id, **body})
        async with call as response:
            answer = await response.json()
        assert (response.status, answer["ok"], answer["error_code"]) == (400, False, 400)
        assert answer["description"].startswith("Bad Request: ")
        assert reason in answer["description"]
        assert not server.violations


# Editing


async def test_a_message_grows_by_edits():
    async with emulated(limits=None) as (server, bot):
        _, chat = started(server)
        message = await bot.send_message(chat.id, "Hel", reply_markup=keyboard(("Stop", "stop")))
        await bot.edit_message_text("Hello", chat.id, message.message_id)
        shown = server.shown(chat)[-1]
        assert (shown.text, shown.texts, shown.buttons) == ("Hello", ["Hel", "Hello"], [])


async def test_edits_that_cannot_be():
    async with emulated(limits=None) as (server, bot):
        anna, chat = started(server)
        message = await bot.send_message(chat.id, "same")
        document = await bot.send_document(chat.id, b"x", filename="x.txt")
        theirs = server.people.say(chat, anna, "mine")
        for number, text, reason in (
            (message.message_id, "same", "Message is not modified"),
            (message.message_id, "x" * 4097, "Message_too_long"),
            (theirs.id, "yours", "Message can't be edited"),
            (document.message_id, "text", "There is no text in the message to edit"),
            (999, "x", "Message to edit not found"),
        ):
            with refused(reason):
                await bot.edit_message_text(text, chat.id, number)


# Buttons


async def test_a_button_is_pressed_and_answered_once():
    async with emulated() as (server, bot):
        anna, chat = started(server)
        await bot.send_message(chat.id, "Sure?", reply_markup=keyboard(("Yes", "y" * 64), ("No", "n")))
        press = server.people.press(server.shown(chat)[-1], anna, "Yes")
        update = (await bot.get_updates(allowed_updates=["callback_query"]))[-1]
        assert update.callback_query.data == "y" * 64
        await bot.answer_callback_query(press.id, "Thanks")
        assert press.answer == {"text": "Thanks", "show_alert": False}
        with refused("Query is too old and response timeout expired or query id is invalid"):
            await bot.answer_callback_query(press.id, "Again")


async def test_a_button_answered_too_late(clock):
    async with emulated(clock=clock) as (server, bot):
        anna, chat = started(server)
        await bot.send_message(chat.id, "Sure?", reply_markup=keyboard(("Yes", "y")))
        press = server.people.press(server.shown(chat)[-1], anna, "y")
        await clock.advance(61)
        with refused("Query is too old"):
            await bot.answer_callback_query(press.id)


async def test_data_of_a_button_is_short():
    async with emulated() as (server, bot):
        _, chat = started(server)
        with refused("Button_data_invalid"):
            await bot.send_message(chat.id, "x", reply_markup=keyboard(("Yes", "\N{FOX FACE}" * 17)))


# Files


async def test_files_go_out_and_come_back():
    async with emulated(limits=None) as (server, bot):
        anna, chat = started(server)
        sent = await bot.send_photo(chat.id, PIXEL, caption="dot", caption_entities=[MessageEntity("bold", 0, 3)])
        again = await bot.send_photo(chat.id, sent.photo[-1].file_id)
        voice = await bot.send_voice(chat.id, b"OggS", duration=7)
        assert (sent.caption, sent.caption_entities[0].type, voice.voice.duration.seconds) == ("dot", "bold", 7)
        assert again.photo[-1].file_unique_id == sent.photo[-1].file_unique_id
        note = server.people.file(chat, anna, "document", b"notes", name="notes.txt", mime_type="text/plain")
        update = (await bot.get_updates())[-1]
        assert update.message.document.file_name == "notes.txt"
        file = await bot.get_file(note.content["document"]["file_id"])
        assert await file.download_as_bytearray() == b"notes"


async def test_an_album_is_several_messages():
    async with emulated(limits=None) as (server, bot):
        _, chat = started(server)
        photos = [telegram.InputMediaPhoto(PIXEL, caption="two"), telegram.InputMediaPhoto(PIXEL)]
        messages = await bot.send_media_group(chat.id, photos)
        assert [message.caption for message in messages] == ["two", None]
        assert len({message.media_group_id for message in messages}) == 1


async def test_files_that_are_too_big():
    async with emulated(limits=None) as (server, bot):
        anna, chat = started(server)
        big = server.people.file(chat, anna, "video", size=LARGEST_DOWNLOAD + 1)
        with refused("File is too big"):
            await bot.get_file(big.content["video"]["file_id"])
        with refused("is too big for a photo"):
            await bot.send_photo(chat.id, PIXEL + bytes(LARGEST_PHOTO))
        with refused("Image_process_failed"):
            await bot.send_photo(chat.id, b"no picture")
        with refused("Invalid file_id"):
            await bot.get_file("nonsense")


@pytest.mark.parametrize("make", FORMATS)
async def test_photos_have_sides_that_telegram_takes(make):
    async with emulated(limits=None) as (server, bot):
        _, chat = started(server)
        for width, height in ((5_000, 5_000), (400, 20), (20, 400), (1, 1)):
            assert (await bot.send_photo(chat.id, make(width, height))).photo
        for width, height in ((5_001, 5_000), (401, 20), (20, 401)):
            with refused("Photo_invalid_dimensions"):
                await bot.send_photo(chat.id, make(width, height))


# Commands


async def test_commands_per_scope_and_language():
    async with emulated() as (server, bot):
        _, chat = started(server)
        scope = BotCommandScopeChat(chat.id)
        await bot.set_my_commands([BotCommand("help", "What I can do")])
        await bot.set_my_commands([BotCommand("hilfe", "Was ich kann")], scope=scope, language_code="de")
        assert [command.command for command in await bot.get_my_commands()] == ["help"]
        assert [command.command for command in await bot.get_my_commands(scope, "de")] == ["hilfe"]
        assert await bot.get_my_commands(scope) == ()
        await bot.set_my_commands([])
        assert await bot.get_my_commands() == ()


@pytest.mark.parametrize(
    ("commands", "reason"),
    [
        ([("Help", "x")], "Bot_command_invalid"),
        ([("a-b", "x")], "Bot_command_invalid"),
        ([("x" * 33, "x")], "Command length must not exceed 32"),
        ([("help", "x" * 257)], "Command description length must not exceed 256"),
        ([(f"c{number}", "x") for number in range(101)], "Bot_commands_too_much"),
    ],
)
async def test_commands_that_are_refused(commands, reason):
    async with emulated() as (_, bot):
        with refused(reason):
            await bot.set_my_commands(commands)


# Reactions, typing


async def test_typing_and_reactions_are_seen():
    async with emulated() as (server, bot):
        anna, chat = started(server)
        message = server.people.say(chat, anna, "Hello")
        await bot.send_chat_action(chat.id, "typing")
        assert chat.action == "typing"
        await bot.set_message_reaction(chat.id, message.id, "👍")
        assert message.reactions == ["👍"]
        with refused("Reaction_invalid"):
            await bot.set_message_reaction(chat.id, message.id, telegram.ReactionTypeEmoji("🦊"))


async def test_a_bot_does_not_write_first():
    async with emulated() as (server, bot):
        ben = server.people.person("Ben")
        with refused("Chat not found"):
            await bot.send_message(ben.id, "Hi")
        server.people.group("Team", ben)
        with pytest.raises(Forbidden, match="bot can't initiate conversation with a user"):
            await bot.send_message(ben.id, "Hi")
