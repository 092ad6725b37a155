"""A bot that Telegram calls: over loopback, by the emulated Telegram and by whoever else finds the door."""

from __future__ import annotations

import asyncio
import io
import json
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from adapters.telegram.adapter import TelegramAdapter, TelegramBot
from adapters.telegram.endpoint import MOST_BYTES, SECRET_HEADER, WebhookEndpoint
from adapters.telegram.platform import Webhook
from adapters.telegram.webhook import WebhookAdapter
from gateway.domain.adapter import Accepted
from gateway.domain.chat import Inbound
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.points import Point
from tests.emulators.telegram import Refuse, Settings, TelegramServer
from tests.emulators.telegram.webhook import Target
from tests.support.fakes import ManualClock
from tests.support.fast_clock import FastClock
from tests.support.hosts import host
from tests.support.redis_server import free_port
from tests.support.serving import serving
from tests.support.telegram_live import Bot, on_telegram, settings_on
from tests.support.waiting import eventually

SECRET = "a-secret-of-some-length"


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    """Telegram without its limits."""
    async with TelegramServer(limits=None, clock=FastClock()) as server:
        yield server


@pytest.fixture
def webhook() -> dict[str, Any]:
    """Return settings with an address that Telegram may call."""
    port = free_port()
    return {"url": f"http://127.0.0.1:{port}/hook", "host": "127.0.0.1", "port": port}


def target(bot: Bot) -> Target:
    """Return the address that Telegram was given."""
    found = bot.telegram.cloud.webhook.target
    assert found is not None
    return found


async def called(bot: Bot) -> None:
    """Return when Telegram knows where to call."""
    await bot.until(lambda: bot.telegram.cloud.webhook.target)


async def test_a_bot_is_called_and_answers(tmp_path: Path, telegram: TelegramServer, webhook: dict[str, Any]) -> None:
    anna = telegram.people.person("Anna")
    async with on_telegram(tmp_path, telegram, anna, webhook=webhook) as bot:
        await called(bot)
        bot.says("hello")
        await bot.until_shown("echo: hello")
        assert target(bot).secret
        assert telegram.token not in target(bot).url + target(bot).secret
        await bot.until(lambda: not len(telegram.cloud.updates))
    assert list(telegram.journal.of("getUpdates")) == []


async def test_it_is_told_once_and_again_only_when_it_differs(
    tmp_path: Path, telegram: TelegramServer, webhook: dict[str, Any]
) -> None:
    anna = telegram.people.person("Anna")
    for secret, times in ((None, 1), (None, 1), (SECRET, 2), (SECRET, 2)):
        async with on_telegram(tmp_path, telegram, anna, webhook={**webhook, "secret": secret}) as bot:
            await bot.until(lambda: telegram.cloud.webhook.target)
            bot.says("again")
            await bot.until(lambda times=times: not len(telegram.cloud.updates))
            assert len(list(telegram.journal.of("setWebhook"))) == times
    dropped = {call.parameters.get("drop_pending_updates", "false") for call in telegram.journal.of("setWebhook")}
    assert dropped == {"false"}


async def test_what_was_said_while_it_was_down_and_in_the_other_mode_is_answered(
    tmp_path: Path, telegram: TelegramServer, webhook: dict[str, Any]
) -> None:
    anna = telegram.people.person("Anna")
    expected: list[str] = []
    for number, mode in enumerate((webhook, None, webhook, webhook)):
        telegram.people.say(telegram.people.private(anna), anna, f"while down {number}")
        async with on_telegram(tmp_path, telegram, anna, webhook=mode) as bot:
            expected.append(f"echo: while down {number}")
            await bot.until_shown(*expected)
            bot.says(f"while up {number}")
            expected.append(f"echo: while up {number}")
            await bot.until_shown(*expected)


async def test_telegram_that_cannot_be_told_yet_is_told_later(
    tmp_path: Path, telegram: TelegramServer, webhook: dict[str, Any]
) -> None:
    anna = telegram.people.person("Anna")
    telegram.faults.add(Refuse(status=502), method="setWebhook")
    async with on_telegram(tmp_path, telegram, anna, webhook=webhook) as bot:
        bot.says("hello")
        await bot.until_shown("echo: hello")


class FullDisk:
    """The store refuses the first receipts."""

    def __init__(self, times: int) -> None:
        self.times = times

    def __call__(self, point: Point) -> None:
        if point == "accept.before" and self.times:
            self.times -= 1
            raise StoreUnavailable("the disk is full")


