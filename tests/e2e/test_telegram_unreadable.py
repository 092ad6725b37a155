"""Updates that nobody can read, by polling and by calls: they are passed over, and whoever writes next is heard."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.emulators.telegram import TelegramServer, User
from tests.support.fast_clock import FastClock
from tests.support.redis_server import free_port
from tests.support.telegram_live import on_telegram

TEXT = "what I say is nobody's business"


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    async with TelegramServer(limits=None, clock=FastClock()) as server:
        yield server


@pytest.fixture(params=["polling", "webhook"])
def webhook(request: pytest.FixtureRequest) -> dict[str, Any] | None:
    port = free_port()
    called = {"url": f"http://127.0.0.1:{port}/hook", "host": "127.0.0.1", "port": port}
    return called if request.param == "webhook" else None


def message(anna: User, **fields: Any) -> dict[str, Any]:
    """Telegram's JSON of a message from Anna to the bot."""
    chat = {"id": anna.id, "type": "private", "first_name": "Anna"}
    sender = {"id": anna.id, "is_bot": False, "first_name": "Anna"}
    return {"message_id": 900, "date": 1_700_000_000, "chat": chat, "from": sender, "text": TEXT, **fields}


@pytest.mark.parametrize("fields", [{"date": 10**15}, {"from": "Anna"}, {"chat": "me"}])
async def test_an_update_that_cannot_be_read_holds_up_nobody(
    tmp_path: Path,
    telegram: TelegramServer,
    webhook: dict[str, Any] | None,
    fields: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    anna = telegram.people.person("Anna")
    with capture_logs() as logs:
        async with on_telegram(tmp_path, telegram, anna, webhook=webhook) as bot:
            telegram.people.update("message", message(anna, **fields))
            bot.says("hello")
            await bot.until_shown("echo: hello")
            await bot.until(lambda: not len(telegram.cloud.updates))
    assert [line["event"] for line in logs].count("update_unreadable") == 1
    assert TEXT not in caplog.text + str(logs)
