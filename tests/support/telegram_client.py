"""python-telegram-bot's own client before the emulator: what the tests of the emulator are written with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import telegram
from telegram.error import BadRequest
from telegram.request import HTTPXRequest

from tests.emulators.telegram import Chat, TelegramServer, User


@pytest.fixture
def durations(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client gives durations as timedeltas, and does not warn that it will."""
    monkeypatch.setenv("PTB_TIMEDELTA", "true")


@asynccontextmanager
async def client(
    server: TelegramServer, *, token: str | None = None, patience: float = 20.0
) -> AsyncIterator[telegram.Bot]:
    """A bot that calls the server; `patience`: seconds it waits for an answer."""
    # No certificates are loaded, which takes longer than a whole test.
    requests = [HTTPXRequest(read_timeout=patience, httpx_kwargs={"verify": False}) for _ in range(2)]
    bot = telegram.Bot(
        token or server.token,
        base_url=server.base_url,
        base_file_url=server.base_file_url,
        request=requests[0],
        get_updates_request=requests[1],
    )
    async with requests[0], requests[1]:
        yield bot


@asynccontextmanager
async def emulated(**options: Any) -> AsyncIterator[tuple[TelegramServer, telegram.Bot]]:
    """A server and a client of it."""
    async with TelegramServer(**options) as server, client(server) as bot:
        yield server, bot


def started(server: TelegramServer, name: str = "Anna") -> tuple[User, Chat]:
    """Somebody who has written to the bot, and their chat."""
    user = server.people.person(name)
    chat = server.people.private(user)
    server.people.say(chat, user, "/start")
    return user, chat


def refused(reason: str) -> Any:
    """Expect a 400. The client writes the description in small letters, so that case says nothing."""
    return pytest.raises(BadRequest, match=f"(?i){reason}")
