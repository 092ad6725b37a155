"""Groups, topics and channels in the emulator: who sees what, and who may write where."""

from __future__ import annotations

import pytest
from telegram.error import BadRequest, ChatMigrated, Forbidden

from tests.emulators.telegram import Settings
from tests.support.telegram_client import emulated


def team(server, **options):
    """Anna, who owns a group, and the group."""
    anna = server.people.person("Anna", username="anna")
    return anna, server.people.group("Team", anna, server.people.person("Ben"), **options)


async def said(bot):
    """The texts of all messages that wait for the bot."""
    return [update.message.text for update in await bot.get_updates(allowed_updates=[]) if update.message]


async def test_with_privacy_the_bot_sees_only_what_is_meant_for_it():
    async with emulated() as (server, bot):
        anna, chat = team(server)
        own = server.cloud.world.post(chat, server.bot, {"text": "Mine."})
        theirs = server.people.say(chat, anna, "among us")
        server.people.say(chat, anna, "still among us", reply_to=theirs)
        server.people.say(chat, anna, "/help@other_bot")
        server.people.say(chat, anna, "ask @Legato_Bot")
        server.people.say(chat, anna, "/help")
        server.people.say(chat, anna, "/help@legato_bot")
        server.people.say(chat, anna, "yes", reply_to=own)
        assert await said(bot) == ["ask @Legato_Bot", "/help", "/help@legato_bot", "yes"]


@pytest.mark.parametrize(("privacy", "status"), [(False, "member"), (True, "administrator")])
async def test_without_privacy_or_as_an_administrator_it_sees_all(privacy, status):
    async with emulated(settings=Settings(privacy=privacy)) as (server, bot):
        anna, chat = team(server, bot=status)
        server.people.say(chat, anna, "among us")
        assert await said(bot) == ["among us"]


async def test_a_bot_outside_hears_and_says_nothing():
    async with emulated() as (server, bot):
        anna, chat = team(server, bot="left")
        server.people.say(chat, anna, "/help")
        assert await said(bot) == []
        with pytest.raises(Forbidden, match="bot is not a member of the supergroup chat"):
            await bot.send_message(chat.id, "x")


async def test_coming_and_going_is_told():
    async with emulated() as (server, bot):
        anna, chat = team(server, bot="left")
        server.people.add_bot(chat, anna)
        server.people.kick_bot(chat, anna)
        changed, welcomed, thrown = await bot.get_updates()
        assert welcomed.message.new_chat_members[0].id == server.bot.id
        steps = [
            (update.my_chat_member.old_chat_member.status, update.my_chat_member.new_chat_member.status)
            for update in (changed, thrown)
        ]
        assert steps == [("left", "member"), ("member", "kicked")]
        with pytest.raises(Forbidden, match="bot was kicked from the supergroup chat"):
            await bot.send_message(chat.id, "x")


async def test_a_blocked_bot_cannot_write_until_it_is_written_to():
    async with emulated() as (server, bot):
        anna = server.people.person("Anna")
        chat = server.people.private(anna)
        server.people.say(chat, anna, "/start")
        server.people.block(anna)
        with pytest.raises(Forbidden, match="bot was blocked by the user"):
            await bot.send_message(chat.id, "x")
        server.people.say(chat, anna, "Sorry.")
        await bot.send_message(chat.id, "Never mind.")
        kinds = [update.to_dict().keys() - {"update_id"} for update in await bot.get_updates()]
        assert kinds == [{"message"}, {"my_chat_member"}, {"my_chat_member"}, {"message"}]


async def test_a_deleted_account():
    async with emulated() as (server, bot):
        anna = server.people.person("Anna")
        chat = server.people.private(anna)
        server.people.say(chat, anna, "Bye")
        server.people.deactivate(anna)
        with pytest.raises(Forbidden, match="user is deactivated"):
            await bot.send_message(chat.id, "x")


async def test_a_group_becomes_a_supergroup():
    async with emulated() as (server, bot):
        anna, chat = team(server, kind="group")
        new = server.people.migrate(chat, anna)
        with pytest.raises(ChatMigrated) as caught:
            await bot.send_message(chat.id, "x")
        assert caught.value.new_chat_id == new.id
        await bot.send_message(new.id, "x")
        joined, left, entered = await bot.get_updates()
        assert joined.my_chat_member.new_chat_member.status == "member"
        assert (left.message.migrate_to_chat_id, entered.message.migrate_from_chat_id) == (new.id, chat.id)


async def test_unknown_chats():
    async with emulated() as (_, bot):
        for chat_id in (12345, -1000000000001, "@nobody"):
            with pytest.raises(BadRequest, match="Chat not found"):
                await bot.send_message(chat_id, "x")


# Replies and topics


async def test_a_reply_shows_what_it_answers():
    async with emulated(limits=None) as (server, bot):
        anna, chat = team(server)
        question = server.people.say(chat, anna, "/ask")
        answer = await bot.send_message(chat.id, "Answer", reply_to_message_id=question.id)
        assert answer.reply_to_message.text == "/ask"
        with pytest.raises(BadRequest, match="Message to be replied not found"):
            await bot.send_message(chat.id, "x", reply_to_message_id=999)
        lone = await bot.send_message(chat.id, "x", reply_to_message_id=999, allow_sending_without_reply=True)
        assert lone.reply_to_message is None


