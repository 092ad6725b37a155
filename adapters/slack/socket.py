"""Socket Mode: https://docs.slack.dev/apis/events-api/using-socket-mode

Slack sends an envelope until it is acknowledged, over any connection. It says goodbye a while before it ends a
connection, so that the next one is open by then. The library's own loop takes its pauses from real time, carries out
every envelope in a task of its own, and cannot say since when Slack is out of reach: so the loop is written anew here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import aiohttp
import structlog

from adapters.slack.calls import APPS, SlackCalls, code_of, is_auth, mapped
from adapters.slack.platform import SlackSettings
from gateway.runtime.backoff import Backoff
from gateway.runtime.clock import Clock
from gateway.runtime.errors import AdapterError, DeliveryRefused

log = structlog.get_logger(__name__)

SILENT_SECONDS: Final = 45.0  # without a word from Slack, which is asked for one every 15
_HANDSHAKE_SECONDS: Final = 20.0
_CLOSING_SECONDS: Final = 1.0
_LATE_WORDS: Final = 10.0  # seconds for which a connection that Slack gives up is read on

Heard = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any] | None]]
"""`await heard(type, payload)`: what an envelope brought is stored, and gives what its acknowledgement says."""


class _Refused(AdapterError):
    """Slack opens no connection for this token."""


class SocketMode:
    """One connection at a time, but for a moment. `begun(missed)` is called for each; `missed`: there was none before,
    so that Slack may have given events up. `unreached_since`: as of `TellsReach`."""

    def __init__(
        self,
        calls: SlackCalls,
        settings: SlackSettings,
        clock: Clock,
        *,
        heard: Heard,
        begun: Callable[[bool], None],
        silence: float,
    ) -> None:
        assert settings.app_token is not None, "the configuration sees to it that there is one"
        self._token, self._proxy = settings.app_token.get_secret_value().strip(), settings.proxy
        self._calls, self._clock = calls, clock
        self._heard, self._begun, self._silence = heard, begun, silence
        self._tasks: set[asyncio.Task[None]] = set()
        self._backoff = Backoff(1.0, 30.0)
        self.unreached_since: float | None = None
        self.connected_at: float | None = None

    async def keep(self) -> None:
        """Read until cancelled. Raises AdapterError if Slack does not take the token."""
        missed = True
        try:
            while True:
                missed = await self._one(missed=missed)
        finally:
            self.connected_at = None
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def address(self) -> str:
        """Where the next connection can be made. Raises AdapterError."""
        try:
            return str((await self._calls("apps.connections.open", self._token))["url"])
        except AdapterError as error:
            if is_auth(error) or isinstance(error, DeliveryRefused):
                raise _Refused(
                    f"Slack rejects app_token ({code_of(error)}). Make an App-Level Token with the scope "
                    f"connections:write at {APPS} (page Basic Information), and switch Socket Mode on."
                ) from error
            raise

    async def _one(self, *, missed: bool) -> bool:
        """One connection from its beginning to its end, or to Slack's goodbye. Returns whether there is none now."""
        try:
            async with self._clock.limit(_HANDSHAKE_SECONDS):
                address = await self.address()
                link = await self._calls.http.ws_connect(address, proxy=self._proxy, heartbeat=self._silence / 3)
        except (AdapterError, aiohttp.ClientError, OSError) as error:
            found = error if isinstance(error, AdapterError) else mapped(error)
            if isinstance(found, _Refused):
                raise
            self.unreached_since, self.connected_at = self.unreached_since or self._clock.monotonic(), None
            wait = max(self._backoff.pause(), getattr(found, "retry_after", 0.0))
            log.warning("slack_unreachable", error=str(found), again_in=wait)
            await self._clock.sleep(wait)
            return True
        leaves = False
        try:
            leaves = await self._read(link, missed=missed)
        finally:
            if not leaves:
                self.connected_at = None
                with suppress(TimeoutError, aiohttp.ClientError, OSError):
                    async with self._clock.limit(_CLOSING_SECONDS):
                        await link.close()
        if leaves:
            self._start(self._read_late(link))
        elif self.unreached_since is not None:  # it said nothing, not even hello
            await self._clock.sleep(self._backoff.pause())
        return not leaves

    async def _read(self, link: aiohttp.ClientWebSocketResponse, *, missed: bool) -> bool:
        """Read a connection. Returns whether Slack said goodbye and continues sending for a while."""
        self.unreached_since = self.unreached_since or self._clock.monotonic()
        while True:
            said = await self._received(link)
            if said is None:
                log.info("slack_closed", code=link.close_code)
                return False
            match said.get("type"):
                case "hello":
                    self.unreached_since, self.connected_at = None, self._clock.now()
                    self._backoff.reset()
                    self._begun(missed)
                case "disconnect" if said.get("reason") == "link_disabled":
                    raise AdapterError(f"Socket Mode is switched off for this app. Switch it on at {APPS}.")
                case "disconnect":
                    log.info("slack_reconnects", reason=said.get("reason"))
                    return self.connected_at is not None
                case kind if "envelope_id" in said:
                    self._take(link, str(kind), said)

    async def _received(self, link: aiohttp.ClientWebSocketResponse) -> dict[str, Any] | None:
        """The next thing that was said; None: the connection ended."""
        async for message in link:
            if message.type is aiohttp.WSMsgType.TEXT:
                with suppress(ValueError):
                    said = json.loads(message.data)
                    if isinstance(said, dict):
                        return said
        return None

    async def _read_late(self, link: aiohttp.ClientWebSocketResponse) -> None:
        """What Slack still sends over a connection that it gives up."""
        with suppress(TimeoutError, aiohttp.ClientError, OSError):
            async with self._clock.limit(_LATE_WORDS):
                while (said := await self._received(link)) is not None:
                    if "envelope_id" in said:
                        self._take(link, str(said.get("type")), said)
        with suppress(aiohttp.ClientError, OSError):
            await link.close()

    def _take(self, link: aiohttp.ClientWebSocketResponse, kind: str, envelope: dict[str, Any]) -> None:
        """Hand over what an envelope holds: in the order of receipt up to the first await."""
        self._start(self._acknowledge(link, envelope, self._heard(kind, envelope.get("payload") or {})))

    async def _acknowledge(
        self, link: aiohttp.ClientWebSocketResponse, envelope: dict[str, Any], stored: Awaitable[dict[str, Any] | None]
    ) -> None:
        said = await stored
        answer: dict[str, Any] = {"envelope_id": envelope["envelope_id"]}
        if said and envelope.get("accepts_response_payload"):
            answer["payload"] = said
        with suppress(aiohttp.ClientError, OSError):  # Slack sends it again, and it is known then
            await link.send_json(answer)

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
