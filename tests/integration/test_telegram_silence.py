"""A chat that asked for silence gets it from everything the adapter does, whichever call was told so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from adapters.telegram.adapter import TelegramAdapter
from gateway.domain.chat import ChatAddress, Outbound, SessionKey
from gateway.runtime.errors import RateLimited
from tests.emulators.telegram import Flood, TelegramServer
from tests.support.hosts import host
from tests.support.telegram_live import settings_on


@asynccontextmanager
async def bot_on(telegram: TelegramServer) -> AsyncIterator[TelegramAdapter]:
    adapter = TelegramAdapter(settings_on(telegram), host(), paced=False)
    try:
        await adapter.probe()
        yield adapter
    finally:
        await adapter.aclose()


def message(chat: int, thread: str | None = None) -> Outbound:
    to = ChatAddress(platform="telegram", chat=str(chat), thread=thread)
    key = SessionKey(platform="telegram", chat=str(chat), thread=thread)
    return Outbound(id="o_1", key=key, to=to, kind="reply", text="hello", created_at=0.0)


async def test_a_chat_that_wants_nobody_to_type_gets_no_message_either() -> None:
    async with TelegramServer(limits=None) as telegram, bot_on(telegram) as bot:
        chat = telegram.people.private(telegram.people.person("Anna", started=True)).id
        telegram.faults.add(Flood(seconds=60), method="sendChatAction")
        await bot.typing(message(chat).to, True)
        await telegram.until(lambda: [call for call in telegram.journal.of("sendChatAction") if call.answered])
        await bot.probe()  # its answer comes after that one
        with pytest.raises(RateLimited) as caught:
            await bot.send(message(chat))
        assert 50 < caught.value.retry_after <= 60
        with pytest.raises(RateLimited):
            await bot.edit(message(chat), "1")
        assert list(telegram.journal.of("sendMessage")) == list(telegram.journal.of("editMessageText")) == []


async def test_a_topic_sees_nobody_type_while_its_forum_wants_silence() -> None:
    async with TelegramServer(limits=None) as telegram, bot_on(telegram) as bot:
        anna = telegram.people.person("Anna")
        forum = telegram.people.group("Forum", anna, forum=True, bot="administrator")
        one, two = (str(telegram.people.topic(forum, anna, name)) for name in ("One", "Two"))
        telegram.faults.add(Flood(seconds=60), method="sendMessage", chat_id=forum.id)
        with pytest.raises(RateLimited):
            await bot.send(message(forum.id, one))
        await bot.typing(message(forum.id, two).to, True)
        for _ in range(3):  # long enough for one that does type
            await bot.probe()
        assert list(telegram.journal.of("sendChatAction")) == []


async def test_another_chat_need_not_keep_silent() -> None:
    async with TelegramServer(limits=None) as telegram, bot_on(telegram) as bot:
        anna, bob = (telegram.people.person(name, started=True) for name in ("Anna", "Bob"))
        telegram.faults.add(Flood(seconds=60), method="sendMessage", chat_id=anna.id)
        with pytest.raises(RateLimited):
            await bot.send(message(anna.id))
        await bot.send(message(bob.id))
        assert [each.text for each in telegram.shown(telegram.people.private(bob))] == ["hello"]


@pytest.mark.parametrize("end", ["", "/", "/bot", "/bot/"])
async def test_the_address_of_a_server_may_be_written_in_four_ways(end: str) -> None:
    async with TelegramServer(limits=None) as telegram:
        address = telegram.base_url.removesuffix("/bot") + end
        adapter = TelegramAdapter(settings_on(telegram, base_url=address), host(), paced=False)
        try:
            (reached, *_) = await adapter.probe()
        finally:
            await adapter.aclose()
        assert reached.ok, reached.detail
