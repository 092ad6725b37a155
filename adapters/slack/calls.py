"""Calls of Slack's Web API, and their errors as the gateway's: what is certain, what is not, and what is final.

https://docs.slack.dev/apis/web-api: an error comes with status 200 and a word. Slack counts the calls of each method by
itself, those of chat.postMessage for each channel, and says how long a method is to rest.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack.platform import SlackSettings
from gateway.runtime.backoff import Rests
from gateway.runtime.clock import Clock
from gateway.runtime.connections import NEVER_LEFT, seconds_in, trusting
from gateway.runtime.errors import AdapterError, Ambiguous, ChatGone, DeliveryRefused, Disconnected, RateLimited

APPS: Final = "https://api.slack.com/apps"
UNKNOWN_TOKEN: Final = (
    f"Slack rejects this bot's token ({{}}). Copy the Bot User OAuth Token from {APPS} (page OAuth & Permissions) "
    "into config.yaml."
)
Foreign = (SlackApiError, aiohttp.ClientError, OSError)  # TimeoutError is one

_AUTH: Final = (
    "invalid_auth",
    "not_authed",
    "account_inactive",
    "token_revoked",
    "token_expired",
    "not_allowed_token_type",
)
_GONE: Final = {
    "channel_not_found": "the channel does not exist, or the bot may not see it: invite the bot",
    "not_in_channel": "the bot is not in this channel: invite it with /invite",
    "is_archived": "the channel is archived",
    "restricted_action": "the workspace lets only some members write in this channel",
    "user_not_found": "there is no such person in the workspace",
    "user_disabled": "the person's account is closed",
    "cannot_dm_bot": "the person is a bot",
    "messages_tab_disabled": f"the app takes no direct messages: switch on the Messages Tab at {APPS}, page App Home",
}
_FAILED: Final = ("internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org")
_REST: Final = 30.0  # seconds, where Slack does not say how long
_CONNECTIONS: Final = 32


class SlackCalls:
    """The calls of one bot. `patience`: seconds for an answer."""

    def __init__(self, settings: SlackSettings, clock: Clock, *, patience: float) -> None:
        assert settings.token is not None, "the configuration sees to it that there is one"
        self.token = settings.token.get_secret_value().strip()
        self._clock, self._patience = clock, patience
        where = settings.base_url or AsyncWebClient.BASE_URL
        self.client = AsyncWebClient(self.token, where, proxy=settings.proxy, ssl=trusting(), retry_handlers=[])
        self._rests = Rests(platform="Slack", clock=clock)  # of methods, and of channels in which one posts

    @property
    def http(self) -> aiohttp.ClientSession:
        """The connections."""
        if self.client.session is None or self.client.session.closed:
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._patience, sock_read=self._patience)
            connector = aiohttp.TCPConnector(limit=_CONNECTIONS, ssl=trusting())
            self.client.session = aiohttp.ClientSession(
                timeout=timeout, connector=connector, cookie_jar=aiohttp.DummyCookieJar()
            )
        return self.client.session

    async def __call__(self, method: str, token: str | None = None, **arguments: Any) -> Mapping[str, Any]:
        """The answer of a method. `token`: another than the bot's. Raises AdapterError."""
        data, _ = await self.with_headers(method, token, **arguments)
        return data

    async def with_headers(
        self, method: str, token: str | None = None, **arguments: Any
    ) -> tuple[Mapping[str, Any], Mapping[str, str]]:
        """The same, with the headers of the answer."""
        place = f"{method} {arguments.get('channel', '') if method == 'chat.postMessage' else ''}"
        self._rests.check(place)
        _ = self.http
        given = {name: value for name, value in arguments.items() if value is not None}
        form = {name: value if isinstance(value, str) else json.dumps(value) for name, value in given.items()}
        headers = {"Authorization": f"Bearer {token}"} if token else None
        try:
            async with self._clock.limit(self._patience):
                answer = await self.client.api_call(method, headers=headers, data=form)
        except Foreign as error:
            found = mapped(error)
            self._rests.heard(place, found)
            raise found from error
        assert isinstance(answer.data, dict), "an answer that is no JSON is an error"
        return answer.data, answer.headers

    async def aclose(self) -> None:
        """Close the connections. A call after this opens others."""
        if self.client.session is not None:
            await self.client.session.close()


def code_of(error: BaseException | None) -> str:
    """Slack's word for the error of a call; "" if there is none."""
    cause = error.__cause__ if isinstance(error, AdapterError) else error
    data = getattr(getattr(cause, "response", None), "data", None)
    return str(data.get("error", "")) if isinstance(data, dict) else ""


def mapped(error: BaseException) -> AdapterError:
    """The gateway's error for a call that ended with `error`."""
    if isinstance(error, SlackApiError):
        return _refusal(error)
    if isinstance(error, NEVER_LEFT):
        return Disconnected(f"Slack cannot be reached ({_named(error)}). Check the network.")
    return Ambiguous(f"Slack's answer was lost ({_named(error)}).")


def _refusal(error: SlackApiError) -> AdapterError:
    response = error.response
    status = getattr(response, "status_code", 0) or getattr(response, "status", 0)
    code = code_of(error)
    if status == 429 or code in ("ratelimited", "rate_limited", "message_limit_exceeded"):
        wait = seconds_in(response.headers, _REST)
        return RateLimited(f"Slack asks to wait {wait:.0f} s", retry_after=max(1.0, wait))
    if status >= 500 or not code or code in _FAILED:
        return Ambiguous(f"Slack did not say whether the request worked ({code or status}).")
    if code == "missing_scope":
        needed = str(response.data.get("needed", "")).replace(",", ", ")
        return DeliveryRefused(
            f"the bot lacks the scope {needed}: add it at {APPS}, page OAuth & Permissions, Bot Token Scopes, and "
            "reinstall the app there"
        )
    if code in _AUTH:
        return AdapterError(UNKNOWN_TOKEN.format(code))
    if code in _GONE:
        return ChatGone(_GONE[code])
    return DeliveryRefused(f"Slack says {code}")


def is_auth(error: AdapterError) -> bool:
    """Whether Slack does not know the token."""
    return code_of(error) in _AUTH


def _named(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"{error.host}: {error.strerror}"
    if isinstance(error, aiohttp.ClientResponseError):  # its text holds the address, which may be a secret
        return f"{error.status} {error.message}"
    return str(error) or ("no answer in time" if isinstance(error, asyncio.TimeoutError) else type(error).__name__)
