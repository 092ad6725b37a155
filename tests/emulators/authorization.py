"""A loopback OAuth authorization server as hosted MCP servers have one, as strict as the specifications: RFC 6749 with
PKCE (RFC 7636, S256 alone), metadata (RFC 8414), registration (RFC 7591), resources (RFC 8707), the issuer in the
answer (RFC 9207), refresh tokens that are used once and whose second use revokes the whole login (RFC 9700).

    async with AuthorizationServer() as server:
        ...  # a resource asks `server.url`/introspect about tokens; `server.url`/mcp is a small one (RFC 9728)
        address = await server.agree(link)  # what a browser shows at the end, where the person says yes

`server.lasts` are the seconds of an access token. `server.habits` are what goes wrong: see `_HABITS`.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
import time
from dataclasses import dataclass, field
from typing import Any, Final, Self
from urllib.parse import urlencode

import aiohttp
from aiohttp import web

_CODE_LASTS: Final = 60.0
HABITS: Final = (
    "other-issuer",  # the metadata name another issuer
    "wrong-iss",  # the answer names another issuer
    "no-iss",  # the answer names none, though the metadata promise it
    "wrong-state",
    "refuses",  # the person says no
    "no-registration",
    "registration-fails",
    "token-hangs",
    "token-fails",  # 503
    "token-html",
    "token-endless",  # an answer of 100 MB
    "metadata-endless",
    "token-elsewhere",  # the token endpoint is on another host, by a redirect
    "no-refresh",  # no refresh tokens are given
    "deep-metadata",
    "other-resource",  # the resource's metadata are those of another one
    "no-login",  # the resource lets everybody in
    "never-satisfied",  # the resource lets nobody in, whatever they bring
)


@dataclass(kw_only=True)
class _Grant:
    """What one login gave."""

    client: str
    resource: str
    revoked: bool = False
    refresh: str = ""


@dataclass(kw_only=True)
class _Code:
    client: str
    challenge: str
    redirect: str
    resource: str
    until: float


@dataclass(kw_only=True)
class AuthorizationServer:
    """The emulator."""

    habits: set[str] = field(default_factory=set)
    lasts: float = 3600.0
    url: str = ""
    clients: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)  # the paths, in order
    violations: list[str] = field(default_factory=list)
    _codes: dict[str, _Code] = field(default_factory=dict)
    _access: dict[str, tuple[_Grant, float]] = field(default_factory=dict)
    _refresh: dict[str, _Grant] = field(default_factory=dict)
    _runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(middlewares=[self._note])
        app.router.add_get("/.well-known/oauth-authorization-server", self._metadata)
        app.router.add_post("/register", self._register)
        app.router.add_get("/authorize", self._authorize)
        app.router.add_post("/token", self._token)
        app.router.add_get("/introspect", self._introspect)
        app.router.add_get("/.well-known/oauth-protected-resource/mcp", self._resource)
        app.router.add_post("/mcp", self._guarded)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    # -- what a test does -------------------------------------------------------------------

    async def agree(self, link: str) -> str:
        """Open the link as a person does who says yes. Returns the address of the last page."""
        async with aiohttp.ClientSession() as browser, browser.get(link, allow_redirects=False) as answer:
            if answer.status != 302:
                raise AssertionError(f"{answer.status}: {await answer.text()}")
            return answer.headers["Location"]

    def expire(self) -> None:
        """All access tokens are over now."""
        self._access = {token: (grant, 0.0) for token, (grant, _) in self._access.items()}

    def revoke(self) -> None:
        """A person takes all logins back."""
        for grant, _ in self._access.values():
            grant.revoked = True
        for grant in self._refresh.values():
            grant.revoked = True

    @property
    def secrets(self) -> list[str]:
        """Every token that was ever given."""
        return [*self._access, *self._refresh]

    def count(self, path: str) -> int:
        """The number of requests for a path."""
        return self.asked.count(path)

    # -- the endpoints ----------------------------------------------------------------------

    @web.middleware
    async def _note(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.asked.append(request.path)
        return await handler(request)  # type: ignore[no-any-return]

    async def _metadata(self, request: web.Request) -> web.StreamResponse:
        if "metadata-endless" in self.habits:
            return await _endless(request)
        facts: dict[str, Any] = {
            "issuer": "http://127.0.0.1:9/" if "other-issuer" in self.habits else f"{self.url}/",
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "registration_endpoint": f"{self.url}/register",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_post"],
            "authorization_response_iss_parameter_supported": True,
        }
        if "deep-metadata" in self.habits:
            return web.Response(text="[" * 100_000, content_type="application/json")
        if "no-registration" in self.habits:
            del facts["registration_endpoint"]
        return web.json_response(facts)

    async def _register(self, request: web.Request) -> web.Response:
        if self.habits & {"registration-fails", "no-registration"}:
            return web.json_response({"error": "invalid_client_metadata"}, status=400)
        wanted = await request.json()
        client = f"client-{len(self.clients) + 1}"
        self.clients[client] = {"redirect_uris": wanted["redirect_uris"], "secret": None}
        return web.json_response({**wanted, "client_id": client, "token_endpoint_auth_method": "none"}, status=201)

    async def _authorize(self, request: web.Request) -> web.Response:
        given = request.query
        client = self.clients.get(given.get("client_id", ""))
        if client is None or given.get("redirect_uri") not in client["redirect_uris"]:
            return self._wrong("unknown client or redirect_uri")
        if given.get("code_challenge_method") != "S256" or not given.get("code_challenge") or not given.get("state"):
            return self._wrong("no PKCE or no state")
        state = "another" if "wrong-state" in self.habits else given["state"]
        if "refuses" in self.habits:
            back = {"error": "access_denied", "error_description": "The person said no", "state": state}
        else:
            code = secrets.token_urlsafe(16)
            self._codes[code] = _Code(
                client=given["client_id"],
                challenge=given["code_challenge"],
                redirect=given["redirect_uri"],
                resource=given.get("resource", ""),
                until=time.time() + _CODE_LASTS,
            )
            back = {"code": code, "state": state}
        if "no-iss" not in self.habits:
            back["iss"] = "http://127.0.0.1:9/" if "wrong-iss" in self.habits else f"{self.url}/"
        raise web.HTTPFound(f"{given['redirect_uri']}?{urlencode(back)}")

    async def _token(self, request: web.Request) -> web.StreamResponse:
        if "token-hangs" in self.habits:
            await asyncio.Event().wait()
        if "token-fails" in self.habits:
            return web.Response(status=503, text="busy")
        if "token-html" in self.habits:
            return web.Response(text="<h1>Welcome</h1>", content_type="text/html")
        if "token-endless" in self.habits:
            return await _endless(request)
        if "token-elsewhere" in self.habits:
            raise web.HTTPTemporaryRedirect(f"{self.url.replace('127.0.0.1', 'localhost')}/stolen")
        form = {name: str(value) for name, value in (await request.post()).items()}
        client = self.clients.get(form.get("client_id", ""))
        if client is None or (client["secret"] and form.get("client_secret") != client["secret"]):
            return web.json_response({"error": "invalid_client"}, status=401)
        grant = self._of_code(form) if form.get("grant_type") == "authorization_code" else self._of_refresh(form)
        if grant is None:
            return web.json_response({"error": "invalid_grant"}, status=400)
        return web.json_response(self._given(grant))

    def _of_code(self, form: dict[str, str]) -> _Grant | None:
        code = self._codes.pop(form.get("code", ""), None)  # once
        if code is None or code.until < time.time():
            return None
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if base64.urlsafe_b64encode(digest).decode().rstrip("=") != code.challenge:
            self.violations.append("PKCE")
            return None
        if (form.get("client_id"), form.get("redirect_uri")) != (code.client, code.redirect):
            self.violations.append("another client or redirect_uri")
            return None
        if form.get("resource", "") != code.resource:
            self.violations.append("another resource")
            return None
        return _Grant(client=code.client, resource=code.resource)

    def _of_refresh(self, form: dict[str, str]) -> _Grant | None:
        token = form.get("refresh_token", "")
        grant = self._refresh.get(token)
        if grant is None or grant.revoked or grant.client != form.get("client_id"):
            return None
        if token != grant.refresh:
            grant.revoked = True  # used twice: somebody has stolen it
            self.violations.append("a refresh token was used twice")
            return None
        return grant

    def _given(self, grant: _Grant) -> dict[str, Any]:
        access, refresh = f"at-{secrets.token_urlsafe(24)}", f"rt-{secrets.token_urlsafe(24)}"
        self._access[access] = grant, time.time() + self.lasts
        given = {"access_token": access, "token_type": "Bearer", "expires_in": int(self.lasts)}
        if "no-refresh" not in self.habits:
            grant.refresh = refresh
            self._refresh[refresh] = grant
            given["refresh_token"] = refresh
        return given

    async def _introspect(self, request: web.Request) -> web.Response:
        grant, until = self._access.get(request.query.get("token", ""), (None, 0.0))
        active = grant is not None and not grant.revoked and until > time.time()
        return web.json_response({"active": active, "resource": grant.resource if grant else ""})

    async def _resource(self, request: web.Request) -> web.Response:
        named = "http://127.0.0.1:9/mcp" if "other-resource" in self.habits else f"{self.url}/mcp"
        return web.json_response({"resource": named, "authorization_servers": [f"{self.url}/"]})

    async def _guarded(self, request: web.Request) -> web.Response:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        grant, until = self._access.get(token, (None, 0.0))
        known = grant is not None and not grant.revoked and until > time.time() and "never-satisfied" not in self.habits
        if not known and "no-login" not in self.habits:
            where = f'Bearer resource_metadata="{self.url}/.well-known/oauth-protected-resource/mcp"'
            return web.Response(status=401, headers={"WWW-Authenticate": where})
        return web.json_response({"jsonrpc": "2.0", "id": (await request.json())["id"], "result": {}})

    def _wrong(self, why: str) -> web.Response:
        self.violations.append(why)
        return web.Response(status=400, text=why)


async def _endless(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"Content-Type": "application/json"})
    await answer.prepare(request)
    try:
        await answer.write(b'{"access_token":"')
        for _ in range(1_600):
            await answer.write(b"x" * 65_536)
    except (ConnectionError, asyncio.CancelledError):
        pass
    return answer
