"""A server whose program runs in a sandbox: with a folder of its own, the folders that are lent, and the hosts that are
named."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from gateway.agent.mcp.process import Launch
from gateway.agent.mcp.server import ServerFailed
from gateway.agent.mcp.settings import McpServerSettings
from gateway.agent.tools.shell import lent_of
from gateway.runtime.inside import marked
from gateway.runtime.proxy import ForwardProxy, led_out
from gateway.runtime.sandbox import STANDS, Limits, Reach, Sandbox, argv, excess, why_not

_SET: Final = ("PATH", "LANG", "HOME")  # by the sandbox, if the settings do not say otherwise
# A server runs for months, and may keep the packages that it fetches.
_LIMITS: Final = Limits(cpu=10**9, folder=2_000_000_000, files=100_000)


@asynccontextmanager
async def in_sandbox(
    name: str, settings: McpServerSettings, folder: Path, own: Sequence[Path], proxy: ForwardProxy
) -> AsyncIterator[Launch]:
    """Start it in a sandbox, whose way out is open until this is left. Raises ServerFailed where there is none."""
    if reason := await asyncio.to_thread(why_not):
        raise ServerFailed(f"it is to run in a sandbox, and there is none: {reason}")
    try:
        await asyncio.to_thread(folder.mkdir, mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ServerFailed(f"it has no folder: {error}") from error
    lent = list(lent_of(settings.folders, own, f"tools.mcp.{name}.folders"))
    chosen = [(each, settings.env[each]) for each in _SET if each in settings.env]
    box = Sandbox(folder=folder, lent=lent, variables=chosen, hands_on=True, limits=_LIMITS)
    command: Sequence[str] = (*settings.command, *settings.args)
    async with AsyncExitStack() as stack:
        if settings.hosts:
            reach = Reach(hosts=settings.hosts, everywhere="*" in settings.hosts, setting=f"tools.mcp.{name}.hosts")
            box, command = led_out(box, command, await stack.enter_async_context(proxy.open(reach)))
        yield Launch(
            argv=argv(box, command),
            environment=marked(settings.env),  # which, unlike arguments, other users do not see
            folder="/",
            preface=STANDS.strip(),
            excess=lambda pid: excess(pid, folder, _LIMITS),
        )
