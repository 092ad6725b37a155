"""The host of an adapter that a test makes by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gateway.domain.chat import Source
from gateway.domain.platform import AdapterHost
from gateway.runtime.clock import Clock, SystemClock, SystemIds


async def _nothing(_: Source) -> str:
    return ""


def host(clock: Clock | None = None, **more: Any) -> AdapterHost:
    """What an adapter is given, with `more` of its fields."""
    usual: dict[str, Any] = {"ids": SystemIds(), "home": Path("nowhere"), "menu": (), "admins": (), "model": "fake"}
    usual |= {"model_in_full": "fake", "turns_running": lambda: 0}
    usual |= dict.fromkeys(("greeting", "farewell", "model_of"), _nothing)
    return AdapterHost(clock=clock or SystemClock(), **usual | more)
