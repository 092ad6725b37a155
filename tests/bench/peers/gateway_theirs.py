"""hermes-agent's gateway: run by the interpreter of `build/peers`, isolated (`-I`), with a job's file.

Reads {"sessions", "chats", "said", "reply"}, makes so many sessions of two messages each through their own store,
tells `ready`, and then for each line `EACH ALONE` has a round of talk and tells what it took, as `gateway_ours.py`
does. Their `HERMES_HOME` is made by who starts this. What is theirs runs: the base of adapters, the runner's handling
of a message, its session store. What is replaced is the run of the agent, which answers at once and leaves writing the
transcript to the gateway, and the platform.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

from gateway.config import Platform, PlatformConfig
from gateway.platforms.base import BasePlatformAdapter, MessageEvent, SendResult
from gateway.run import GatewayRunner
from gateway.session import SessionSource, SessionStore, build_session_key

PLATFORM = Platform.MATTERMOST  # a plain one: no topics, no files of its own


class Chats(BasePlatformAdapter):
    """A platform whose chats say the next thing when the last was answered and their gateway is ready for it."""

    def __init__(self, reply: str) -> None:
        super().__init__(PlatformConfig(enabled=True), PLATFORM)
        self._reply = reply
        self._handed: dict[str, asyncio.Future[float]] = {}
        self._said = 0

    async def connect(self, **_: Any) -> bool:
        """Nothing to connect to."""
        return True

    async def disconnect(self) -> None:
        """Nothing is open."""

    async def get_chat_info(self, chat_id: str) -> dict[str, Any]:
        """What their base asks for."""
        return {"name": chat_id, "type": "dm"}

    async def send(self, chat_id: str, content: str, reply_to: Any = None, metadata: Any = None) -> SendResult:
        """A reply is handed over."""
        if content != self._reply:  # or an error would be measured
            self._handed[chat_id].set_exception(AssertionError(content))
        else:
            self._handed[chat_id].set_result(time.perf_counter())
        return SendResult(success=True, message_id="1")

    async def say(self, chat: str, text: str) -> float:
        """Seconds until the reply is handed over; returns when the turn has ended."""
        self._said += 1
        handed = self._handed[chat] = asyncio.get_running_loop().create_future()
        event = MessageEvent(text=f"{self._said} {text}", source=source(chat), message_id=str(self._said))
        start = time.perf_counter()
        await self.handle_message(event)
        turn = self._session_tasks[build_session_key(event.source)]
        seconds = await handed - start
        await turn
        return seconds


def source(chat: str) -> SessionSource:
    """Where a chat's messages come from."""
    return SessionSource(platform=PLATFORM, chat_id=chat, chat_type="dm", user_id=chat, user_name=chat)


def fill(store: SessionStore, job: dict[str, Any]) -> None:
    """So many sessions; their index is written once and not again for each, and the disk is waited for once."""
    store._save_entries = lambda: None
    store._db._conn.execute("PRAGMA synchronous = OFF")
    for number in range(job["sessions"]):
        made = store.get_or_create_session(source(f"known{number}"))
        for role, words in (("user", job["said"]), ("assistant", job["reply"])):
            store.append_to_transcript(made.session_id, {"role": role, "content": words, "timestamp": time.time()})
    store._db._conn.execute("PRAGMA synchronous = FULL")  # SQLite's default, and theirs
    del store._save_entries
    store._save_entries()


async def serve(job: dict[str, Any]) -> None:
    """Rounds, until there are no lines."""
    runner, chats = GatewayRunner(), Chats(job["reply"])

    async def answered(*, message: str, history: list[Any], **_: Any) -> dict[str, Any]:
        new = [{"role": "user", "content": message}, {"role": "assistant", "content": job["reply"]}]
        return {
            "final_response": job["reply"],
            "messages": [*history, *new],
            "history_offset": len(history),
            "api_calls": 1,
            "completed": True,
            "agent_persisted": False,
        }

    runner._run_agent = answered
    runner._running, runner._gateway_loop = True, asyncio.get_running_loop()
    runner.adapters[PLATFORM] = chats
    chats.set_message_handler(runner._handle_message)
    chats.set_session_store(runner.session_store)
    chats.set_busy_session_handler(runner._handle_active_session_busy_message)
    chats.set_topic_recovery_fn(runner._recover_telegram_topic_thread_id)
    chats.set_authorization_check(runner._make_adapter_auth_check(PLATFORM))
    fill(runner.session_store, job)
    print("ready", flush=True)
    names = [f"known{number}" for number in range(job["chats"])]

    async def talk(chat: str, count: int) -> list[float]:
        return [await chats.say(chat, job["said"]) for _ in range(count)]

    while line := await asyncio.to_thread(sys.stdin.readline):
        each, alone = map(int, line.split())
        start, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(talk(name, each) for name in names))
        seconds, spent = time.perf_counter() - start, time.process_time() - cpu
        messages = each * len(names)
        waits = await talk(names[0], alone)
        print(json.dumps({"rate": messages / seconds, "cpu": spent / messages, "alone": waits}), flush=True)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asyncio.run(serve(json.loads(Path(sys.argv[1]).read_text())))
