"""The bot that Telegram calls. Telegram may call any process, so all of them listen and none owns the account.

Telegram does not show the secret that it was given. So a hash of the secret stands in the webhook's address, and shows
whether the secret has changed; then the webhook is set again. Without the token the hash says nothing.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import structlog
from telegram import WebhookInfo
from telegram.error import InvalidToken, RetryAfter, TelegramError

from adapters.telegram import failures
from adapters.telegram.adapter import TelegramBot
from adapters.telegram.endpoint import WebhookEndpoint
from adapters.telegram.platform import TelegramSettings
from adapters.telegram.receiving import WANTED, troubles
from adapters.telegram.updates import read
from gateway.domain.adapter import Accept, Finding
from gateway.domain.platform import AdapterHost
from gateway.runtime.backoff import Backoff
from gateway.runtime.tasks import Crew

log = structlog.get_logger(__name__)

_LOOK_SECONDS: Final = 300.0  # between two looks at whether Telegram still calls here


class WebhookAdapter(TelegramBot):
    """A bot that Telegram calls, as `settings.webhook` says. A secret that is made of the token is the same for all
    processes. `how`: as of `TelegramBot`."""

    def __init__(self, settings: TelegramSettings, host: AdapterHost, **how: Any) -> None:
        super().__init__(settings, host, **how)
        webhook = settings.webhook
        assert settings.token is not None, "the configuration sees to it that there is one"
        assert webhook.url is not None, "the configuration sees to it that there is one"
        token = settings.token.get_secret_value()
        secret = webhook.secret.get_secret_value() if webhook.secret else _digest(token, "the secret of its webhook")
        self._url = f"{webhook.url}{'&' if '?' in webhook.url else '?'}v={_digest(token, secret)[:12]}"
        self._secret = secret
        self._most = webhook.max_connections
        self._endpoint = WebhookEndpoint(
            host=webhook.host,
            port=webhook.port,
            path=webhook.path or urlsplit(webhook.url).path or "/",
            secret=secret,
            clock=host.clock,
            take=lambda document: self._receiver.store([read(document)]),
        )

    async def run(self, accept: Accept) -> None:
        """Listen until cancelled. Raises AdapterError if the port is taken or Telegram does not know the token."""
        crew = Crew()
        try:
            self._receiver.begin(accept, await self._introduced())
            async with self._menu_set():
                crew.start(self._endpoint.serve(lambda: crew.start(self._keep_called())))
                await crew.work()
        except InvalidToken as error:
            raise failures.mapped(error) from error

    async def _keep_called(self) -> None:
        """Keep the webhook set, until cancelled. Raises InvalidToken."""
        settled, backoff = False, Backoff(1.0, 30.0)
        while True:
            try:
                await self._settle(await self._bot.get_webhook_info(), is_first=not settled)
                settled = True
                backoff.reset()
                await self._clock.sleep(_LOOK_SECONDS)
            except InvalidToken:
                raise
            except RetryAfter as error:  # several processes set the webhook at once
                await self._clock.sleep(failures.seconds_asked(error))
            except TelegramError as error:
                wait = backoff.pause()
                log.error("webhook_not_set", error=error.message, again_in=wait)
                await self._clock.sleep(wait)

    async def _settle(self, told: WebhookInfo, *, is_first: bool) -> None:
        """Set the webhook, unless Telegram has it. A webhook that another program set later is only reported: two
        programs would overwrite each other's for ever."""
        if not self._differs(told):
            for trouble in () if is_first else troubles(told, since=self._clock.now() - _LOOK_SECONDS):
                log.warning("webhook_fails", error=trouble, waiting=told.pending_update_count)
        elif told.url and not is_first:
            log.warning("webhook_elsewhere", host=urlsplit(told.url).hostname)
        else:
            await self._bot.set_webhook(
                self._url,
                secret_token=self._secret,
                allowed_updates=list(WANTED),
                drop_pending_updates=False,
                max_connections=self._most,
            )
            log.info("webhook_set", was=urlsplit(told.url).hostname)

    def _differs(self, told: WebhookInfo) -> bool:
        same = (told.url, told.max_connections or self._most) == (self._url, self._most)
        return not same or set(told.allowed_updates) != set(WANTED)

    def _of_reading(self, webhook: WebhookInfo) -> Sequence[Finding]:
        if not webhook.url:
            detail = "no webhook is set yet; starting Legato here sets one, and ends polling by another program"
        elif self._differs(webhook):
            detail = f"Telegram calls {urlsplit(webhook.url).hostname} so far; starting Legato here changes the address"
        else:
            detail = f"Telegram calls {urlsplit(self._url).hostname}"
        found = [Finding(what="telegram webhook", ok=None if self._differs(webhook) else True, detail=detail)]
        if webhook.pending_update_count:
            waiting = webhook.pending_update_count
            detail = f"{waiting:,} {'update waits' if waiting == 1 else 'updates wait'} to be delivered"
            found.append(Finding(what="telegram webhook", ok=None, detail=detail))
        failed = (f"the last failure was: {trouble}" for trouble in troubles(webhook, since=0.0))
        return [*found, *(Finding(what="telegram webhook", ok=None, detail=detail) for detail in failed)]


def _digest(token: str, text: str) -> str:
    return hmac.new(token.encode(), text.encode(), "sha256").hexdigest()
