"""The ways by which Slack reaches the bot: signed requests, and Socket Mode as the library reads it."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import closing
from functools import partial
from pathlib import Path

import aiohttp
from pydantic import SecretStr
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from tests.emulators.slack import Flood, SlackServer
from tests.emulators.slack.delivery import signed
from tests.support.fast_clock import FastClock
from tests.support.model import PATIENCE, FakeModel, Gate, Say, in_turn
from tests.support.slack_live import on_slack


def free_port() -> int:
    """A port that nobody has."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


async def test_slack_calls_the_bot_and_nobody_else_can(tmp_path: Path) -> None:
    async with SlackServer(limited=False) as slack:
        anna, port = slack.people.person("Anna"), free_port()
        slack.settings.request_url = url = f"http://127.0.0.1:{port}/slack/events"
        slack.settings.retries = (0.0, 0.2, 0.5)
        secret = SecretStr(slack.settings.signing_secret)
        rules = {"mode": "http", "http": {"port": port, "secret": secret}}
        slack.people.say(slack.people.direct(anna), anna, "one")  # nobody listens yet
        async with on_slack(tmp_path, slack, anna, rules=rules) as bot:
            await bot.until_shown("echo: one")
            command = slack.people.command(bot.chat, anna, "/legato", "version")
            await bot.until(lambda: len(bot.shown()) == 2)
            assert command.acknowledged.is_set()
            body = json.dumps({"type": "url_verification", "challenge": "abc"})
            now = slack.clock.now()
            wrong = [{}, signed("another secret", body, now), signed(slack.settings.signing_secret, body, now - 400.0)]
            wrong.append({**wrong[1], "X-Slack-Signature": "v0=é"})
            async with aiohttp.ClientSession() as stranger:
                for headers in wrong:
                    headers = {"Content-Type": "application/json", **headers}
                    async with stranger.post(url, data=body, headers=headers) as refused:
                        assert refused.status == 401
                right = {"Content-Type": "application/json", **signed(slack.settings.signing_secret, body, now)}
                async with stranger.post(url, data=body, headers=right) as taken:
                    assert await taken.json() == {"challenge": "abc"}
        assert [str(each) for each in slack.violations] == []


async def test_the_librarys_own_reader_understands_the_emulator() -> None:
    async with SlackServer() as slack:
        web = AsyncWebClient(slack.settings.token, slack.api_url)
        client = SocketModeClient(slack.settings.app_token, web_client=web, ping_interval=0.05)
        heard: asyncio.Queue[str] = asyncio.Queue()

        async def listen(own: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
            await own.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))
            heard.put_nowait(request.payload["event"]["text"])

        client.socket_mode_request_listeners.append(listen)
        anna = slack.people.person("Anna")
        chat = slack.people.direct(anna)
        try:
            async with asyncio.timeout(PATIENCE):
                await client.connect()
                slack.people.say(chat, anna, "one")
                assert await heard.get() == "one"
                await slack.delivery.goodbye()
                slack.people.say(chat, anna, "two")
                assert await heard.get() == "two"
            answer = await web.chat_postMessage(channel=chat.id, text="three")
            await web.chat_update(channel=chat.id, ts=answer["ts"], text="four")
            uploaded = await web.files_upload_v2(channel=chat.id, content="notes", filename="notes.txt")
            assert uploaded["ok"]
            assert [each.text for each in slack.shown(chat)] == ["four", ""]
        finally:
            await client.close()
        assert not slack.violations


async def test_it_rests_where_slack_asks(tmp_path: Path) -> None:
    clock = FastClock()
    async with SlackServer(clock=clock) as slack:
        anna, ben = slack.people.person("Anna"), slack.people.person("Ben")
        async with on_slack(tmp_path, slack, anna, clock=clock, paced=True, allow=(f"slack:{ben.id}",)) as bot:
            slack.faults.add(Flood(seconds=5), method="chat.postMessage")
            began = clock.monotonic()
            bot.says("one")
            await bot.until(lambda: list(slack.journal.of("chat.postMessage")))
            slack.people.say(slack.people.direct(ben), ben, "two")  # the others go on
            await bot.until_shown("echo: two", chat=slack.people.direct(ben))
            await bot.until_shown("echo: one")
            assert clock.monotonic() - began >= 5
            assert [call.status for call in slack.journal.of("chat.postMessage", bot.chat.id)] == [429, 200]
        assert [str(each) for each in slack.violations] == []


async def test_looking_for_what_was_missed_leaves_calls_for_what_is_said(tmp_path: Path) -> None:
    clock = FastClock(40.0)
    async with SlackServer(clock=clock) as slack:
        anna = slack.people.person("Anna")
        places = [slack.people.channel(f"room{number}", anna) for number in range(70)]
        looks = partial(slack.journal.of, "conversations.history")
        async with on_slack(tmp_path, slack, anna, clock=clock, paced=True) as bot:
            asked = bot.says("@Legato hello", places[-1])
            await bot.until(lambda: slack.shown(places[-1], asked))
            assert len({call.chat_id for call in looks()}) < len(places), "it looks everywhere first"
            await bot.until(lambda: {each.id for each in places} <= {call.chat_id for call in looks()})
        assert {call.status for call in looks()} == {200}


class _Jumping(FastClock):
    """Time that can be put forward."""

    ahead = 0.0

    def now(self) -> float:
        return super().now() + self.ahead


async def test_an_answer_that_took_a_while_does_not_wait_for_a_look_that_must_rest(tmp_path: Path) -> None:
    clock, gate = _Jumping(), Gate()
    async with SlackServer(clock=clock, limited=False) as slack:
        anna = slack.people.person("Anna")
        async with on_slack(
            tmp_path, slack, anna, clock=clock, model=FakeModel(in_turn(Say(text="Yes", gate=gate)))
        ) as bot:
            bot.says("Well?")
            await gate.until_waiting()
            clock.ahead = 60.0
            slack.faults.add(Flood(seconds=3_600), method="conversations.history")
            gate.open()
            await bot.until_shown("Yes")
        assert any(call.status == 429 for call in slack.journal.of("conversations.history"))