async def test_what_cannot_be_stored_stays_with_telegram_and_is_one_turn(
    tmp_path: Path, telegram: TelegramServer, webhook: dict[str, Any]
) -> None:
    anna, disk = telegram.people.person("Anna"), FullDisk(1)
    async with on_telegram(tmp_path, telegram, anna, webhook=webhook, points=disk) as bot:
        await called(bot)
        bot.says("hello")
        await bot.until_shown("echo: hello")
        assert "503" in telegram.cloud.webhook.last_error
        assert disk.times == 0
        assert len(bot.model.requests) == 1


async def test_what_is_sent_again_after_it_was_stored_is_one_turn(
    tmp_path: Path, telegram: TelegramServer, webhook: dict[str, Any]
) -> None:
    anna = telegram.people.person("Anna")
    async with on_telegram(tmp_path, telegram, anna, webhook=webhook) as bot:
        await called(bot)
        message = bot.says("hello")
        update = {"update_id": 77, "message": message.as_json()}
        for _ in range(3):
            assert await posted(bot, webhook, update) == 200
        await bot.until(lambda: len(bot.shown()) == 2)  # as Telegram's own update, and as number 77
        await bot.quiet()
        assert len(bot.model.requests) == 2


async def posted(bot: Bot, webhook: Mapping[str, Any], update: Any, **how: Any) -> int:
    """The status that a call gets; `how` changes it from what Telegram would send."""
    headers = {SECRET_HEADER: target(bot).secret, "Content-Type": "application/json", **how.get("headers", {})}
    body = update if isinstance(update, bytes) else json.dumps(update).encode()
    url = webhook["url"].replace("/hook", how.get("path", "/hook"))
    async with (
        aiohttp.ClientSession() as http,
        http.request(how.get("method", "POST"), url, data=io.BytesIO(body), headers=headers) as response,
    ):
        assert await response.read() == b""
        return response.status


STRANGE = {"update_id": 9, "something_new": {"chat": {"id": 1}}}
FORGED = {"update_id": 9, "message": {"message_id": 1}}


@pytest.mark.parametrize(
    ("update", "how", "status"),
    [
        (FORGED, {"headers": {SECRET_HEADER: "wrong"}}, 401),
        (FORGED, {"headers": {SECRET_HEADER: "\u00fc"}}, 401),
        (FORGED, {"headers": {SECRET_HEADER: ""}}, 401),
        (FORGED, {"path": "/"}, 404),
        (FORGED, {"path": "/hook/../hook2"}, 404),
        (FORGED, {"method": "GET"}, 405),
        (FORGED, {"method": "GET", "headers": {SECRET_HEADER: ""}}, 401),
        (FORGED, {"headers": {"Content-Type": "text/plain"}}, 415),
        (b"x" * (MOST_BYTES + 1), {}, 413),
        (b"{", {}, 400),
        (b"\xff", {}, 400),
        (b"[" * 100_000, {}, 400),
        (b"[]", {}, 400),
        (b"{}", {}, 400),
        (b'{"update_id": "9"}', {}, 400),
        (STRANGE, {}, 200),
        (FORGED, {}, 200),  # Telegram's, by its secret, and of no use: it must not come again for ever
    ],
)
async def test_only_telegram_is_listened_to(
    tmp_path: Path, telegram: TelegramServer, webhook: dict[str, Any], update: Any, how: dict[str, Any], status: int
) -> None:
    anna = telegram.people.person("Anna")
    async with on_telegram(tmp_path, telegram, anna, webhook=webhook) as bot:
        await called(bot)
        assert await posted(bot, webhook, update, **how) == status
        bot.says("hello")
        await bot.until_shown("echo: hello")
        assert len(bot.model.requests) == 1


async def test_telegram_makes_as_many_calls_at_once_as_it_is_told(
    tmp_path: Path, telegram: TelegramServer, webhook: dict[str, Any]
) -> None:
    anna = telegram.people.person("Anna")
    for most in (7, 7, 8):
        async with on_telegram(tmp_path, telegram, anna, webhook={**webhook, "max_connections": most}) as bot:
            await bot.until(lambda most=most: getattr(telegram.cloud.webhook.target, "max_connections", 0) == most)
    assert len(list(telegram.journal.of("setWebhook"))) == 2


async def test_a_port_that_is_taken_is_said_with_what_to_do(tmp_path: Path, telegram: TelegramServer) -> None:
    anna = telegram.people.person("Anna")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        webhook = {"url": f"http://127.0.0.1:{port}/", "host": "127.0.0.1", "port": port}
        async with on_telegram(tmp_path, telegram, anna, webhook=webhook) as bot:
            await bot.until_ended()
            assert f"cannot listen at 127.0.0.1:{port}" in (bot.gateway.readers.failure or "")
    assert telegram.cloud.webhook.target is None


