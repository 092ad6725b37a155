"""The choice of the console that `legato chat` opens."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from adapters.console.adapter import JsonConsole, PipeConsole
from gateway.domain.adapter import Adapter
from gateway.domain.platform import AdapterHost, AdapterSettings

_PROMPT = "adapters.console.interactive"  # by name: its library takes long to load, and pipes do without it


def create(_: AdapterSettings | None, host: AdapterHost) -> Adapter:
    """Return JSON lines with `--json`, a prompt on a terminal where lines can be redrawn, else plain pipes."""
    if host.as_json:
        return JsonConsole(sys.stdin, sys.stdout, host)
    redraws = sys.stdout.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")
    if host.question is None and redraws and sys.stdin.isatty():
        prompt: Adapter = import_module(_PROMPT).InteractiveConsole(host)
        return prompt
    styled = import_module(_PROMPT).styled if host.question is not None and redraws else None
    return PipeConsole(sys.stdin, sys.stdout, host, stderr=sys.stderr, styled=styled)
