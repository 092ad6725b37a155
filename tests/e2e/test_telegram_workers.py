"""Several processes behind one address that Telegram calls, on one Redis store: the program as people run it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Reply
from tests.emulators.telegram import Chat, TelegramServer
from tests.support.model import PATIENCE
from tests.support.program import KEY, legato_run, write_config
from tests.support.redis_server import free_port, running

TOKEN = "LEGATO_TEST_TOKEN"


def called(telegram: TelegramServer, port: int) -> dict[str, Any]:
    """The entry of a bot that Telegram calls."""
    return {
        "enabled": True,
        "token": f"${{{TOKEN}}}",
        "base_url": telegram.base_url,
        "mode": "webhook",
        "webhook": {"url": f"http://127.0.0.1:{port}/hook", "port": port},
    }


async def test_what_one_process_took_another_answers_once_when_it_is_killed(tmp_path: Path) -> None:
    redis = tmp_path / "redis"
    redis.mkdir()
    gate, port = asyncio.Event(), free_port()
    async with TelegramServer(limits=None) as telegram, LlmServer(api_key=KEY) as model:
        people = [telegram.people.person(f"Person {number}") for number in range(6)]
        chats = [telegram.people.private(person) for person in people]

        def say(text: str) -> None:
            for person, chat in zip(people, chats, strict=True):
                telegram.people.say(chat, person, text)

        def answered(times: int) -> bool:
            return all(len(answers(chat)) == times for chat in chats)

        def answers(chat: Chat) -> list[str]:
            return [message.text for message in telegram.shown(chat) if message.text == "Done."]

        with running(redis, appendonly="yes", appendfsync="always") as server:
            bot = called(telegram, port)
            write_config(
                tmp_path,
                model.url,
                store={"url": server.url},
                adapters={"telegram": bot},
                access={"allow": [f"telegram:{person.id}" for person in people]},
            )
            model.reply = lambda _: Reply(text="Done.", hold=gate)
            given = {TOKEN: telegram.token}
            async with asyncio.timeout(PATIENCE), legato_run(tmp_path, **given) as one:
                await telegram.until(lambda: telegram.cloud.webhook.target)
                first = server.processes()
                async with legato_run(tmp_path, **given) as two:
                    say("first")
                    await telegram.until(lambda: not len(telegram.cloud.updates))
                    one.kill()  # everything is stored, nothing is answered
                    await one.wait()
                    server.let_die(*first)  # which takes ten seconds
                    gate.set()
                    say("second")
                    await telegram.until(lambda: answered(2))
                    assert two.returncode is None
        assert answered(2)
        assert telegram.violations == []


async def test_who_finds_a_reply_half_drafted_goes_on_with_its_draft_and_sends_it_once(tmp_path: Path) -> None:
    redis = tmp_path / "redis"
    redis.mkdir()
    gate, port = asyncio.Event(), free_port()
    async with TelegramServer(limits=None) as telegram, LlmServer(api_key=KEY) as model:
        anna = telegram.people.person("Anna")
        chat = telegram.people.private(anna)
        model.reply = lambda _: Reply(text="One two three four five.", hold=gate, hold_after=3)

        def drafts() -> list[str]:
            return [call.parameters["draft_id"] for call in telegram.journal.of("sendMessageDraft") if call.done]

        with running(redis, appendonly="yes", appendfsync="always") as server:
            write_config(
                tmp_path,
                model.url,
                store={"url": server.url},
                adapters={"telegram": {**called(telegram, port), "streaming": "drafts"}},
                access={"allow": [f"telegram:{anna.id}"]},
            )
            given = {TOKEN: telegram.token}
            async with asyncio.timeout(PATIENCE), legato_run(tmp_path, **given) as one:
                telegram.people.say(chat, anna, "count")
                await telegram.until(drafts)
                first = server.processes()
                async with legato_run(tmp_path, **given) as two:
                    one.kill()
                    await one.wait()
                    server.let_die(*first)
                    seen = len(drafts())
                    await telegram.until(lambda: len(drafts()) > seen)
                    gate.set()
                    await telegram.until(lambda: telegram.shown(chat))
                    assert two.returncode is None
        assert [message.texts for message in telegram.shown(chat)] == [["One two three four five."]]
        assert len(set(drafts())) == 1
        assert telegram.cloud.drafts(chat) == {}
        assert telegram.violations == []
