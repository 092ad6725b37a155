"""What comes to a person of the API while no request of theirs waits for it: reminders, events, questions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.agent.tools.ask_person import REFUSED
from gateway.domain.message import text_of
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Answer, Reply
from tests.support.api import Api, Client, heard, parrot, said_in, serving
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
    async with serving(tmp_path, model, store={"url": url}, adapters=adapters, turns={"lane_cap": 3}) as made:
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
    others = [asyncio.ensure_future(anna.post([{"role": "user", "content": f"{n}"}], **asked)) for n in (2, 3, 4)]
    done, _ = await asyncio.wait(others, return_when=asyncio.FIRST_COMPLETED)
    assert [each.result().status_code for each in done] == [429]
    for each in others:
        each.cancel()
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


def asking(*questions: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], Answer]:
    """A model that asks the person these questions, where they say "order", and tells what was answered."""

    def reply(body: Mapping[str, Any]) -> Answer:
        messages = body["messages"]
        if heard(body)[-1] != "order":
            return parrot(body)
        last = max(at for at, each in enumerate(messages) if each["role"] == "user")
        told = [text_of(each) for each in messages[last:] if each["role"] == "tool"]
        if len(told) < len(questions):
            return Reply(text="", tool_calls=[("ask_person", questions[len(told)])])
        return Reply(text=" / ".join(told))

    return reply


async def test_the_next_message_answers_a_question_that_wants_words(api: Api, model: LlmServer) -> None:
    model.reply = asking({"question": "Which colour?", "options": ["red", "blue"]}, {"question": "For whom?"})
    anna = Client(api=api, key=await api.key("anna"))
    assert (await anna.say("order")).startswith("Which colour?\n1. red\n2. blue\n\nYour next message is the answer")
    assert (await anna.say("2", stream=True)).startswith("For whom?")
    await api.kill()
    await api.start()
    ordered = "The person answered: blue / The person answered: my brother"
    assert await anna.say("my brother") == ordered
    anna.headers["X-Stainless-Retry-Count"] = "1"
    anna.history.pop()
    assert await anna.again() == ordered
    anna.headers.clear()
    assert await anna.say("thanks") == "heard: order | thanks"
    assert (await anna.say("order", stream=True)).startswith("Which colour?")
    assert (await anna.say("/answer green")).startswith("For whom?")
    assert await anna.say("/deny") == "The person answered: green / " + REFUSED
    assert model.violations == []
