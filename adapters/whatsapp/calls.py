"""Calls of the Graph API, and their errors as the gateway's: what is certain, what is not, and what is final.

https://developers.facebook.com/documentation/business-messaging/whatsapp/support/error-codes: an error has a code, by
which alone it is to be judged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from adapters.whatsapp.limits import LARGEST_FETCHED
from adapters.whatsapp.platform import WhatsAppSettings
from gateway.runtime import errors
from gateway.runtime.connections import Answer, ApiCalls, too_large
from gateway.runtime.errors import AdapterError, Ambiguous, ChatGone, DeliveryRefused, FileRefused, repeatable

APPS: Final = "https://developers.facebook.com/apps"
GONE: Final = "WhatsApp no longer has the file"
WINDOW_CLOSED: Final = (
    "nobody has written here for 24 hours, so WhatsApp accepts only an approved template; name a template in "
    "adapters.whatsapp.template"
)
INVALID: Final = (100, 131008, 131009)  # something in the message is not as it must be

_SERVER: Final = "https://graph.facebook.com/v25.0/"
_FILES: Final = ("fbsbx.com", "facebook.com", "whatsapp.net")  # hosts that have files, and may see the token
_TOKEN: Final = (0, 190, 463, 467)
_UNKNOWN_TOKEN: Final = (
    "Meta rejects the token in adapters.whatsapp ({}). Make a token for a system user at "
    "https://business.facebook.com/settings/system-users, and put it into the configuration."
)
_NO_RIGHT: Final = (
    "The token in adapters.whatsapp lacks a permission ({}). Make a token with whatsapp_business_messaging and "
    "whatsapp_business_management at https://business.facebook.com/settings/system-users."
)
_CLOSED: Final[Mapping[int, str]] = {
    131021: "this is the bot's own number",
    131026: "the person cannot be reached: they have no WhatsApp, an old version of it, or blocked the bot",
    131030: f"a test number writes only to numbers on its list: add this one at {APPS}, WhatsApp, API Setup, To",
    131047: WINDOW_CLOSED,
    131049: "for now, WhatsApp does not let businesses send this person more messages",
    131050: "the person has refused messages of this kind",
}
_LOCKED: Final[Mapping[int, str]] = {
    368: "Meta has blocked the account for breaking Meta's rules. See https://business.facebook.com/accountquality.",
    131031: "Meta has locked the account. See https://business.facebook.com/accountquality.",
    131042: "The account has no payment method. Add a payment method at https://business.facebook.com/billing_hub.",
    133010: f"The number is not registered. Register the number at {APPS}, WhatsApp, API Setup.",
}
_RESTS: Final[Mapping[int, float]] = {4: 60.0, 80007: 60.0, 130429: 2.0, 131048: 600.0, 131056: 6.0, 131064: 60.0}
_SOON: Final = 5.0  # seconds
_LATER: Final = (1, 2, 131000, 131016, 131057, 133004)
_UPLOAD_SECONDS: Final = 300.0

Json = Mapping[str, Any]


class GraphError(Exception):
    """What the Graph API says of a call that it refuses."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class GraphCalls:
    """The calls of one app. `patience`: seconds for an answer."""

    def __init__(self, settings: WhatsAppSettings, *, patience: float) -> None:
        assert settings.token is not None, "the configuration sees to it that there is one"
        self.token = settings.token.get_secret_value().strip()
        self._server = (settings.base_url or _SERVER).rstrip("/") + "/"
        self._patience = patience
        self._calls = ApiCalls("Meta", proxy=settings.proxy)

    async def __call__(
        self, method: str, path: str, body: Any = None, *, token: str = "", patience: float = 0.0, **how: Any
    ) -> Json:
        """The answer to a call. `token`: one other than the bot's; `how`: as in httpx. Raises AdapterError."""
        if body is not None:
            how |= {"content": json.dumps(body, ensure_ascii=False).encode(errors="replace")}
            how |= {"headers": {"Content-Type": "application/json"}}
        answer = await self._asked(method, self._server + path, token, patience, **how)
        status, told = answer.status, answer.told
        if not told:
            if status < httpx.codes.INTERNAL_SERVER_ERROR and status != httpx.codes.OK:
                raise AdapterError(f"Something between this machine and Meta answered {status}.")
            raise Ambiguous(f"Meta did not say whether the request worked ({status}).")
        if status != httpx.codes.OK or "error" in told:
            refuse(told.get("error") or {}, status)
        return told

    async def upload(self, number: str, name: str, mime: str, content: bytes) -> str:
        """The id of a file that Meta keeps now. Nobody sees it yet, so no error of it is ambiguous."""
        form = {"messaging_product": "whatsapp", "type": mime}
        file = {"file": (name, content, mime)}
        try:
            told = await self("POST", f"{number}/media", data=form, files=file, patience=_UPLOAD_SECONDS)
        except AdapterError as error:
            raise repeatable(error) from error
        return str(told["id"])

    async def download(self, media: str) -> bytes:
        """A file's content. Raises FileRefused, or another AdapterError if another try may succeed."""
        try:
            told = await self("GET", media)
        except AdapterError as error:
            raise FileRefused(GONE) if code_of(error) in INVALID else error from error
        if int(told.get("file_size") or 0) > LARGEST_FETCHED:
            raise too_large(LARGEST_FETCHED)
        address = str(told["url"])  # for five minutes
        host, own = urlsplit(address).hostname or "", urlsplit(self._server).hostname
        if host != own and not host.endswith(tuple(f".{each}" for each in _FILES)):
            raise FileRefused(GONE)
        status, _, content = await self._asked("GET", address, "", 0.0, most=LARGEST_FETCHED)
        if status in (400, 401, 403, 404, 410):
            raise FileRefused(GONE)
        if status != httpx.codes.OK:
            raise AdapterError(f"Meta's file server answered {status}")
        return content

    async def _asked(self, method: str, address: str, token: str, patience: float, **how: Any) -> Answer:
        headers = {**how.pop("headers", {}), "Authorization": f"Bearer {token or self.token}"}
        return await self._calls(method, address, patience=patience or self._patience, headers=headers, **how)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._calls.aclose()


