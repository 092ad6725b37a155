"""Meta is asked to call, again after what it asks for, and once a subscription is as it should be, no more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from adapters.whatsapp.platform import WhatsAppSettings
from adapters.whatsapp.subscription import Subscription
from gateway.runtime.errors import AdapterError, RateLimited
from tests.support.fakes import ManualClock

URL = "https://bot.example/wa"


class Meta:
    """An app "9" with an account "7", as Meta's API tells of it; `troubles` are raised by the next calls."""

    token = "t"

    def __init__(self) -> None:
        self.troubles: list[Exception] = []
        self.posts: list[tuple[str, dict[str, Any]]] = []
        self.told: dict[str, Any] = {
            "app": {"id": "9"},
            "9/subscriptions": {"data": []},
            "7/subscribed_apps": {"data": []},
            "debug_token": {
                "data": {"granular_scopes": [{"scope": "whatsapp_business_messaging", "target_ids": ["7"]}]}
            },
        }

    async def __call__(self, method: str, path: str, *, token: str = "", params: Any = None) -> Any:
        if self.troubles:
            raise self.troubles.pop(0)
        if method == "POST":
            self.posts.append((path, params or {}))
        return self.told.get(path, {})


@pytest.fixture
def kept(clock: ManualClock) -> Callable[[Meta], Subscription]:
    settings = WhatsAppSettings(number="1", token="t", secret="s", url=URL)  # type: ignore[arg-type]
    return lambda meta: Subscription(meta, settings, clock, "shown")  # type: ignore[arg-type]


async def test_meta_is_asked_again_after_a_while_and_no_sooner_than_it_wants(
    kept: Callable[[Meta], Subscription], clock: ManualClock
) -> None:
    meta = Meta()
    meta.troubles = [AdapterError("away"), RateLimited("slow down", retry_after=60.0), AdapterError("away")]
    keeping = asyncio.create_task(kept(meta).keep())
    for pause in (1.0, 60.0, 4.0):
        await clock.settle()
        assert clock.pending == (pause,)
        await clock.advance(pause)
    assert [path for path, _ in meta.posts] == ["9/subscriptions", "7/subscribed_apps"]
    assert clock.pending[0] > 60.0, "then it looks now and then"
    keeping.cancel()
    await asyncio.wait([keeping])


@pytest.mark.parametrize(
    ("webhook", "fields"),
    [
        ({}, "messages"),
        ({"callback_url": "https://old.example", "fields": [{"name": "calls"}]}, "calls,messages"),
        ({"callback_url": URL, "fields": [{"name": "calls"}]}, "calls,messages"),
        ({"callback_url": URL, "fields": [{"name": "messages"}]}, None),
    ],
)
async def test_only_what_is_not_as_it_should_be_is_set(
    kept: Callable[[Meta], Subscription], webhook: dict[str, Any], fields: str | None
) -> None:
    meta = Meta()
    meta.told["9/subscriptions"]["data"] = [{"object": "page"}, {"object": "whatsapp_business_account", **webhook}]
    meta.told["7/subscribed_apps"]["data"] = [{"whatsapp_business_api_data": {"id": 9}}]
    await kept(meta)._settle()
    wanted = {"object": "whatsapp_business_account", "callback_url": URL, "fields": fields, "verify_token": "shown"}
    assert meta.posts == ([] if fields is None else [("9/subscriptions", wanted)])
