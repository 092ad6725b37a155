"""Whether Meta calls the bot: the app's webhook, and the app's subscription to the business account of the numbers.

https://developers.facebook.com/docs/graph-api/reference/app/subscriptions. Both are set at the start, and looked after.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

import structlog

from adapters.whatsapp.calls import APPS, GraphCalls
from adapters.whatsapp.platform import WhatsAppSettings
from gateway.domain.adapter import Finding
from gateway.runtime.backoff import Backoff
from gateway.runtime.clock import Clock
from gateway.runtime.errors import AdapterError

log = structlog.get_logger(__name__)

_OBJECT: Final = "whatsapp_business_account"
_FIELD: Final = "messages"
_RIGHTS: Final = ("whatsapp_business_messaging", "whatsapp_business_management")
_LOOK_SECONDS: Final = 3_600.0
_TOKENS: Final = "https://business.facebook.com/settings/system-users"
_TEMPLATES: Final = "https://business.facebook.com/wa/manage/message-templates"

Json = Mapping[str, Any]


class Subscription:
    """The app's subscriptions. `verify_token`: what Meta shows when it tries the address."""

    def __init__(self, calls: GraphCalls, settings: WhatsAppSettings, clock: Clock, verify_token: str) -> None:
        assert settings.secret is not None, "the configuration sees to it that there is one"
        self._calls, self._settings, self._clock, self._verify = calls, settings, clock, verify_token
        self._secret = settings.secret.get_secret_value().strip()

    async def keep(self) -> None:
        """Keep Meta calling, until cancelled."""
        backoff = Backoff(1.0, 300.0)
        while True:
            try:
                await self._settle()
                backoff.reset()
                wait = _LOOK_SECONDS
            except AdapterError as error:
                wait = max(backoff.pause(), getattr(error, "retry_after", 0.0))
                log.error("webhook_not_set", error=str(error), again_in=wait)
            await self._clock.sleep(wait)

    async def _settle(self) -> None:
        app, token = await self._app()
        webhook = await self._webhook(app, token)
        if not self._is_ours(webhook):
            fields = ",".join(sorted({_FIELD, *_fields(webhook)}))
            query = {"object": _OBJECT, "callback_url": self._settings.url, "fields": fields}
            await self._calls(
                "POST", f"{app}/subscriptions", token=token, params=query | {"verify_token": self._verify}
            )
            log.info("webhook_set", was=urlsplit(str(webhook.get("callback_url") or "")).hostname)
        for account in _accounts(await self._about_token(token)):
            if not await self._is_subscribed(account, app):
                await self._calls("POST", f"{account}/subscribed_apps")
                log.info("account_subscribed", account=account)

    # -- looks ------------------------------------------------------------------------------

    async def _app(self) -> tuple[str, str]:
        """The app's id, and its own token."""
        app = str((await self._calls("GET", "app"))["id"])
        return app, f"{app}|{self._secret}"

    async def _webhook(self, app: str, token: str) -> Json:
        listed = (await self._calls("GET", f"{app}/subscriptions", token=token)).get("data") or ()
        return next((each for each in listed if each.get("object") == _OBJECT), {})

    def _is_ours(self, webhook: Json) -> bool:
        return webhook.get("callback_url") == self._settings.url and _FIELD in _fields(webhook)

    async def _about_token(self, token: str) -> Json:
        query = {"input_token": self._calls.token}
        told: Json = (await self._calls("GET", "debug_token", token=token, params=query)).get("data") or {}
        return told

    async def _is_subscribed(self, account: str, app: str) -> bool:
        listed = (await self._calls("GET", f"{account}/subscribed_apps")).get("data") or ()
        return any(str((each.get("whatsapp_business_api_data") or {}).get("id")) == app for each in listed)

    async def findings(self) -> AsyncIterator[Finding]:
        """Say whether Meta knows the token, the numbers, the secret and the template, and whether it calls here. Raises
        AdapterError."""
        query = {"fields": "display_phone_number,verified_name,quality_rating"}
        for number in (self._settings.number, *self._settings.numbers):
            told = await self._calls("GET", str(number), params=query)
            name = f"{told.get('display_phone_number')} ({told.get('verified_name')})"
            yield Finding(what="whatsapp", ok=True, detail=f"{name}, quality {told.get('quality_rating', 'UNKNOWN')}")
        app, token = await self._app()
        try:
            webhook = await self._webhook(app, token)
        except AdapterError as error:
            detail = f"Meta rejects the secret ({error}); copy the App secret at {APPS}/{app}/settings/basic"
            yield Finding(what="whatsapp secret", ok=False, detail=detail)
            return
        so_far = f"Meta calls {urlsplit(str(webhook.get('callback_url') or 'http://nobody')).hostname}"
        right = self._is_ours(webhook)
        detail = so_far if right else f"{so_far} so far; starting Legato here changes the address"
        yield Finding(what="whatsapp webhook", ok=right or None, detail=detail)
        about = await self._about_token(token)
        if lacking := [each for each in _RIGHTS if each not in (about.get("scopes") or _RIGHTS)]:
            detail = f"the token lacks {', '.join(lacking)}; make another token at {_TOKENS}"
            yield Finding(what="whatsapp token", ok=False, detail=detail, public=True)
        if ends := int(about.get("expires_at") or 0):
            day = f"{datetime.fromtimestamp(ends, UTC):%Y-%m-%d at %H:%M} UTC"
            detail = f"the token ends on {day}; make a token that never ends at {_TOKENS}"
            yield Finding(what="whatsapp token", ok=None, detail=detail, public=True)
        for account in _accounts(about):
            if not await self._is_subscribed(account, app):
                detail = f"the account {account} does not tell the app of messages yet; starting Legato here changes it"
                yield Finding(what="whatsapp account", ok=None, detail=detail)
            if self._settings.template.name:
                yield await self._of_template(account)

    async def _of_template(self, account: str) -> Finding:
        wanted = self._settings.template
        query = {"name": wanted.name, "fields": "name,language,status"}
        listed = (await self._calls("GET", f"{account}/message_templates", params=query)).get("data") or ()
        mine = [each for each in listed if (each.get("name"), each.get("language")) == (wanted.name, wanted.language)]
        status = str(mine[0].get("status")) if mine else f"unknown in {wanted.language}"
        detail = f"{wanted.name}: {status}" + ("" if status == "APPROVED" else f"; see {_TEMPLATES}")
        return Finding(what="whatsapp template", ok=status == "APPROVED", detail=detail)


def _fields(webhook: Json) -> Sequence[str]:
    return [str(each.get("name")) for each in webhook.get("fields") or ()]


def _accounts(about: Json) -> Sequence[str]:
    """The business accounts that the token is for, as far as it says."""
    granted = [
        each.get("target_ids") or () for each in about.get("granular_scopes") or () if each.get("scope") in _RIGHTS
    ]
    return sorted({str(account) for each in granted for account in each})
