"""The choice of the console that `legato chat` opens."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

from adapters.console.adapter import JsonConsole, PipeConsole
from gateway.domain.adapter import Adapter
from gateway.domain.chat import Source
from gateway.domain.platform import AdapterHost, AdapterSettings


def create(_: AdapterSettings | None, host: AdapterHost) -> Adapter:
    """Return JSON lines with `--json`, a prompt on a terminal where lines can be redrawn, else plain pipes."""
    files = host.home / "files"
    how: Any = {"ids": host.ids, "clock": host.clock, "files": files, "question": host.question, "fresh": host.fresh}
    how["chat"] = host.chat or None
    if host.as_json:
        return JsonConsole(sys.stdin, sys.stdout, **how)
    redraws = sys.stdout.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")
    if host.question is not None and redraws:
        how["styled"] = import_module("adapters.console.interactive").styled  # by name, as the prompt below
    if host.question is not None or not (sys.stdin.isatty() and redraws):
        return PipeConsole(sys.stdin, sys.stdout, stderr=sys.stderr, **how)

    model = host.model

    async def look(source: Source) -> None:
        nonlocal model
        model = await host.model_of(source)

    def toolbar() -> str:
        return f" {model}  ·  {'working' if host.turns_running() else 'ready'}  ·  /help  ·  Ctrl-D leaves"

    # By name: the prompt's library takes long to load, and pipes do without it.
    prompt: Adapter = import_module("adapters.console.interactive").InteractiveConsole(
        ids=host.ids,
        clock=host.clock,
        model=host.model_in_full,
        commands=[(entry.name, entry.help) for entry in host.menu],
        toolbar=toolbar,
        look=look,
        greeting=host.greeting,
        farewell=host.farewell,
        history=host.home / "history",
        files=files,
        fresh=host.fresh,
    )
    return prompt
