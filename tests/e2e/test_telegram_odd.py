"""What a bot does about answers of Telegram's that nobody expects, and about places that have their own rules."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters.telegram.adapter import TelegramAdapter
from gateway.domain.chat import ChatAddress, Outbound, SessionKey
from gateway.domain.quoting import cannot_read
from gateway.people.pairing import guest_book
from tests.emulators.telegram import LoseAnswer, Refuse, TelegramServer, User
from tests.emulators.telegram.webhook import Target
from tests.support.fast_clock import FastClock
from tests.support.hosts import host
from tests.support.telegram_live import on_telegram, settings_on

ODD = '{"ok": true, "result": {"name": "nobody"}}'


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    async with TelegramServer(limits=None, clock=FastClock()) as server:
        yield server


@pytest.fixture
def anna(telegram: TelegramServer) -> User:
    return telegram.people.person("Anna")


async def test_a_bot_that_is_told_nonsense_of_itself_asks_again(
    tmp_path: Path, telegram: TelegramServer, anna: User
) -> None:
    telegram.faults.add(Refuse(status=200, body=ODD), method="getMe", times=2)
    async with on_telegram(tmp_path, telegram, anna) as bot:
        bot.says("hello")
        await bot.until_shown("echo: hello")
        assert bot.gateway.metrics.totals().get("legato_readers_restarted_total telegram broke") is None


async def test_a_check_says_so(telegram: TelegramServer) -> None:
    telegram.faults.add(Refuse(status=200, body=ODD), method="getMe")
    adapter = TelegramAdapter(settings_on(telegram), host())
    (finding,) = await adapter.probe()
    await adapter.aclose()
    assert finding.ok is False
    assert "cannot be read" in finding.detail


async def test_nobody_waits_for_a_webhook_to_be_deleted_that_is_not_there(
    tmp_path: Path, telegram: TelegramServer, anna: User
) -> None:
    telegram.faults.add(LoseAnswer(), method="deleteWebhook", times=9)
    async with on_telegram(tmp_path, telegram, anna) as bot:
        bot.says("hello")
        await bot.until_shown("echo: hello")
    assert not list(telegram.journal.of("deleteWebhook"))


async def test_a_webhook_of_an_earlier_program_ends_when_polling_begins(
    tmp_path: Path, telegram: TelegramServer, anna: User
) -> None:
    telegram.cloud.webhook.set(Target(url="http://127.0.0.1:9/hook"))
    async with on_telegram(tmp_path, telegram, anna) as bot:
        bot.says("hello")
        await bot.until_shown("echo: hello")
    assert telegram.cloud.webhook.target is None


async def test_the_topic_general_is_written_to_by_no_number(
    tmp_path: Path, telegram: TelegramServer, anna: User
) -> None:
    forum = telegram.people.group("Forum", anna, forum=True)
    to = ChatAddress(platform="telegram", chat=str(forum.id), thread="1")
    key = SessionKey(platform="telegram", chat=to.chat, thread="1")
    adapter = TelegramAdapter(settings_on(telegram), host())
    await adapter.send(Outbound(id="o", key=key, to=to, kind="notice", text="hello"))
    await adapter.typing(to, active=True)
    await telegram.until(lambda: list(telegram.journal.of("sendChatAction")))
    await adapter.aclose()
    assert [message.text for message in telegram.shown(forum)] == ["hello"]
    (typing,) = telegram.journal.of("sendChatAction")
    assert (typing.done, typing.parameters["message_thread_id"]) == (True, "1")


async def test_what_the_bot_cannot_read_is_told_once_in_a_while(
    tmp_path: Path, telegram: TelegramServer, anna: User
) -> None:
    eve = telegram.people.person("Eve")
    async with on_telegram(tmp_path, telegram, anna, pairing=True) as bot:
        for writer in (anna, anna, eve):
            chat = telegram.people.private(writer)
            person = {"id": writer.id, "is_bot": False, "first_name": writer.first_name}
            place = {"id": chat.id, "type": "private", "first_name": writer.first_name}
            story = {"message_id": 90, "date": 1, "chat": place, "from": person, "story": {"id": 1, "chat": place}}
            telegram.people.update("message", story)
        bot.says("hello")
        await bot.until_shown(cannot_read("a story"), "echo: hello")
        assert [each.user for each in (await guest_book(bot.gateway.store)).asking] == [str(eve.id)]


async def test_a_method_that_the_server_does_not_know_leaves_the_token_alone(
    tmp_path: Path, telegram: TelegramServer, anna: User
) -> None:
    unknown = Refuse(status=404, body='{"ok":false,"error_code":404,"description":"Not Found: method not found"}')
    telegram.faults.add(unknown, method="getWebhookInfo")
    adapter = TelegramAdapter(settings_on(telegram), host())
    (finding,) = await adapter.probe()
    await adapter.aclose()
    assert "does not know the method getWebhookInfo. The server at adapters.telegram.base_url must" in finding.detail
    for method in ("sendMessage", "getUpdates"):
        telegram.faults.add(unknown, method=method)
    async with on_telegram(tmp_path, telegram, anna) as bot:
        bot.says("hello")
        await bot.until_shown("echo: hello")
        assert bot.gateway.readers.failure is None


@pytest.mark.parametrize("previews", [False, True])
async def test_previews_are_shown_where_they_are_wished(telegram: TelegramServer, anna: User, previews: bool) -> None:
    chat = telegram.people.private(anna)
    telegram.people.say(chat, anna, "hello")
    to = ChatAddress(platform="telegram", chat=str(chat.id))
    row = Outbound(
        id="o", key=SessionKey(platform="telegram", chat=to.chat), to=to, kind="reply", text="See https://example.org"
    )
    adapter = TelegramAdapter(settings_on(telegram, previews=previews), host())
    await adapter.send(row)
    await adapter.aclose()
    (sent,) = telegram.journal.of("sendMessage")
    assert ("true" in str(sent.parameters["link_preview_options"]).lower()) is not previews