async def test_replies_in_a_supergroup_have_a_thread_that_is_no_topic():
    """A bot that takes `message_thread_id` for a topic puts every chain of replies into a conversation of its own."""
    async with emulated(limits=None) as (server, bot):
        anna, chat = team(server)
        question = server.people.say(chat, anna, "/ask")
        first = server.people.say(chat, anna, "/more", reply_to=question)
        server.people.say(chat, anna, "/most", reply_to=first)
        last = (await bot.get_updates())[-1].message
        assert (last.message_thread_id, last.is_topic_message) == (question.id, None)
        with pytest.raises(BadRequest, match="Message thread is not a forum topic thread"):
            await bot.send_message(chat.id, "x", message_thread_id=question.id)


async def test_topics_of_a_forum():
    async with emulated(limits=None) as (server, bot):
        anna, chat = team(server, forum=True)
        topic = server.people.topic(chat, anna, "Plans")
        server.people.say(chat, anna, "/plan", topic=topic)
        created, planned = (update.message for update in await bot.get_updates())
        assert created.forum_topic_created.name == "Plans"
        assert (planned.message_thread_id, planned.is_topic_message, planned.chat.is_forum) == (topic, True, True)
        assert planned.reply_to_message.forum_topic_created  # as Telegram has it
        answer = await bot.send_message(chat.id, "Planned.", message_thread_id=topic)
        assert (answer.message_thread_id, answer.is_topic_message) == (topic, True)
        with pytest.raises(BadRequest, match="Message thread not found"):
            await bot.send_message(chat.id, "x", message_thread_id=999)
        chat.closed_topics.add(topic)
        with pytest.raises(BadRequest, match="Topic_closed"):
            await bot.send_message(chat.id, "x", message_thread_id=topic)


# Channels, members


async def test_a_channel():
    async with emulated() as (server, bot):
        anna, channel = team(server, kind="channel", username="news")
        server.people.say(channel, anna, "News")
        post = (await bot.get_updates())[0].channel_post
        assert (post.text, post.from_user, post.sender_chat.id) == ("News", None, channel.id)
        assert (await bot.send_message("@news", "More")).chat.id == channel.id


async def test_members_of_a_group():
    async with emulated() as (server, bot):
        anna, chat = team(server)
        stranger = server.people.person("Eve")
        assert (await bot.get_chat_member(chat.id, anna.id)).status == "creator"
        assert (await bot.get_chat_member(chat.id, stranger.id)).status == "left"
        assert (await bot.get_chat_member(chat.id, server.bot.id)).status == "member"
        assert await bot.get_chat_member_count(chat.id) == 3
        assert (await bot.get_chat(chat.id)).title == "Team"
        await bot.leave_chat(chat.id)
        with pytest.raises(Forbidden, match="bot is not a member"):
            await bot.get_chat(chat.id)


async def test_in_a_group_others_messages_stay():
    async with emulated() as (server, bot):
        anna, chat = team(server)
        message = server.people.say(chat, anna, "/x")
        with pytest.raises(BadRequest, match="Message can't be deleted"):
            await bot.delete_message(chat.id, message.id)
        server.people.set_status(chat, server.bot, "administrator", by=anna)
        await bot.delete_message(chat.id, message.id)
        assert message.deleted


async def test_what_people_send_besides_texts():
    async with emulated() as (server, bot):
        anna = server.people.person("Anna")
        chat = server.people.private(anna)
        server.people.album(chat, anna, [b"1", b"2"], caption="Both")
        server.people.file(chat, anna, "voice", b"OggS")
        server.people.send(chat, anna, {"location": {"latitude": 1.5, "longitude": 2.5}})
        one, two, voice, place = (update.message for update in await bot.get_updates())
        assert (one.caption, two.caption, one.media_group_id == two.media_group_id) == ("Both", None, True)
        assert (voice.voice.mime_type, place.location.latitude) == ("audio/ogg", 1.5)


async def test_a_pasted_text_is_cut_as_clients_cut_it():
    async with emulated() as (server, bot):
        anna = server.people.person("Anna")
        chat = server.people.private(anna)
        text = "x" * 4095 + "\N{FOX FACE}" * 3000
        with pytest.raises(ValueError, match="at most 4096 characters"):
            server.people.say(chat, anna, text)
        server.people.paste(chat, anna, text)
        parts = [update.message.text for update in await bot.get_updates()]
        assert ("".join(parts), [len(part) for part in parts]) == (text, [4095, 2048, 952])


async def test_a_restricted_bot_may_not_write():
    async with emulated() as (server, bot):
        _, chat = team(server, bot="restricted")
        with pytest.raises(BadRequest, match="Not enough rights to send text messages to the chat"):
            await bot.send_message(chat.id, "x")
