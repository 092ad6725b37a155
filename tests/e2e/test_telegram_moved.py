"""A group that becomes a supergroup has another number, counts its messages anew, and goes on as if nothing were."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.domain.chat import ChatAddress
from tests.emulators.telegram import Chat, TelegramServer, User
from tests.support.fast_clock import FastClock
from tests.support.model import FakeModel, Gate, Say, in_turn
from tests.support.telegram_live import Bot, on_telegram
from tests.support.tools import Payment, payments

LONG = "The beginning of an answer that is long enough to be shown before its end is there. " * 2


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    """Telegram without its limits."""
    async with TelegramServer(limits=None, clock=FastClock()) as server:
        yield server


@pytest.fixture
def anna(telegram: TelegramServer) -> User:
    return telegram.people.person("Anna")


@pytest.fixture
def group(telegram: TelegramServer, anna: User) -> Chat:
    """Anna's group, in which the bot sees everything."""
    return telegram.people.group("Team", anna, kind="group", bot="administrator")


def to_bot(bot: Bot, text: str) -> str:
    return f"@{bot.telegram.bot.username} {text}"


def calls(telegram: TelegramServer, chat: Chat) -> int:
    return sum(call.chat_id == str(chat.id) for call in telegram.journal.calls)


async def test_its_conversation_and_its_rules_go_on(
    tmp_path: Path, telegram: TelegramServer, anna: User, group: Chat
) -> None:
    async with on_telegram(tmp_path, telegram, anna) as bot:
        bot.says("/pin answer in Dutch", group)
        bot.says(to_bot(bot, "the number is 4711"), group)
        await bot.until(lambda: "echo: the number is 4711" in bot.shown(group))
        moved = telegram.people.migrate(group, anna)
        question = bot.says(to_bot(bot, "which number?"), moved)
        await bot.until_shown("echo: which number?", chat=moved)
        assert bot.model.spoken()[0] == ("user", "the number is 4711")
        assert "answer in Dutch" in str(bot.model.requests[-1].messages[0])
        assert telegram.shown(moved)[0].reply_to is question
        assert len(await bot.gateway.store.sessions(None, 9)) == 1
    assert telegram.violations == []


async def test_after_a_restart_too_and_answers_point_at_questions_of_their_own_chat(
    tmp_path: Path, telegram: TelegramServer, anna: User, group: Chat
) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(text="one"), Say(text="two", gate=gate)))
    async with on_telegram(tmp_path, telegram, anna, model=model) as bot:
        bot.says(to_bot(bot, "first"), group)
        await bot.until_shown("one", chat=group)
        bot.says(to_bot(bot, "second"), group)
        await gate.until_waiting()
        moved = telegram.people.migrate(group, anna)
        for number in range(9):  # one of them has the number that the question has in the group
            bot.says(f"talk among people {number}", moved)
        gate.open()
        await bot.until_shown("two", chat=moved)
        assert telegram.shown(moved)[0].reply_to is None
    async with on_telegram(tmp_path, telegram, anna) as bot:
        question = bot.says(to_bot(bot, "third"), moved)
        await bot.until_shown("two", "echo: third", chat=moved)
        assert telegram.shown(moved)[1].reply_to is question
        assert ("assistant", "one") in bot.model.spoken()
    assert telegram.violations == []


async def test_a_reply_that_was_growing_there_is_shown_whole_in_the_new_chat_as_a_repeat(
    tmp_path: Path, telegram: TelegramServer, anna: User, group: Chat
) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(text="And its end.", first=LONG, gate=gate)))
    async with on_telegram(tmp_path, telegram, anna, model=model) as bot:
        bot.says(to_bot(bot, "tell me"), group)
        await bot.until(lambda: bot.shown(group))
        moved = telegram.people.migrate(group, anna)
        gate.open()
        await bot.until_shown("↻ " + LONG + "And its end.", chat=moved)
        await bot.quiet()
        assert bot.shown(moved) == ["↻ " + LONG + "And its end."]


async def test_a_reply_that_grows_in_the_new_chat_ends_in_one_message(
    tmp_path: Path, telegram: TelegramServer, anna: User, group: Chat
) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(text="one"), Say(text="And its end.", first=LONG, gate=gate)))
    async with on_telegram(tmp_path, telegram, anna, model=model) as bot:
        bot.says(to_bot(bot, "first"), group)
        await bot.until_shown("one", chat=group)
        moved = telegram.people.migrate(group, anna)
        bot.says(to_bot(bot, "tell me"), moved)
        await bot.until(lambda: bot.shown(moved))
        gate.open()
        await bot.until_shown(LONG + "And its end.", chat=moved)
        assert len(telegram.shown(moved)[0].texts) == 2
        # A number that is a message's in the old group is none here, and the other way round.
        assert bot.shown(group) == ["one"]


