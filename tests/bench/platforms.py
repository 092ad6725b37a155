"""Bots on Discord, Slack and WhatsApp: 200 chats at once, what each costs beside the gateway and beside a bot that is
made of the library alone, and what enabling it adds. `telegram` and `matrix` have benches of their own.

A platform and its person are a process of their own (`people`); the model takes no time. CPU is that of this process:
of the whole gateway with the bot, of the gateway alone (with an adapter that does nothing), and of a program that reads
by the library, shows that it types where it would be seen, and answers. What is left is the adapter's own. Weight and
start are those of a fresh interpreter. `python -m tests.bench.platforms slack` measures that one alone, with
`--profile` where the time of its gateway goes.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import hashlib
import hmac
import json
import pstats
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import httpx
from aiohttp import web
from httpx_aiohttp import HttpxAiohttpClient
from pydantic import SecretStr
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from adapters.discord.adapter import DiscordAdapter
from adapters.discord.platform import DiscordSettings
from adapters.slack.adapter import SlackAdapter
from adapters.slack.platform import SlackSettings
from adapters.whatsapp.adapter import WhatsAppBot
from adapters.whatsapp.platform import WhatsAppSettings
from gateway.domain.adapter import Adapter
from gateway.runtime.heap import collect_seldom
from tests.bench.table import Row, Rows, milliseconds, render
from tests.bench.telegram import EACH, ROUNDS, STARTS, People, Spent, gateway_alone, loaded, platform
from tests.bench.telegram_people import MOST
from tests.bench.world import REPLY, bot, log_as_in_production, quiet
from tests.support.hosts import host
from tests.support.redis_server import free_port

TITLE = "Bots on platforms; model at 0 ms, durable SQLite, each server in a process of its own"
_GOAL: Final = 200.0  # answered messages a second


@dataclass(frozen=True, slots=True, kw_only=True)
class _Platform:
    """How a bot is made, and what answers by the library alone; None: nothing does here."""

    title: str
    made: Callable[[People], Adapter]
    alone: Callable[[People], Any] | None = None


def _discord(people: People) -> Adapter:
    settings = DiscordSettings(token=SecretStr(people.token), base_url=people.base_url, listen="free", quoted=0)
    return DiscordAdapter(settings, host())


def _slack(people: People) -> Adapter:
    token, app_token = map(SecretStr, people.token.split())
    settings = SlackSettings(token=token, app_token=app_token, base_url=people.base_url, listen="free", quoted=0)
    return SlackAdapter(settings, host(), paced=False)


def _whatsapp(people: People) -> Adapter:
    token, secret, number = people.token.split()
    port = free_port()
    settings = WhatsAppSettings(
        number=number,
        token=SecretStr(token),
        secret=SecretStr(secret),
        url=f"http://127.0.0.1:{port}/whatsapp",
        port=port,
        base_url=people.base_url,
    )
    return WhatsAppBot(settings, host(), paced=False)


@asynccontextmanager
async def _slack_alone(people: People) -> AsyncIterator[None]:
    """slack_sdk's own loop for Socket Mode, and its client."""
    token, app_token = people.token.split()
    client = AsyncWebClient(token, people.base_url)
    me = (await client.auth_test())["user_id"]
    socket = SocketModeClient(app_token, web_client=client)

    async def answer(_: Any, request: SocketModeRequest) -> None:
        await socket.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))
        event = request.payload["event"]
        if event.get("type") == "message" and event.get("user") not in (None, me):
            await client.chat_postMessage(channel=event["channel"], text=REPLY)

    socket.socket_mode_request_listeners.append(answer)  # type: ignore[arg-type]
    await socket.connect()
    try:
        yield
    finally:
        await socket.disconnect()
        await socket.close()


