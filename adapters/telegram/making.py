"""Makes the bot. The library is loaded without the package that reads Telegram Passports, which takes 8 MB and which
nobody needs here."""

from __future__ import annotations

import sys

if "cryptography" not in sys.modules:
    sys.modules["cryptography"] = None  # type: ignore[assignment]
    import telegram  # noqa: F401

    del sys.modules["cryptography"]

from adapters.telegram.adapter import TelegramAdapter, TelegramBot
from adapters.telegram.platform import TelegramSettings
from adapters.telegram.webhook import WebhookAdapter
from gateway.domain.platform import AdapterHost


def create(settings: TelegramSettings, host: AdapterHost) -> TelegramBot:
    """The bot of these settings, with polling or with a webhook. Raises ConfigError."""
    return TelegramAdapter(settings, host) if settings.mode == "polling" else WebhookAdapter(settings, host)
