"""What comes to a person of the API while no request of theirs waits for it: reminders, events, questions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Reply
from tests.support.api import Api, Client, parrot, said_in, serving
from tests.support.killed import store_of
from tests.support.program import KEY
from tests.support.redis_server import free_port

pytest_plugins = ["tests.support.redis_server"]


@pytest.fixture
async def model() -> AsyncIterator[LlmServer]:
    async with LlmServer(parrot, api_key=KEY) as made:
        yield made


@pytest.fixture(params=["sqlite", "redis"])
async def api(request: pytest.FixtureRequest, tmp_path: Path, model: LlmServer) -> AsyncIterator[Api]:
    url, all_die = store_of(request.param, tmp_path, request)
    port, secret = free_port(), "${TEST_LLM_KEY}"
    hooks = {"house": {"secret": secret, "chat": "api:anna"}}
    adapters = {"api": {"enabled": True, "port": port, "hooks": hooks}}
    async with serving(tmp_path, model, store={"url": url}, adapters=adapters, turns={"lane_cap": 1}) as made:
        made.port, made.all_die = port, all_die
        await made.start()
        yield made


async def delivered(api: Api, hook: str, text: str) -> httpx.Response:
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {KEY}"}) as http:
        return await http.post(f"{api.url}/hook/{hook}", content=text)


async def test_what_nobody_was_shown_outlives_a_refusal_and_a_death(api: Api, model: LlmServer) -> None:
    anna = Client(api=api, key=await api.key("anna"))
    gate = asyncio.Event()
    model.reply = lambda _: Reply(text="late", hold=gate)
    asked: Any = {"metadata": {"chat_id": "c1"}}
    first = asyncio.ensure_future(anna.post([{"role": "user", "content": "1"}], **asked))
    await model.until(lambda: model.in_flight == 1)
    assert (await delivered(api, "house", "The door is open")).json()["status"] == "new"
    assert (await delivered(api, "house", "The window is open")).json()["status"] == "new"
    assert (await anna.post([{"role": "user", "content": "2"}], **asked)).status_code == 429
    gate.set()
    assert said_in((await first).json()) == "late"
    model.reply = parrot
    await api.kill()
    await api.start()
    other = Client(api=api, key=anna.key)
    assert await other.say("so?") == "The door is open\n\nThe window is open\n\nheard: so?"
    assert await other.say("and?", stream=True) == "heard: so? | and?"  # once, and its history is recognised
    await api.kill()
    await api.start()
    assert await other.say("more") == "heard: so? | and? | more"
