"""A person on Telegram: the real client library, a server with Telegram's rules, the whole gateway."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NoReturn

import pytest

from gateway.domain.turn import TurnSettings
from gateway.runtime.errors import TookTooLong
from gateway.turns.admission import FULL
from tests.emulators.telegram import Disconnect, Flood, Limits, LoseAnswer, Refuse, TelegramServer
from tests.support.fast_clock import FastClock
from tests.support.model import FakeModel, Gate, Say, in_turn
from tests.support.telegram_live import on_telegram

LONG = "The beginning of an answer, "


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    """Telegram without its limits."""
    async with TelegramServer(limits=None, clock=FastClock()) as server:
        yield server


# -- reading -------------------------------------------------------------------------------------


async def test_a_flood_is_refused_once_aloud_and_holds_up_neither_commands_nor_others(
    tmp_path: Path, telegram: TelegramServer
) -> None:
    anna, bob = telegram.people.person("Anna"), telegram.people.person("Bob")
    gate, bobs = Gate(), telegram.people.private(bob)
    model = FakeModel(in_turn(Say(text="at last", gate=gate)))
    turns = TurnSettings(lane_cap=2)
    async with on_telegram(tmp_path, telegram, anna, model=model, turns=turns, allow=(f"telegram:{bob.id}",)) as bot:
        bot.says("work")
        await gate.until_waiting()
        for number in range(500):
            bot.says(f"flood number {number}")
        telegram.people.say(bobs, bob, "hello")
        bot.says("/status")
        await bot.until(lambda: bot.shown(bobs) == ["echo: hello"])
        await bot.until(lambda: any("I have been working for" in text for text in bot.shown()))
        assert bot.shown().count(FULL) == 1
        gate.open()
        await bot.until(lambda: "echo: flood number 0" in bot.shown())
        bot.says("and now?")
        await bot.until(lambda: "echo: and now?" in bot.shown())
        assert bot.shown().count(FULL) == 1


async def test_in_a_group_only_what_is_meant_for_the_bot_is_answered(tmp_path: Path, telegram: TelegramServer) -> None:
    anna = telegram.people.person("Anna", last_name="Smith")
    group = telegram.people.group("Team", anna, bot="administrator")  # so that it sees everything
    name = f"@{telegram.bot.username}"
    async with on_telegram(tmp_path, telegram, anna) as bot:
        bot.says("not for you", group)
        question = bot.says(f"{name}, what is it?", group)
        await bot.until_shown("echo: what is it?", chat=group)
        (answer,) = telegram.shown(group)
        assert answer.reply_to is question
        bot.says("and then?", group, reply_to=answer)
        await bot.until(lambda: len(bot.shown(group)) == 2)
        bot.says("/help@another_bot", group)
        bot.says(f"/help{name}", group)
        await bot.until(lambda: len(bot.shown(group)) == 3)
        await bot.quiet()
        assert bot.shown(group)[1] == 'echo: [in reply to you: "echo: what is it?"]\nand then?'
        assert "/remind" in bot.shown(group)[2]


async def test_topics_are_conversations_of_their_own(tmp_path: Path, telegram: TelegramServer) -> None:
    anna = telegram.people.person("Anna")
    forum = telegram.people.group("Forum", anna, forum=True, bot="administrator")
    one, two = (telegram.people.topic(forum, anna, title) for title in ("One", "Two"))
    name = f"@{telegram.bot.username}"
    async with on_telegram(tmp_path, telegram, anna) as bot:
        for topic in (one, two):
            bot.says(f"{name} topic {topic}", forum, topic=topic)
        await bot.until(lambda: len(bot.shown(forum)) == 2)
        assert {message.topic: message.text for message in telegram.shown(forum)} == {
            topic: f"echo: [Anna] topic {topic}" for topic in (one, two)
        }
        assert len(await bot.gateway.store.sessions(None, 9)) == 2


async def test_a_corrected_message_is_answered_again(tmp_path: Path, telegram: TelegramServer) -> None:
    anna = telegram.people.person("Anna")
    async with on_telegram(tmp_path, telegram, anna) as bot:
        first = bot.says("2 + 2")
        await bot.until_shown("echo: 2 + 2")
        telegram.people.edit(first, "2 + 3")
        await bot.until_shown("echo: 2 + 2", "echo: [an earlier message, corrected]\n2 + 3")


async def test_an_edit_without_another_word_is_none(tmp_path: Path, telegram: TelegramServer) -> None:
    """Telegram sends one also when something else about a message changed."""
    anna = telegram.people.person("Anna")
    async with on_telegram(tmp_path, telegram, anna) as bot:
        first = bot.says("2 + 2")
        await bot.until_shown("echo: 2 + 2")
        telegram.people.edit(first, "2 + 2")
        bot.says("and now?")
        await bot.until_shown("echo: 2 + 2", "echo: and now?")
        telegram.people.edit(first, "2 + 3")
        await bot.until(lambda: bot.shown()[-1] == "echo: [an earlier message, corrected]\n2 + 3")
        telegram.people.edit(first, "2 + 3")
        bot.says("done?")
        await bot.until(lambda: bot.shown()[-1] == "echo: done?")
        assert len(bot.shown()) == 4


async def test_a_message_that_is_edited_while_it_waits_is_answered_once_as_it_is_then(
    tmp_path: Path, telegram: TelegramServer
) -> None:
    anna, gate = telegram.people.person("Anna"), Gate()
    model = FakeModel(in_turn(Say(text="first", gate=gate)))
    async with on_telegram(tmp_path, telegram, anna, model=model) as bot:
        bot.says("one")
        await gate.until_waiting()
        waiting = bot.says("tow")
        telegram.people.edit(waiting, "two")
        telegram.people.edit(waiting, "two!")
        bot.says("/version")  # answered at once, behind the edits
        await bot.until(lambda: any(text.startswith("Legato ") for text in bot.shown()))
        gate.open()
        await bot.until(lambda: bot.shown()[-1] == "echo: two!")
        assert [text for text in bot.shown() if text.startswith(("echo", "first"))] == ["first", "echo: two!"]


async def test_a_second_poller_is_reported_and_outlived(tmp_path: Path, telegram: TelegramServer) -> None:
    anna = telegram.people.person("Anna")
    telegram.faults.add(
        Refuse(status=409, body='{"ok":false,"error_code":409,"description":"Conflict: terminated"}'),
        method="getUpdates",
        times=2,
    )
    async with on_telegram(tmp_path, telegram, anna) as bot:
        bot.says("hello")
        await bot.until_shown("echo: hello")


async def test_every_kind_of_update_is_survived(tmp_path: Path, telegram: TelegramServer) -> None:
    from tests.emulators.telegram.specimens import specimens

    anna = telegram.people.person("Anna")
    async with on_telegram(tmp_path, telegram, anna) as bot:
        kinds = [kind for kind, body in specimens(bot.chat, anna, telegram.cloud.world.date())]
        for kind, body in specimens(bot.chat, anna, telegram.cloud.world.date()):
            telegram.people.update(kind, body)
        bot.says("still there?")
        await bot.until(lambda: "echo: still there?" in bot.shown())
        assert len(kinds) > 15


# -- showing -------------------------------------------------------------------------------------


async def test_a_reply_grows_in_one_message_and_ends_by_an_edit_of_it(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, gate = telegram.people.person("Anna"), Gate()
    model = FakeModel(in_turn(Say(text="and its end.", first=LONG, gate=gate)))
    async with on_telegram(tmp_path, telegram, anna, model=model) as bot:
        bot.says("tell me")
        await bot.until_shown(LONG.rstrip() + " …")
        bot.says("/status")  # does not wait for the reply that is being written
        await bot.until(lambda: len(bot.shown()) == 2)
        assert bot.shown()[1].startswith("I have been working for")
        gate.open()
        await bot.until(lambda: bot.shown()[0] == LONG + "and its end.")
        await bot.quiet()
        assert len(bot.shown()) == 2
        assert len(telegram.shown(bot.chat)[0].texts) == 2


async def test_a_reply_that_a_crash_cut_is_finished_in_its_own_message(
    tmp_path: Path, telegram: TelegramServer
) -> None:
    anna, gate = telegram.people.person("Anna"), Gate()
    model = FakeModel(in_turn(Say(text="lost", first=LONG, gate=gate)))
    async with on_telegram(tmp_path, telegram, anna, model=model) as bot:
        bot.says("tell me")
        await bot.until_shown(LONG.rstrip() + " …")
        await bot.gateway.lanes.stop(0)  # as good as a crash: the turn does not end
    async with on_telegram(tmp_path, telegram, anna) as bot:
        await bot.until_shown("echo: tell me")
        await bot.quiet()
        assert bot.shown() == ["echo: tell me"]


async def test_a_turn_that_is_stopped_keeps_what_was_shown(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, gate = telegram.people.person("Anna"), Gate()
    model = FakeModel(in_turn(Say(text="never", first=LONG, gate=gate)))
    async with on_telegram(tmp_path, telegram, anna, model=model) as bot:
        bot.says("tell me")
        await bot.until_shown(LONG.rstrip() + " …")
        bot.says("/stop")
        await bot.until(lambda: len(bot.shown()) == 3)
        await bot.quiet()
        assert bot.shown()[0].strip() == LONG.strip()


async def test_a_message_that_was_deleted_is_sent_anew(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, gate = telegram.people.person("Anna"), Gate()
    model = FakeModel(in_turn(Say(text="and its end.", first=LONG, gate=gate)))
    async with on_telegram(tmp_path, telegram, anna, model=model) as bot:
        bot.says("tell me")
        await bot.until(lambda: bot.shown())
        telegram.people.delete(telegram.shown(bot.chat)[0])
        gate.open()
        await bot.until_shown(LONG + "and its end.")


async def test_what_is_sent_anew_is_repeated_once_like_any_other(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, gate = telegram.people.person("Anna"), Gate()
    model = FakeModel(in_turn(Say(text="and its end.", first=LONG, gate=gate)))
    async with on_telegram(tmp_path, telegram, anna, model=model) as bot:
        bot.says("tell me")
        await bot.until(lambda: bot.shown())
        telegram.people.delete(telegram.shown(bot.chat)[0])
        telegram.faults.add(Disconnect(done=True), method="sendMessage")
        gate.open()
        await bot.until_shown(LONG + "and its end.", f"↻ {LONG}and its end.")
        await bot.quiet()
        assert bot.shown() == [LONG + "and its end.", f"↻ {LONG}and its end."]


async def test_an_answer_that_is_lost_is_repeated_once(tmp_path: Path, telegram: TelegramServer) -> None:
    anna = telegram.people.person("Anna")
    telegram.faults.add(Disconnect(done=True), method="sendMessage")
    async with on_telegram(tmp_path, telegram, anna) as bot:
        bot.says("hello")
        await bot.until_shown("echo: hello", "↻ echo: hello")
        await bot.quiet()
        assert [row.ambiguous for row in await bot.gateway.store.outbox(None, 9)] == [1]
        bot.says("again")
        await bot.until_shown("echo: hello", "↻ echo: hello", "echo: again")


@pytest.mark.parametrize("lost", [Disconnect(), Disconnect(done=True), LoseAnswer(), Refuse(status=504)])
async def test_a_send_in_doubt_is_repeated_once_telegram_answers(
    tmp_path: Path, telegram: TelegramServer, lost: Disconnect | LoseAnswer | Refuse
) -> None:
    anna, gives_up = telegram.people.person("Anna"), isinstance(lost, LoseAnswer)
    async with on_telegram(tmp_path, telegram, anna, patience=1.2 if gives_up else 10.0) as bot:
        bot.says("before")
        await bot.until_shown("echo: before")
        telegram.faults.add(lost, method="sendMessage")
        telegram.faults.add(lost, method="getMe", times=2)
        bot.says("hello")
        await bot.until(lambda: len([call for call in telegram.journal.of("sendMessage") if call.answered]) >= 2)
        await bot.quiet()
        assert {text.removeprefix("↻ ") for text in bot.shown()} == {"echo: before", "echo: hello"}
        asked = [call.number for call in telegram.journal.of("getMe") if call.answered]
        assert asked[-1] < list(telegram.journal.of("sendMessage"))[-1].number
        # A busy machine may be slower than who gives up soon, and is in doubt once more.
        assert len(list(telegram.journal.of("sendMessage"))) == 3 or gives_up


@pytest.mark.parametrize("fault", [Refuse(status=502), Refuse(status=500), Disconnect()])
async def test_a_call_that_was_not_done_is_repeated_and_shows_no_double(
    tmp_path: Path, telegram: TelegramServer, fault: Refuse | Disconnect
) -> None:
    anna = telegram.people.person("Anna")
    telegram.faults.add(fault, method="sendMessage")
    async with on_telegram(tmp_path, telegram, anna) as bot:
        bot.says("hello")
        await bot.until(bot.shown)
        await bot.quiet()
        (text,) = bot.shown()
        assert text == ("↻ echo: hello" if isinstance(fault, Disconnect) else "echo: hello")


async def test_a_reply_outlasts_a_proxy_that_has_no_telegram_behind_it(
    tmp_path: Path, telegram: TelegramServer
) -> None:
    anna = telegram.people.person("Anna")
    telegram.faults.add(Refuse(status=502), method="sendMessage", times=2)
    async with on_telegram(tmp_path, telegram, anna) as bot:
        bot.says("hello")
        await bot.until_shown("echo: hello")


async def test_a_chat_that_must_rest_is_left_alone_and_the_others_go_on(
    tmp_path: Path, telegram: TelegramServer
) -> None:
    anna, bob = telegram.people.person("Anna"), telegram.people.person("Bob")
    async with on_telegram(tmp_path, telegram, anna, allow=(f"telegram:{bob.id}",)) as bot:
        telegram.faults.add(Flood(seconds=2), method="sendMessage", chat_id=bot.chat.id)
        bot.says("hello")
        await bot.until(lambda: telegram.journal.of("sendMessage", bot.chat.id))
        telegram.people.say(telegram.people.private(bob), bob, "and me?")
        await bot.until_shown("echo: and me?", chat=telegram.people.private(bob))
        assert bot.shown() == []
        await bot.until_shown("echo: hello")
        assert telegram.violations == []


async def test_the_bot_keeps_to_telegrams_rates(tmp_path: Path) -> None:
    async with TelegramServer(limits=Limits()) as telegram:
        anna = telegram.people.person("Anna")
        async with on_telegram(tmp_path, telegram, anna, paced=True) as bot:
            for number in range(4):
                bot.says(f"m{number}")
            await bot.until(lambda: bot.shown()[-1:] == ["echo: m3"])
            assert [call.status for call in telegram.journal.of("sendMessage")].count(429) == 0
            assert telegram.violations == []


async def test_a_chat_that_is_gone_is_given_up_and_heals(tmp_path: Path, telegram: TelegramServer) -> None:
    anna = telegram.people.person("Anna")
    async with on_telegram(tmp_path, telegram, anna) as bot:
        bot.says("hello")
        telegram.people.block(anna)
        await bot.quiet()
        telegram.people.unblock(anna)
        bot.says("back again")
        await bot.until(lambda: bot.shown()[-1:] == ["echo: back again"])


async def test_a_group_that_moved_is_followed(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, gate = telegram.people.person("Anna"), Gate()
    group = telegram.people.group("Team", anna, kind="group", bot="administrator")
    model = FakeModel(in_turn(Say(text="here it is", gate=gate)))
    async with on_telegram(tmp_path, telegram, anna, model=model) as bot:
        bot.says(f"@{telegram.bot.username} where?", group)
        await gate.until_waiting()
        moved = telegram.people.migrate(group, anna)
        gate.open()
        await bot.until_shown("here it is", chat=moved)


async def test_each_menu_is_set_once_and_offers_what_is_of_use_there(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, bob = telegram.people.person("Anna"), telegram.people.person("Bob")  # Bob never wrote to the bot
    telegram.people.say(telegram.people.private(anna), anna, "hello")
    admins = (f"telegram:{anna.id}", f"telegram:{bob.id}", "telegram:somebody")
    for starts in (1, 2):
        async with on_telegram(tmp_path, telegram, anna, admins=admins) as bot:
            await bot.until_shown("echo: hello")
            # Bob's is looked at last.
            await bot.until(lambda starts=starts: len(list(telegram.journal.of("getMyCommands"))) == 22 * starts)
    menus = {scope: [each["command"] for each in menu] for (scope, _), menu in telegram.cloud.commands.items()}
    assert menus == {
        "all_private_chats": ["help", "usage"],
        "all_group_chats": ["help"],
        json.dumps({"type": "chat", "chat_id": anna.id}): ["help", "usage", "pair"],
    }
    german = {each["command"]: each["description"] for each in telegram.cloud.commands["all_private_chats", "de"]}
    assert german == {"help": "die Befehle zeigen", "usage": "Tokens und Kosten von Gespräch und Tag"}
    assert telegram.cloud.commands["all_group_chats", ""] == [{"command": "help", "description": "Help."}]
    assert len(list(telegram.journal.of("setMyCommands"))) == 21


async def test_a_button_opens_the_page_as_long_as_it_has_an_address(tmp_path: Path, telegram: TelegramServer) -> None:
    anna = telegram.people.person("Anna")
    url, own = "https://legato.example/", {"type": "web_app", "text": "Shop", "web_app": {"url": "https://a.example"}}
    button = {"type": "web_app", "text": "Legato", "web_app": {"url": url}}
    for page, shown in ((url, button), (url, button), (None, {"type": "default"}), (None, {"type": "default"})):
        async with on_telegram(tmp_path, telegram, anna, page=page) as bot:
            await bot.until(lambda shown=shown: telegram.cloud.menu_button == shown)
    assert telegram.cloud.menu_button == {"type": "default"}
    telegram.cloud.menu_button = own
    async with on_telegram(tmp_path, telegram, anna) as bot:
        bot.says("hello")
        await bot.until(lambda: list(telegram.journal.of("getChatMenuButton")))
    assert telegram.cloud.menu_button == own  # someone else's button stays


async def test_an_odd_answer_about_the_menu_does_not_end_the_program(tmp_path: Path, telegram: TelegramServer) -> None:
    anna = telegram.people.person("Anna")
    telegram.faults.add(Refuse(status=200, body='{"ok":true,"result":[7]}'), method="getMyCommands", times=9)
    async with on_telegram(tmp_path, telegram, anna) as bot:
        bot.says("hello")
        await bot.until_shown("echo: hello")
        assert bot.gateway.readers.failure is None


async def test_a_token_that_nobody_knows_ends_the_program_with_a_sentence(
    tmp_path: Path, telegram: TelegramServer
) -> None:
    anna = telegram.people.person("Anna")
    telegram.faults.add(
        Refuse(status=401, body='{"ok":false,"error_code":401,"description":"Unauthorized"}'), method="getMe"
    )
    async with on_telegram(tmp_path, telegram, anna) as bot:
        await bot.until_ended()
        assert "@BotFather" in (bot.gateway.readers.failure or "")


async def test_a_reply_that_cannot_be_laid_out_in_time_is_shown_as_it_was_written(
    tmp_path: Path, telegram: TelegramServer
) -> None:
    async def too_slow(function: object, text: str) -> NoReturn:
        raise TookTooLong("it never ends")

    anna, hostile = telegram.people.person("Anna"), " ".join(f"**bold{number}**" for number in range(400)) + " "
    async with on_telegram(
        tmp_path, telegram, anna, model=FakeModel(in_turn(Say(text=hostile), Say(text="next"))), aside=too_slow
    ) as bot:
        bot.says("hello")
        bot.says("and now?")
        await bot.until(lambda: "next" in bot.shown())
        *parts, last = bot.shown()
        assert (len(parts), last) == (2, "next")
        assert " ".join(parts) == hostile.strip()
