"""The bot is made with all that its host lends it."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from adapters.telegram import making
from adapters.telegram.platform import TelegramSettings


@pytest.mark.parametrize(("mode", "kind"), [("polling", "TelegramAdapter"), ("webhook", "WebhookAdapter")])
def test_nothing_that_the_host_lends_is_lost(monkeypatch: pytest.MonkeyPatch, mode: Any, kind: str) -> None:
    made, host = Mock(), Mock()
    monkeypatch.setattr(making, kind, made)
    settings = TelegramSettings(mode=mode)
    assert making.create(settings, host) is made.return_value
    lent = ("clock", "menu", "admins", "aside", "listens", "shows")
    assert made.call_args == ((settings,), {name: getattr(host, name) for name in lent})
