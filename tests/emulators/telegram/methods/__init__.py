"""The methods of the Bot API that are emulated, by their names in small letters, as Telegram looks them up.

A method takes the `Cloud` and the call's `Parameters`, gives the result as JSON, and raises a `Refusal`. Those that are
missing here answer as Telegram answers to a name it does not know, and leave a violation.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tests.emulators.telegram.cloud import Cloud
from tests.emulators.telegram.methods import account, chats, media, messages, polls, reading
from tests.emulators.telegram.parameters import Parameters

Method = Callable[[Cloud, Parameters], Any | Awaitable[Any]]

_TABLES: tuple[Mapping[str, Method], ...] = (
    account.METHODS,
    chats.METHODS,
    media.METHODS,
    messages.METHODS,
    polls.METHODS,
    reading.METHODS,
)
NAMES: Mapping[str, str] = {name.lower(): name for table in _TABLES for name in table}
"""How the documentation writes them."""

METHODS: Mapping[str, Method] = {name.lower(): method for table in _TABLES for name, method in table.items()}