@asynccontextmanager
async def _whatsapp_alone(people: People) -> AsyncIterator[None]:
    """aiohttp, as server and behind httpx: there is no library of Meta's."""
    (token, secret, number), base = people.token.split(), people.base_url.rstrip("/")
    head = {"Authorization": f"Bearer {token}"}
    limits = httpx.Limits(max_connections=64)
    answers = set[asyncio.Task[None]]()

    async def answer(message: dict[str, Any]) -> None:
        path, common = f"{base}/{number}/messages", {"messaging_product": "whatsapp"}
        seen = {"status": "read", "message_id": message["id"], "typing_indicator": {"type": "text"}}
        await client.post(path, json={**common, **seen}, headers=head)
        said = {"to": message["from"], "type": "text", "text": {"body": REPLY}}
        await client.post(path, json={**common, "recipient_type": "individual", **said}, headers=head)

    async def called(request: web.BaseRequest) -> web.Response:
        if request.method == "GET":
            return web.Response(text=request.query.get("hub.challenge", ""))
        body = await request.read()
        signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        assert request.headers["X-Hub-Signature-256"] == f"sha256={signature}"
        for change in (each for entry in json.loads(body)["entry"] for each in entry["changes"]):
            for message in change["value"].get("messages", ()):
                task = asyncio.create_task(answer(message))
                answers.add(task)
                task.add_done_callback(answers.discard)
        return web.Response()

    runner = web.ServerRunner(web.Server(called))  # type: ignore[arg-type]
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    async with HttpxAiohttpClient(limits=limits, timeout=60.0) as client:
        app = (await client.get(f"{base}/app", headers=head)).json()["id"]
        own = {"Authorization": f"Bearer {app}|{secret}"}
        query = {"object": "whatsapp_business_account", "fields": "messages", "verify_token": "any"}
        query["callback_url"] = f"http://127.0.0.1:{port}/whatsapp"
        (await client.post(f"{base}/{app}/subscriptions", params=query, headers=own)).raise_for_status()
        told = await client.get(f"{base}/debug_token", params={"input_token": token}, headers=own)
        for account in told.json()["data"]["granular_scopes"][0]["target_ids"]:
            (await client.post(f"{base}/{account}/subscribed_apps", headers=head)).raise_for_status()
        try:
            yield
        finally:
            await runner.cleanup()


PLATFORMS: Final = {
    "discord": _Platform(title="Discord", made=_discord),
    "slack": _Platform(title="Slack", made=_slack, alone=_slack_alone),
    "whatsapp": _Platform(title="WhatsApp", made=_whatsapp, alone=_whatsapp_alone),
}


async def measure(names: Sequence[str] = tuple(PLATFORMS)) -> Rows:
    """For each: rates, then CPU, then weights."""
    host = median(each.each for each in (await gateway_alone())[1:])
    rows = [Row("gateway alone: CPU a message", milliseconds(host))]
    for name in names:
        rows += await _of(name, host)
    return rows


async def _of(name: str, host: float) -> Rows:
    kind = PLATFORMS[name]
    async with platform("tests.bench.people", name) as people, bot(kind.made(people)) as gateway:
        ours = await _rounds(people, lambda: quiet(gateway))
    whole, rate = (median(getattr(each, what) for each in ours) for what in ("each", "rate"))
    rows = [
        Row(f"{kind.title}: {MOST} chats, no limits", f"{rate:,.0f}/s", f"goal ≥ {_GOAL:.0f}/s"),
        Row(f"on {kind.title}: CPU a message", milliseconds(whole), "", whole / host, "the gateway alone"),
    ]
    if kind.alone is not None:
        async with platform("tests.bench.people", name) as people, kind.alone(people):
            library = await _rounds(people, _at_once)
        bare = median(each.each for each in library)
        rows += [
            Row(f"the library of {kind.title} alone: CPU a message", milliseconds(bare)),
            Row("on it, beside library and gateway", milliseconds(whole - bare - host), "goal ≤ 1 ms"),
        ]
    with_bot = [loaded(f"adapters.{name}.adapter") for _ in range(STARTS)]
    without = [loaded("gateway") for _ in range(STARTS)]
    seconds, weight = (median(one[k] for one in with_bot) - median(one[k] for one in without) for k in (0, 1))
    return [
        *rows,
        Row(f"enabling {kind.title}: start", f"{seconds:+.2f} s", "goal ≤ 0.5 s"),
        Row(f"enabling {kind.title}: memory", f"{weight:+.0f} MB", "goal ≤ 30 MB"),
    ]


async def _rounds(people: People, rest: Callable[[], Awaitable[None]]) -> list[Spent]:
    """All but the first, which opens connections."""
    return [await people.talk(EACH, rest) for _ in range(ROUNDS)][1:]


async def _at_once() -> None:
    """Nothing is left to be done."""


async def _profiled(name: str) -> None:
    """Print where the time of the gateway with a bot goes."""
    kind, profile = PLATFORMS[name], cProfile.Profile()
    async with platform("tests.bench.people", name) as people, bot(kind.made(people)) as gateway:
        await people.talk(1, lambda: quiet(gateway))
        with profile:
            await people.talk(EACH, lambda: quiet(gateway))
    pstats.Stats(profile).sort_stats("tottime").print_stats(45)


def main() -> None:
    """Measure what is named."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.platforms", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*PLATFORMS, []], help="default: all")
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    given = parser.parse_args()
    collect_seldom()
    log_as_in_production()
    for name in given.names if given.profile else ():
        asyncio.run(_profiled(name))
    if not given.profile:
        print(render(TITLE, asyncio.run(measure(given.names or tuple(PLATFORMS)))))


if __name__ == "__main__":
    main()