async def test_what_was_asked_before_can_be_answered_after(
    tmp_path: Path, telegram: TelegramServer, anna: User, group: Chat
) -> None:
    tool = Payment()
    model = FakeModel(in_turn(payments(50), Say(text="done")))
    async with on_telegram(tmp_path, telegram, anna, model=model, with_tools=[tool]) as bot:
        bot.says(to_bot(bot, "pay"), group)
        await bot.until(lambda: any(message.buttons for message in telegram.shown(group)))
        moved = telegram.people.migrate(group, anna)
        bot.answers("/approve", moved)
        await bot.until(lambda: "done" in bot.shown(moved))
        assert tool.paid == [50]


async def test_who_asks_reads_both_names(tmp_path: Path, telegram: TelegramServer, anna: User, group: Chat) -> None:
    """A new store would know only the one that Telegram uses now."""
    moved = telegram.people.migrate(group, anna)
    async with on_telegram(tmp_path, telegram, anna) as bot:
        bot.says("/whoami", moved)
        await bot.until(lambda: bot.shown(moved))
        assert f"in chat {moved.id} (before: {group.id})" in bot.shown(moved)[0]


async def test_stop_reaches_the_turn_that_began_before(
    tmp_path: Path, telegram: TelegramServer, anna: User, group: Chat
) -> None:
    gate = Gate()
    async with on_telegram(tmp_path, telegram, anna, model=FakeModel(in_turn(Say(text="never", gate=gate)))) as bot:
        bot.says(to_bot(bot, "think"), group)
        await gate.until_waiting()
        moved = telegram.people.migrate(group, anna)
        bot.says("/stop", moved)
        await bot.until(lambda: bot.shown(moved))
        await bot.quiet()
        assert "never" not in bot.shown(moved)
        assert not any("no turn" in text.lower() for text in bot.shown(moved))


async def test_leaving_the_group_that_was_is_no_leaving_and_leaving_the_new_one_is(
    tmp_path: Path, telegram: TelegramServer, anna: User, group: Chat
) -> None:
    async with on_telegram(tmp_path, telegram, anna) as bot:
        bot.says(to_bot(bot, "first"), group)
        await bot.until_shown("echo: first", chat=group)
        moved = telegram.people.migrate(group, anna)
        telegram.people.kick_bot(group, anna)
        bot.says(to_bot(bot, "second"), moved)
        await bot.until_shown("echo: second", chat=moved)
        here = ChatAddress(platform="telegram", chat=str(group.id))
        telegram.people.kick_bot(group, anna)
        telegram.people.kick_bot(moved, anna)
        await bot.until(lambda: not len(telegram.cloud.updates))
        before = calls(telegram, moved)
        assert await bot.gateway.store.closed(here) is not None
        telegram.people.add_bot(moved, anna)
        await bot.until(lambda: not len(telegram.cloud.updates))
        assert await bot.gateway.store.closed(here) is None
        assert calls(telegram, moved) == before


@pytest.mark.parametrize("named", ["before", "after"])
async def test_who_is_allowed_there_by_either_number_is(
    named: str, tmp_path: Path, telegram: TelegramServer, anna: User, group: Chat
) -> None:
    bob = telegram.people.person("Bob")
    group.members[bob.id] = "member"
    moved = telegram.people.migrate(group, anna)
    number = group.id if named == "before" else moved.id
    async with on_telegram(tmp_path, telegram, anna, allow=(f"telegram:{bob.id}@{number}",)) as bot:
        telegram.people.say(moved, bob, to_bot(bot, "hello"))
        await bot.until_shown("echo: hello", chat=moved)


async def test_all_of_it_while_the_bot_was_down(
    tmp_path: Path, telegram: TelegramServer, anna: User, group: Chat
) -> None:
    async with on_telegram(tmp_path, telegram, anna) as bot:
        bot.says(to_bot(bot, "first"), group)
        await bot.until_shown("echo: first", chat=group)
    bot.says(to_bot(bot, "before"), group)
    moved = telegram.people.migrate(group, anna)
    bot.says(to_bot(bot, "after"), moved)
    async with on_telegram(tmp_path, telegram, anna) as bot:
        await bot.until_shown("echo: before", "echo: after", chat=moved)
        assert [text for role, text in bot.model.spoken() if role == "user"] == ["first", "before", "after"]
    assert telegram.violations == []


async def test_a_number_that_only_a_refused_answer_tells_keeps_its_conversation(
    tmp_path: Path, telegram: TelegramServer, anna: User, group: Chat
) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(text="one", gate=gate), Say(text="two")))
    async with on_telegram(tmp_path, telegram, anna, model=model) as bot:
        bot.says(to_bot(bot, "the number is 4711"), group)
        await gate.until_waiting()
        moved = telegram.people.migrate(group, anna, told=False)
        gate.open()
        await bot.until_shown("one", chat=moved)
        await bot.quiet()
        bot.says(to_bot(bot, "which number?"), moved)
        await bot.until_shown("one", "two", chat=moved)
        assert model.spoken()[0] == ("user", "the number is 4711")
        assert len(await bot.gateway.store.sessions(None, 9)) == 1
