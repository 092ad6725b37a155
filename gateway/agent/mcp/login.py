"""Logins at hosted servers, by OAuth. The library's provider finds the authorization server, registers, checks PKCE,
`state` and `iss`; this module keeps what came of it.

A connection only uses and renews what is kept: it never asks anybody. An `Attempt` asks: it gives the link, and waits
for the address to which the browser was sent at the end. Nobody needs to answer there: the person pastes it.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from msgspec import Struct, field
from pydantic import AnyUrl, BaseModel

from gateway.agent.mcp.address import AddressClient, bounded, hush
from gateway.agent.mcp.server import LOG_IN, LoginFailed, reason_of
from gateway.agent.mcp.settings import McpServerSettings
from gateway.domain.chat import one_line
from gateway.runtime import posix
from gateway.runtime.addresses import is_public, literal
from gateway.runtime.clock import Clock
from gateway.runtime.errors import UserError
from gateway.runtime.owners import private

Learn = Callable[[Sequence[str]], None]

_EARLY: Final = 30.0  # seconds before its end at which an access token is renewed
_STEP: Final = 10.0  # seconds for one answer of an authorization server
_PERSON: Final = 900.0  # seconds for a login
_MACHINE: Final = 60.0  # seconds for what no person does in it
_LONGEST: Final = 300  # characters of a reason
_LOST: Final = (400, 401)  # a renewal that is refused for good
_PING: Final = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
_HEADERS: Final = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
_KEPT: Final[dict[str, type[BaseModel]]] = {  # of the library's context
    "client_info": OAuthClientInformationFull,
    "current_tokens": OAuthToken,
    "oauth_metadata": OAuthMetadata,
    "protected_resource_metadata": ProtectedResourceMetadata,
}


class Login(OAuthClientProvider):
    """Lets requests to one server in. With an `attempt` a person is asked. `learn` is told every secret."""

    def __init__(
        self, path: Path, settings: McpServerSettings, clock: Clock, learn: Learn, attempt: Attempt | None = None
    ) -> None:
        about = OAuthClientMetadata(redirect_uris=[AnyUrl(settings.redirect)], client_name="Legato")
        asks = (attempt.show, attempt.wait) if attempt else ()
        super().__init__(settings.url or "", about, self, *asks)
        self._path, self._settings, self._clock, self._learn = path, settings, clock, learn
        self._asks, self._seen = attempt is not None, 0  # when its file was written that was read last

    # -- what is kept, which is the library's storage, too ----------------------------------

    async def get_tokens(self) -> OAuthToken | None:
        return self.context.current_tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        given = self._settings
        if given.client_id is None:
            return self.context.client_info
        secret = given.client_secret.get_secret_value() if given.client_secret else None
        how = "client_secret_post" if secret else "none"
        return OAuthClientInformationFull(
            client_id=given.client_id, client_secret=secret, token_endpoint_auth_method=how
        )

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        pass  # kept with the tokens: a registration without a login is of no use

    async def set_tokens(self, tokens: OAuthToken) -> None:
        context = self.context
        if tokens.expires_in is not None:
            context.token_expiry_time = max(1.0, self._clock.now() + tokens.expires_in - _EARLY)
        models = {name: getattr(context, name) for name in _KEPT}
        kept: dict[str, Any] = {name: each.model_dump(mode="json") for name, each in models.items() if each}
        self._write({**kept, "place": self._settings.url, "until": context.token_expiry_time})
        self._teach()

    def _write(self, kept: dict[str, Any]) -> None:
        made = self._path.with_suffix(f".{secrets.token_hex(4)}")
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(made, "w", encoding="utf-8", opener=private) as file:
            json.dump(kept, file)
        made.replace(self._path)
        self._seen = self._path.stat().st_mtime_ns

    def _look(self) -> None:
        """Take up what is kept, also by another process that has renewed it meanwhile."""
        with suppress(OSError, ValueError):
            if (changed := self._path.stat().st_mtime_ns) == self._seen:
                return
            kept = json.loads(self._path.read_bytes())
            if kept.get("place") == self._settings.url:
                for name, kind in _KEPT.items():
                    setattr(self.context, name, kind.model_validate(kept[name]) if name in kept else None)
                self.context.token_expiry_time, self._seen = kept["until"], changed
                self._teach()

    def _teach(self) -> None:
        tokens, client = self.context.current_tokens, self.context.client_info
        known = (tokens and tokens.access_token, tokens and tokens.refresh_token, client and client.client_secret)
        self._learn([each for each in known if each])

    # -- requests ---------------------------------------------------------------------------

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Let a request in. Where nobody is asked, an access that was refused is renewed once."""
        renewed = False
        while True:
            async with self._alone():
                flow = super().async_auth_flow(request)
                try:
                    outgoing = await anext(flow)
                    while self._asks or outgoing is not request:
                        if outgoing is request:
                            outgoing = await flow.asend((yield request))
                        else:
                            renewed = True
                            outgoing = await flow.asend(await self._checked((yield await self._allowed(outgoing))))
                except StopAsyncIteration:
                    return
                finally:
                    await flow.aclose()  # it would hold up the server's other requests until this one is answered
            response = yield request
            if renewed or response.status_code != httpx2.codes.UNAUTHORIZED or not self.context.can_refresh_token():
                return
            bounded(response)  # the client reads it before it goes on
            self.context.token_expiry_time, renewed = 1.0, True  # whatever was said before

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Know what is kept; and let no other process renew it meanwhile, for a second renewal would end the login."""
        if self._asks:
            yield
            return
        self._look()
        if self.context.is_token_valid() or not self.context.can_refresh_token():
            yield
            return
        with await asyncio.to_thread(open, self._path.with_suffix(".lock"), "w", opener=private) as lock:
            await asyncio.to_thread(posix.lock, lock)
            self._look()
            yield

    async def _allowed(self, request: httpx2.Request) -> httpx2.Request:
        """A request of the login's own, which the server may have sent anywhere. Raises LoginFailed."""
        request.extensions["timeout"] = httpx2.Timeout(_STEP).as_dict()
        to, ours = request.url, httpx2.URL(self._settings.url or "")
        if (to.host, to.port) != (ours.host, ours.port) and ours.scheme == "https":
            if to.scheme != "https":
                raise LoginFailed(f"its login leads to {to.host} without encryption")
            if await _is_public(ours.host) and not await _is_public(to.host):
                raise LoginFailed(f"its login leads to {to.host}, which is not on the public internet")
        return request

    async def _checked(self, response: httpx2.Response) -> httpx2.Response:
        """An answer of an authorization server, within the limits. Raises LoginFailed where it ends the login."""
        if not self._asks and response.status_code != httpx2.codes.OK:
            await response.aclose()
            if response.status_code not in _LOST:
                raise LoginFailed(f"its login cannot be renewed now (HTTP {response.status_code})")
            self._path.unlink(missing_ok=True)
            raise LoginFailed(f"its login is no longer valid; {LOG_IN.format(server=self._path.stem)}")
        return bounded(response)


