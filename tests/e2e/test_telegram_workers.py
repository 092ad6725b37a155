"""Several processes behind one address that Telegram calls, on one Redis store: the program as people run it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Reply
from tests.emulators.telegram import Chat, TelegramServer
from tests.fakes_model import PATIENCE
from tests.fakes_program import KEY, legato_run, write_config
from tests.redis_server import free_port, running

TOKEN = "LEGATO_TEST_TOKEN"


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
            bot = {
                "enabled": True,
                "token": f"${{{TOKEN}}}",
                "base_url": telegram.base_url,
                "mode": "webhook",
                "webhook": {"url": f"http://127.0.0.1:{port}/hook", "port": port},
            }
            write_config(
                tmp_path,
                model.url,
                store={"url": server.url},
                adapters={"telegram": bot},
                access={"allow": [f"telegram:{person.id}" for person in people]},
            )
            model.reply = lambda _: Reply(text="Done.", hold=gate)
            given = {TOKEN: telegram.token}
            async with legato_run(tmp_path, **given) as one, legato_run(tmp_path, **given) as two:
                async with asyncio.timeout(PATIENCE):
                    say("first")
                    await telegram.until(lambda: telegram.cloud.webhook.target and not len(telegram.cloud.updates))
                    one.kill()  # everything is stored, nothing is answered
                    await one.wait()
                    gate.set()
                    say("second")
                    await telegram.until(lambda: answered(2))
                assert two.returncode is None
        assert answered(2)
        assert telegram.violations == []
