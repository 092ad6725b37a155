"""Calls of a server's client-server API (https://spec.matrix.org/v1.15/client-server-api/), and the login.

A login by password is noted for all processes: they are one device, for which the server keeps transaction ids. Where
the server has ended it, the next call logs in anew, as the same device where the server still knows that.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import httpx
import structlog

from adapters.matrix.limits import LARGEST_FETCHED
from adapters.matrix.platform import MatrixSettings
from gateway.domain.adapter import Notebook
from gateway.runtime import errors
from gateway.runtime.connections import Answer, ApiCalls, seconds_in
from gateway.runtime.errors import AdapterError, Ambiguous, DeliveryRefused, FileRefused, StoreUnavailable

log = structlog.get_logger(__name__)

_CLIENT: Final = "/_matrix/client/v3"
_SESSION: Final = "session"  # the note of the login
_UPLOAD_SECONDS: Final = 300.0
_PAUSE: Final = 5.0  # seconds, where a server asks for one and does not say how long
_GONE: Final = ("M_FORBIDDEN", "M_NOT_FOUND")


class Refusal(DeliveryRefused):
    """The server refused a call. `code`: why, in the words of the specification."""

    def __init__(self, status: int, told: Mapping[str, Any]) -> None:
        super().__init__(str(told.get("error") or f"the server says {status}"))
        self.code = str(told.get("errcode") or "")
        self.session = str(told.get("session") or "")  # of a call that wants the password once more


class SignedOut(AdapterError):
    """The server does not know the bot."""


class Homeserver:
    """The bot's server. `notebook` is set before the first call, where there is one. `patience`: seconds for an answer
    to a call."""

    def __init__(self, settings: MatrixSettings, *, patience: float) -> None:
        assert settings.user is not None, "the configuration sees to it that there is one"
        self.user = settings.user
        self.notebook: Notebook | None = None
        self._password = settings.password.get_secret_value() if settings.password else None
        self._given = self._token = settings.token.get_secret_value() if settings.token else ""
        self._device, self._keeps = "", settings.encryption  # its keys are good for one device
        self._address = (settings.homeserver or "").rstrip("/")
        self._entering = asyncio.Lock()
        self._patience = patience
        hint = "check the network, and homeserver in adapters.matrix"
        self._calls = ApiCalls(hint=hint, proxy=None)

    async def call(
        self,
        method: str,
        *path: str,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        patience: float | None = None,
    ) -> Any:
        """The answer to a call. Raises AdapterError: Refusal where the server refuses it."""
        content = None if body is None else json.dumps(body, ensure_ascii=False).encode(errors="replace")
        way = "/".join((_CLIENT, *(quote(each, safe="") for each in path)))
        return _read(await self._authorized(method, way, content=content, params=query, patience=patience))

    async def confirmed(self, *path: str, body: Mapping[str, Any]) -> Any:
        """The answer to a call for which a server may want the password once more. Raises AdapterError."""
        try:
            return await self.call("POST", *path, body=body)
        except Refusal as error:
            if not error.session or self._password is None:
                raise
            return await self.call("POST", *path, body={**body, "auth": {**self._login, "session": error.session}})

    async def show(self, room: str, kind: str, row: str, body: Any) -> str:
        """Send an event to a room, once for each `row`; returns its id. Raises AdapterError: ChatGone where the bot may
        show nothing."""
        try:
            return str((await self.call("PUT", "rooms", room, "send", kind, row, body=body))["event_id"])
        except Refusal as error:
            if error.code in _GONE:
                raise errors.ChatGone(f"the bot may not write in this room ({error})") from error
            raise

    async def upload(self, name: str, mime: str, content: bytes) -> str:
        """The address of a file that is stored on the server now."""
        headers, query = {"Content-Type": mime or "application/octet-stream"}, {"filename": name}
        way, patience = "/_matrix/media/v3/upload", _UPLOAD_SECONDS
        answer = await self._authorized("POST", way, content=content, params=query, headers=headers, patience=patience)
        return str(_read(answer)["content_uri"])

    async def download(self, address: str) -> bytes:
        """A file's content. Raises FileRefused, or another AdapterError if another try may succeed."""
        named = "/".join(quote(each, safe="") for each in address.removeprefix("mxc://").split("/", 1))
        answer = await self._authorized("GET", f"/_matrix/client/v1/media/download/{named}", most=LARGEST_FETCHED)
        if answer.status in (403, 404, 410):
            raise FileRefused("the server no longer has the file")
        if answer.status != httpx.codes.OK:
            raise AdapterError(f"the server's file store answered {answer.status}")
        return answer.content

    async def aclose(self) -> None:
        await self._calls.aclose()

    # -- the login --------------------------------------------------------------------------

    async def _authorized(self, method: str, way: str, **how: Any) -> Answer:
        if not self._address:
            async with self._entering:
                self._address = self._address or await self._found()
        if not self._token:
            await self._have_another("", "")
        token = self._token
        answer = await self._asked(method, way, token=token, **how)
        if answer.status == httpx.codes.UNAUTHORIZED and answer.told.get("errcode") == "M_UNKNOWN_TOKEN":
            await self._have_another(token, self._device if self._keeps or answer.told.get("soft_logout") else "")
            answer = await self._asked(method, way, token=self._token, **how)
        return answer

    async def _have_another(self, former: str, device: str) -> None:
        try:
            await self._sign_in(former, device)
        except StoreUnavailable as error:  # of the notes
            raise AdapterError(f"Legato cannot read or store its login right now. {error}") from error

    async def _sign_in(self, former: str, device: str) -> None:
        """Have another token than the `former` one, which may be another call's or process's."""
        async with self._entering:
            if self._token != former or await self._is_noted(former):
                return
            if self._password is None:
                raise SignedOut(
                    f"The server does not know the token of {self.user}. Put a new token into adapters.matrix.token."
                )
            log.info("matrix_signs_in", user=self.user)
            body = {**self._login, "initial_device_display_name": "Legato", **({"device_id": device} if device else {})}
            answer = await self._asked("POST", f"{_CLIENT}/login", token="", content=json.dumps(body).encode())
            if answer.status == httpx.codes.FORBIDDEN:
                why = f"{answer.told.get('error')}). Check user and password in adapters.matrix."
                raise SignedOut(f"The server does not let {self.user} in ({why}")
            told = _read(answer)
            self._token, self._device = told["access_token"], told["device_id"]
            if self.notebook is not None:
                noted = {"user": self.user, "token": self._token, "device": self._device}
                await self.notebook.write({_SESSION: json.dumps(noted)})

    @property
    def _login(self) -> dict[str, Any]:
        who = {"type": "m.id.user", "user": self.user}
        return {"type": "m.login.password", "identifier": who, "password": self._password}

    async def _is_noted(self, former: str) -> bool:
        """Take over the login that a process has noted; say whether there is another than the former one."""
        noted = json.loads((await self.notebook.read()).get(_SESSION) or "{}") if self.notebook else {}
        if self._given or noted.get("token", former) == former or noted.get("user") != self.user:
            return False
        self._token, self._device = noted["token"], noted["device"]
        return True

    async def leave(self) -> None:
        """End a login that nobody noted."""
        if not self._given and self.notebook is None:
            await self.call("POST", "logout", body={})

    async def _found(self) -> str:
        """The server's address, as the server of the bot's id names it."""
        host = f"https://{self.user.partition(':')[2]}"
        way = f"{host}/.well-known/matrix/client"
        told = (await self._asked("GET", way, token="", follow_redirects=True)).told
        return str((told.get("m.homeserver") or {}).get("base_url") or host).rstrip("/")

    # -- one request ------------------------------------------------------------------------

    async def _asked(
        self,
        method: str,
        way: str,
        *,
        token: str,
        patience: float | None = None,
        headers: Mapping[str, str] | None = None,
        **how: Any,
    ) -> Answer:
        sent = {"Content-Type": "application/json", "Authorization": f"Bearer {token}", **(headers or {})}
        address = f"{self._address}{way}"
        return await self._calls(method, address, patience=patience or self._patience, headers=sent, **how)


def _read(answer: Answer) -> Any:
    told = answer.told
    match answer.status:
        case status if status < httpx.codes.MULTIPLE_CHOICES:
            return told
        case httpx.codes.TOO_MANY_REQUESTS:
            asked = told.get("retry_after_ms")
            given = seconds_in(answer.headers, _PAUSE)
            seconds = max(0.1, asked / 1000.0) if isinstance(asked, int) else given
            raise errors.RateLimited(f"The server asks to wait {seconds:.0f} s", retry_after=seconds, everywhere=True)
        case httpx.codes.UNAUTHORIZED if "flows" not in told:
            raise SignedOut(f"The server rejects the bot: {told.get('error') or 'its token is wrong'}.")
        case status if status >= httpx.codes.INTERNAL_SERVER_ERROR:
            raise Ambiguous(f"The server did not say whether the request worked ({status}).")
        case status if not {"errcode", "flows"} & told.keys():  # a page of somebody on the way
            raise AdapterError(f"Something between this machine and the server answered {status}.")
    raise Refusal(answer.status, told)
