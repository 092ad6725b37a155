"""The routes of the API, by method and template of the path. A route takes the `Cloud` and what was `Asked`, and gives
the JSON of its answer: None for an empty one (204). It raises a `Refusal`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.emulators.discord.asked import Asked
from tests.emulators.discord.cloud import Cloud
from tests.emulators.discord.routes import account, channels, commands, interactions, messages

Route = Callable[[Cloud, Asked], Any]

_TABLES: tuple[Mapping[str, Route], ...] = (
    account.ROUTES,
    channels.ROUTES,
    commands.ROUTES,
    interactions.ROUTES,
    messages.ROUTES,
)
ROUTES: Mapping[str, Route] = {name: route for table in _TABLES for name, route in table.items()}
