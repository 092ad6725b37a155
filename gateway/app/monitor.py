"""The address for monitors: whether the process lives, whether it takes messages, what it does, and its numbers.

    /healthz   200 as long as the event loop comes to its turn
    /readyz    200 while messages are taken: the store is reached and migrated; else 503 with the reason
    /statusz   JSON for people; `legato status` prints the same
    /metrics   every number, in Prometheus's text format

POST /reload takes up changed settings, for `legato reload` on this machine.

On loopback only requests to this machine's own names are answered: a page in a browser here reaches loopback, too.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web
from msgspec import Struct

from gateway.app.config.models import MonitorSettings
from gateway.app.gateway import Gateway
from gateway.app.health import Health
from gateway.app.reload import OWN, RELOAD, Reloader
from gateway.domain.settings import is_loopback
from gateway.runtime.door import Door
from gateway.runtime.errors import ConfigError, UserError
from gateway.runtime.exposition import exposition
from gateway.runtime.inside import comes_from_inside

_PATIENCE: Final = 30.0  # seconds for a request, and between two
_LAST_WORDS: Final = 1.0  # seconds for running requests at the end
_PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"


@asynccontextmanager
async def answering(
    settings: MonitorSettings, worker: int, gateway: Gateway, reloader: Reloader | None = None
) -> AsyncIterator[None]:
    """Answer monitors of this worker's gateway in the block. Raises UserError if the address cannot be had."""
    host, port = settings.place(worker)
    monitor = _Monitor(health=gateway.watchdog.health, public=settings.public, reloader=reloader)
    door = Door("monitor", monitor.asked, gateway.clock, patience=_PATIENCE)
    try:
        await door.open(host=host, port=port)
    except (OSError, OverflowError) as error:  # the port of a late worker may be beyond the last one
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
        raise UserError(
            f"The monitor cannot listen at {host}:{port} ({why}). End the program that uses this port, or set another "
            "port in monitor.address."
        ) from error
    try:
        yield
    finally:
        await door.close(_LAST_WORDS)


class _Monitor(Struct, frozen=True, kw_only=True):
    """`public`: whoever reaches it is answered, under any name."""

    health: Health
    public: bool
    reloader: Reloader | None

    async def asked(self, request: web.BaseRequest) -> web.Response:
        if request.method not in ("GET", "HEAD") and (request.method, request.path) != ("POST", RELOAD):
            return web.Response(status=405, headers={"Allow": "GET, HEAD"})
        if not (self.public or is_loopback(request.host.rpartition(":")[0] or request.host)):
            return web.Response(
                status=403,
                text="The address does not name this machine. Use a name of this machine, such as 127.0.0.1.\n",
            )
        match request.path:
            case "/healthz":
                return web.Response(text="ok\n")
            case "/readyz":
                reason = await self.health.is_ready()
                return web.Response(status=503 if reason else 200, text=f"{reason or 'ok'}\n")
            case "/statusz":
                report = json.dumps(await self.health.report(), ensure_ascii=False, indent=2)
                return web.Response(text=f"{report}\n", content_type="application/json")
            case "/metrics":
                text = exposition(await self.health.metrics.refreshed())
                return web.Response(body=text.encode(), headers={"Content-Type": _PROMETHEUS})
            case "/reload" if self.reloader is not None and request.method == "POST":
                # A browser here sends no such header for a stranger's page, and a stranger comes from elsewhere.
                if not (is_loopback(request.remote or "") and request.headers.get(OWN) == "reload"):
                    return web.Response(status=403, text="Only `legato reload` on this machine may ask for a reload.\n")
                return await _reloaded(self.reloader, widens=not await asyncio.to_thread(_comes_from_inside, request))
        return web.Response(status=404, text="This server has /healthz, /readyz, /statusz and /metrics.\n")


def _comes_from_inside(request: web.BaseRequest) -> bool:
    transport = request.transport
    if transport is None:  # it has gone
        return True
    return comes_from_inside(transport.get_extra_info("peername")[1], transport.get_extra_info("sockname")[1])


async def _reloaded(reloader: Reloader, *, widens: bool) -> web.Response:
    try:
        done = await reloader.reload(widens=widens)
    except ConfigError as error:
        return web.json_response({"problems": error.problems}, status=409)
    return web.json_response({"changed": done.changed, "waiting": done.waiting, "held": done.held})