async def test_check_says_where_telegram_calls_and_what_went_wrong(
    telegram: TelegramServer, webhook: dict[str, Any]
) -> None:
    anna = telegram.people.person("Anna")

    async def said(kind: Callable[..., TelegramBot]) -> list[tuple[bool | None, str]]:
        bot = kind(settings_on(telegram, webhook=Webhook(**webhook)), host())
        try:
            found = await bot.probe()
        finally:
            await bot.aclose()
        return [(each.ok, each.detail) for each in found if each.what == "telegram webhook"]

    assert await said(TelegramAdapter) == []
    ((ok, detail),) = await said(WebhookAdapter)
    assert ok is None
    assert "no webhook is set yet" in detail
    telegram.cloud.webhook.set(Target(url=webhook["url"]))
    telegram.people.say(telegram.people.private(anna), anna, "hello")
    await eventually(lambda: telegram.cloud.webhook.last_error)
    ((ok, detail),) = await said(TelegramAdapter)
    assert ok is None
    assert "starting Legato here ends that webhook" in detail
    told = await said(WebhookAdapter)
    assert [detail.partition(" (")[0] for _, detail in told] == [
        "Telegram calls 127.0.0.1 so far; starting Legato here changes the address",
        "1 update waits to be delivered",
        "the last failure was: Connection refused",
    ]


@asynccontextmanager
async def listening(
    telegram: TelegramServer, webhook: Mapping[str, Any], clock: ManualClock
) -> AsyncIterator[WebhookAdapter]:
    """A bot that is called, without a gateway behind it."""

    async def accept(batch: Sequence[Inbound]) -> Sequence[Accepted]:
        return ()

    bot = WebhookAdapter(settings_on(telegram, webhook=Webhook(**webhook)), host(clock))
    running = asyncio.create_task(bot.run(accept))
    try:
        yield bot
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await bot.aclose()


async def test_a_webhook_that_is_taken_away_is_set_again_and_one_that_leads_elsewhere_is_left(
    telegram: TelegramServer, webhook: dict[str, Any]
) -> None:
    clock = ManualClock()
    with capture_logs() as logs:
        async with listening(telegram, webhook, clock):
            await eventually(lambda: 300.0 in clock.pending)
            first = telegram.cloud.webhook.target
            telegram.cloud.webhook.remove()
            await clock.advance(300)
            await eventually(lambda: 300.0 in clock.pending)
            assert telegram.cloud.webhook.target == first
            elsewhere = Target(url="http://127.0.0.1:9/another?token=x")
            telegram.cloud.webhook.set(elsewhere)
            await clock.advance(300)
            await eventually(lambda: 300.0 in clock.pending)
            assert telegram.cloud.webhook.target == elsewhere
    assert [line["host"] for line in logs if line["event"] == "webhook_elsewhere"] == ["127.0.0.1"]


async def test_who_tells_telegram_too_soon_after_another_waits_as_long_as_it_says(webhook: dict[str, Any]) -> None:
    async with TelegramServer(Settings(pacing=True), limits=None) as telegram:
        clock = ManualClock()
        telegram.cloud.webhook_set_at = telegram.cloud.clock.monotonic()  # another process just did
        async with listening(telegram, webhook, clock):
            await eventually(lambda: 1.0 in clock.pending)
            assert telegram.cloud.webhook.target is None
            telegram.cloud.webhook_set_at -= 1.0
            await clock.advance(1)
            await eventually(lambda: telegram.cloud.webhook.target)
        assert len(list(telegram.journal.of("setWebhook"))) == 2


async def test_who_polls_ends_a_webhook_that_fails_and_leaves_one_that_works(
    tmp_path: Path, telegram: TelegramServer, webhook: dict[str, Any]
) -> None:
    anna, taken = telegram.people.person("Anna"), list[dict[str, Any]]()

    async def take(update: dict[str, Any]) -> None:
        taken.append(update)

    another = WebhookEndpoint(
        host="127.0.0.1", port=webhook["port"], path="/hook", secret=SECRET, clock=SystemClock(), take=take
    )
    async with on_telegram(tmp_path, telegram, anna) as bot, aiohttp.ClientSession() as http:
        bot.says("hello")
        await bot.until_shown("echo: hello")
        async with serving(another):  # say, a process of the other mode that has not ended yet
            told = {"url": webhook["url"], "secret_token": SECRET}
            async with http.post(f"{telegram.base_url}{telegram.token}/setWebhook", json=told) as answer:
                assert answer.status == 200
            bot.says("is anybody there?")
            await bot.until(lambda: taken)
            await bot.until(lambda: len(list(telegram.journal.of("getWebhookInfo"))) > 1)
            assert target(bot).url == webhook["url"]
        bot.says("and now?")
        await bot.until_shown("echo: hello", "echo: and now?")
        assert telegram.cloud.webhook.target is None