def _future() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


class Attempt(Struct, eq=False, kw_only=True):
    """One attempt to log in. `link` is for the person, `back` what they came back with; `done` says at the end what
    went wrong, or ""."""

    path: Path
    settings: McpServerSettings
    clock: Clock
    learn: Learn
    link: asyncio.Future[str] = field(default_factory=_future)
    back: asyncio.Future[AuthorizationCodeResult] = field(default_factory=_future)
    done: asyncio.Future[str] = field(default_factory=_future)

    async def run(self) -> None:
        """Log in, whatever the library and both servers do."""
        hush()
        reason = "it was ended"
        try:
            reason = await reason_of(self._tried())
        finally:
            line = reason.partition("\n")[0]  # further ones repeat what came, secrets included
            self.done.set_result(f"The login failed: {one_line(self.settings.hidden(line), _LONGEST)}." if line else "")

    async def _tried(self) -> str:
        login = Login(self.path, self.settings, self.clock, self.learn, self)
        try:
            async with (
                self.clock.limit(_PERSON),
                AddressClient("", self.settings, login) as client,
                client.stream("POST", self.settings.url or "", json=_PING, headers=_HEADERS) as response,
            ):
                return "" if self.link.done() else f"the server asks for no login (HTTP {response.status_code})"
        except TimeoutError:
            return "it took too long"

    async def show(self, link: str) -> None:
        """The library has a link for the person."""
        self.link.set_result(link)

    async def wait(self) -> AuthorizationCodeResult:
        """The library waits for the person."""
        return await self.back

    async def given(self) -> str:
        """The link for the person. Raises UserError."""
        await self._within(self.link)
        return self.link.result()

    async def came_back(self, address: str) -> None:
        """Take the address to which the browser was sent, and end the login with it. Raises UserError."""
        found = {name: values[-1] for name, values in parse_qs(address.strip("<> ").partition("?")[2]).items()}
        state = parse_qs(urlsplit(self.link.result()).query)["state"][0]
        if not secrets.compare_digest(found.get("state", "").encode(), state.encode()):
            raise UserError("This address does not belong to this login. Copy the whole address of the last page.")
        if "code" not in found:
            said = one_line(found.get("error_description") or found.get("error") or "no code", _LONGEST)
            raise UserError(f"The server refused the login: {said}.")
        self.learn([found["code"]])
        if not self.back.done():
            self.back.set_result(AuthorizationCodeResult(code=found["code"], state=state, iss=found.get("iss")))
        await self._within(self.done)

    async def _within(self, wanted: asyncio.Future[str]) -> None:
        """Wait for one of both, or for the end. Raises UserError."""
        with suppress(TimeoutError):
            async with self.clock.limit(_MACHINE):
                await asyncio.wait([wanted, self.done], return_when=asyncio.FIRST_COMPLETED)
        if self.done.done() and (failed := self.done.result()):
            raise UserError(failed)
        if not wanted.done():
            raise UserError("The login failed, because the authorization server does not answer.")


async def _is_public(host: str) -> bool:
    """Whether all that a host leads to is on the public internet; nothing that cannot be looked up is."""
    if (address := literal(host.strip("[]"))) is not None:
        return is_public(address)
    with suppress(OSError):
        places = await asyncio.get_running_loop().getaddrinfo(host, 443, type=socket.SOCK_STREAM)
        found = [literal(str(place[4][0])) for place in places]
        return bool(found) and all(each is not None and is_public(each) for each in found)
    return False
