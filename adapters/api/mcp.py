"""MCP's streamable HTTP, by key: each request is answered alone, in JSON, for the key's person."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from adapters.api.platform import NAME
from adapters.api.server import USER, Server, body_of, user_named
from gateway.domain.adapter import AnswerMcp
from gateway.domain.chat import SessionKey
from gateway.runtime.clock import Clock

_LARGEST: Final = 1_000_000  # bytes of a request
_HANDED_ON: Final = ("accept", "content-type", "mcp-method", "mcp-name", "mcp-protocol-version")


def routes(server: Server, clock: Clock, mcp: AnswerMcp) -> list[web.RouteDef]:
    """The one route; the others of the protocol are for servers that keep sessions."""

    async def asked(request: web.BaseRequest) -> web.StreamResponse:
        key = await server.caller(request)
        user = user_named(request.headers.get(USER, "") if key.front_end else "", USER, "The header")
        own = SessionKey(platform=NAME, chat=key.person_named(user))
        body = await body_of(request, clock, most=_LARGEST)
        headers = [(name, value) for name, value in request.headers.items() if name.lower() in _HANDED_ON]
        status, kind, content = await mcp(key, own, headers, body)
        return web.Response(status=status, body=content, headers={"Content-Type": kind})

    return [web.post("/mcp", asked)]