def refuse(told: Json, status: int = 400) -> None:
    """Raise the gateway's error for an error of Meta's."""
    code, details = int(told.get("code", -1)), str((told.get("error_data") or {}).get("details") or "")
    said = details or str(told.get("error_user_msg") or told.get("message") or told.get("title") or f"status {status}")
    raise _mapped(code, f"{said.rstrip('.')}, {code}", told, status) from GraphError(code, said)


def _mapped(code: int, said: str, told: Json, status: int) -> AdapterError:
    if code in _TOKEN or status == httpx.codes.UNAUTHORIZED:
        return AdapterError(_UNKNOWN_TOKEN.format(said))
    if code in (3, 10) or 200 <= code < 300:
        return AdapterError(_NO_RIGHT.format(said))
    if code in _RESTS or status == httpx.codes.TOO_MANY_REQUESTS:
        pause = _RESTS.get(code, 60.0)
        return errors.RateLimited(f"WhatsApp asks to wait ({said})", retry_after=pause, everywhere=code != 131056)
    if code in _CLOSED:
        return ChatGone(_CLOSED[code])
    if 132000 <= code < 133000:  # what it would have said waits until the person writes
        return ChatGone(f"WhatsApp refuses the template of adapters.whatsapp.template ({said})")
    if code in _LOCKED:
        return AdapterError(_LOCKED[code])
    if code == 100 and told.get("error_subcode") == 33:
        return AdapterError(f"The token in adapters.whatsapp has no access to that number or file ({said}).")
    if code in _LATER or status >= httpx.codes.INTERNAL_SERVER_ERROR:
        return AdapterError(f"WhatsApp could not do this right now ({said}).")
    return DeliveryRefused(f"WhatsApp says: {said}")


def passing(told: Json) -> float | None:
    """The seconds after which a message may be sent again that a status says failed; None: it would fail again."""
    code = int(told.get("code", -1))
    return _RESTS.get(code, _SOON if code in _LATER else None)


def code_of(error: BaseException) -> int:
    """Meta's code for an error; 0: it has none."""
    return getattr(error.__cause__, "code", 0)


def in_words(told: Json) -> tuple[str, bool]:
    """An error that a status tells, and whether nothing reaches the person any more."""
    try:
        refuse(told)
    except AdapterError as error:
        return str(error), isinstance(error, ChatGone)
    raise AssertionError("it raises")
