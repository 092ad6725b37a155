"""Telegram, a model behind a strict API, and Anna, who sends files: for tests of what becomes of them.

Test modules load this as a plugin, `pytest_plugins = ["tests.support.telegram_files"]`.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.providers.http import http_client
from gateway.providers.openai.chat_completions import ChatCompletions
from gateway.providers.plugin import ModelSettings as ModelEntry
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Reply
from tests.emulators.telegram import TelegramServer, User
from tests.emulators.telegram.people import PIXEL
from tests.support.fast_clock import FastClock
from tests.support.telegram_live import Bot, on_telegram


class World:
    """Telegram, a model's server, and Anna."""

    def __init__(self, folder: Path, telegram: TelegramServer, model: LlmServer) -> None:
        self.folder, self.telegram, self.model = folder, telegram, model
        self.anna: User = telegram.people.person("Anna")

    @asynccontextmanager
    async def bot(self, *, entry: dict[str, Any] | None = None, **how: Any) -> AsyncIterator[Bot]:
        """The gateway between them."""
        name = {"provider": "openai", "name": "m", "base_url": self.model.url, "context_length": 100_000}
        async with AsyncExitStack() as stack:
            provider = ChatCompletions(http_client(), str)
            stack.push_async_callback(provider.aclose)
            made = on_telegram(
                self.folder, self.telegram, self.anna, entry=ModelEntry(**{**name, **(entry or {})}),
                provider=provider, **how,
            )  # fmt: skip
            yield await stack.enter_async_context(made)

    def sends(self, kind: str, content: bytes = PIXEL, **how: Any) -> Any:
        """Anna sends a file to the bot."""
        return self.telegram.people.file(self.telegram.people.private(self.anna), self.anna, kind, content, **how)

    def heard(self, index: int = -1) -> Any:
        """The content of the newest user message of a request."""
        return next(
            each["content"] for each in reversed(self.model.requests[index]["messages"]) if each["role"] == "user"
        )

    def downloads(self) -> int:
        """Return how often a file was asked for."""
        return sum(call.method == "(download)" for call in self.telegram.journal.calls)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    telegram = TelegramServer(limits=None, clock=FastClock())
    async with telegram, LlmServer(lambda body: Reply(text="seen")) as model:
        found = World(tmp_path, telegram, model)
        yield found
        assert telegram.violations == []


def pictures(content: Any) -> list[bytes]:
    """The pictures that a message shows."""
    if isinstance(content, str):
        return []
    urls = [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
    return [base64.b64decode(url.partition("base64,")[2]) for url in urls]


def words(content: Any) -> str:
    """The words of a message."""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
