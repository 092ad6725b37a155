"""The bot's ways to get its updates: by polling, or at a webhook."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from tests.emulators.telegram.cloud import Cloud
from tests.emulators.telegram.parameters import Parameters
from tests.emulators.telegram.refusals import Refusal, bad, conflict, too_many
from tests.emulators.telegram.updates import BY_DEFAULT, LONGEST_POLL
from tests.emulators.telegram.webhook import Target

PACE: Final = 3.0  # seconds
LONGEST_SECRET: Final = 256
PORTS: Final = (80, 88, 443, 8443)
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A result with words beside it."""

    result: Any
    description: str


async def get_updates(cloud: Cloud, parameters: Parameters) -> Any:
    """`getUpdates`."""
    try:
        if cloud.webhook.target is not None:
            raise conflict(
                "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
            )
        offset = parameters.integer("offset")
        limit = parameters.integer("limit", 100, 1, 100)
        timeout = parameters.integer("timeout", 0, 0, LONGEST_POLL)
        cloud.updates.allow(parameters.structure("allowed_updates", "allowed updates"))
        limit, timeout = _paced(cloud, offset, limit, timeout)
        return [update.as_json() for update in await cloud.updates.get(offset, limit, timeout)]
    except Refusal:
        await _slow_down(cloud)
        raise


def _paced(cloud: Cloud, offset: int, limit: int, timeout: int) -> tuple[int, int]:
    """A poll that repeats the last one too soon gets less, and waits."""
    now = cloud.clock.monotonic()
    if cloud.settings.pacing and offset == cloud.poll_offset:
        timeout = max(timeout, int(PACE)) if now < cloud.poll_at + PACE else timeout
        limit = 1 if now < cloud.poll_at + 0.5 else limit
    cloud.poll_offset, cloud.poll_at = offset, now
    return limit, timeout


async def _slow_down(cloud: Cloud) -> None:
    """The second of two conflicts within three seconds is told three seconds later."""
    now = cloud.clock.monotonic()
    if cloud.settings.pacing and now < cloud.conflict_at:
        await cloud.clock.sleep(PACE)
    else:
        cloud.conflict_at = now + PACE


def set_webhook(cloud: Cloud, parameters: Parameters) -> Any:
    """`setWebhook`. As with a Bot API server of one's own, plain HTTP is taken on the same machine."""
    url = parameters.text("url")
    if not url:
        return delete_webhook(cloud, parameters)
    now = cloud.clock.monotonic()
    if cloud.settings.pacing and now < cloud.webhook_set_at + 1:
        raise too_many(1)
    cloud.webhook_set_at = now
    target = _target(parameters, url)
    cloud.updates.interrupt(conflict("terminated by setWebhook request"))
    if parameters.flag("drop_pending_updates"):
        cloud.updates.clear()
    cloud.updates.allow(parameters.structure("allowed_updates", "allowed updates"))
    if cloud.webhook.target == target:
        return Told(result=True, description="Webhook is already set")
    cloud.webhook.set(target)
    return Told(result=True, description="Webhook was set")


def _target(parameters: Parameters, url: str) -> Target:
    try:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        raise bad("invalid webhook URL specified") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise bad("invalid webhook URL specified")
    secret = parameters.text("secret_token")
    if len(secret) > LONGEST_SECRET:
        raise bad("secret token is too long")
    if not re.fullmatch(r"[A-Za-z0-9_-]*", secret):
        raise bad("secret token contains unallowed characters")
    if parts.hostname not in LOOPBACK:
        if parts.scheme != "https":
            raise bad("bad webhook: An HTTPS URL must be provided for webhook")
        if port not in PORTS:
            raise bad("bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443")
        raise bad("bad webhook: Failed to resolve host: Name or service not known")
    connections = parameters.integer("max_connections", 40, 1, 100)
    certificate = bool(parameters.file("certificate"))
    return Target(url=parts.geturl(), secret=secret, max_connections=connections, certificate=certificate)


def delete_webhook(cloud: Cloud, parameters: Parameters) -> Any:
    """`deleteWebhook`."""
    if parameters.flag("drop_pending_updates"):
        cloud.updates.clear()
    had_one = cloud.webhook.target is not None
    cloud.webhook.remove()
    return Told(result=True, description="Webhook was deleted" if had_one else "Webhook is already deleted")


def get_webhook_info(cloud: Cloud, parameters: Parameters) -> Any:
    """`getWebhookInfo`."""
    info = cloud.webhook.info()
    return info if cloud.updates.allowed == BY_DEFAULT else {**info, "allowed_updates": sorted(cloud.updates.allowed)}


METHODS: Final = {
    "getUpdates": get_updates,
    "setWebhook": set_webhook,
    "deleteWebhook": delete_webhook,
    "getWebhookInfo": get_webhook_info,
}
