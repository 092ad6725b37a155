"""Other programs talk to the real program over its API, as OpenAI's clients do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Reply
from tests.support.api import Api, Client, heard, parrot, serving, system_of
from tests.support.killed import store_of
from tests.support.program import KEY

pytest_plugins = ["tests.support.redis_server"]


@pytest.fixture
async def model() -> AsyncIterator[LlmServer]:
    async with LlmServer(parrot, api_key=KEY) as made:
        yield made


@pytest.fixture(params=["sqlite", "redis"])
async def api(request: pytest.FixtureRequest, tmp_path: Path, model: LlmServer) -> AsyncIterator[Api]:
    url, _ = store_of(request.param, tmp_path, request)
    async with serving(tmp_path, model, store={"url": url}) as made:
        await made.start()
        yield made


async def test_a_client_that_sends_its_history_is_recognised(api: Api, model: LlmServer) -> None:
    anna = Client(api=api, key=await api.key("anna"))
    assert await anna.say("one") == "heard: one"
    assert await anna.say("two", stream=True) == "heard: one | two"
    assert await anna.say("three") == "heard: one | two | three"

    # The last question asked anew, and an earlier one in other words: each goes on from its own place.
    anna.history.pop()
    assert await anna.again() == "heard: one | two | three"
    anna.back_to(1)
    assert await anna.say("2") == "heard: one | 2"
    assert await anna.say("drei") == "heard: one | 2 | drei"
    anna.back_to(0)
    assert await anna.say("eins") == "heard: eins"

    # Back in the first wording, and the same first words in a conversation of its own.
    anna.history = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "heard: one"},
        {"role": "user", "content": "two"},
        {"role": "assistant", "content": "heard: one | two"},
    ]
    assert await anna.say("vier") == "heard: one | two | vier"
    assert await Client(api=api, key=anna.key).say("one") == "heard: one"
    assert await anna.say("fünf") == "heard: one | two | vier | fünf"

    # A history that nobody here has seen is taken as it is, with the client's instructions.
    unseen = Client(api=api, key=anna.key, history=[{"role": "system", "content": "You are a pirate."}])
    for number in range(3):
        unseen.history += [
            {"role": "user", "content": f"q{number}"},
            {"role": "assistant", "content": f"a{number}"},
        ]
    assert await unseen.say("q3") == "heard: q0 | q1 | q2 | q3"
    assert "You are a pirate." in system_of(model.requests[-1])
    assert await unseen.say("q4") == "heard: q0 | q1 | q2 | q3 | q4"
    assert [each["content"] for each in model.requests[-1]["messages"] if each["role"] == "assistant"][:3] == [
        "a0", "a1", "a2"
    ]  # fmt: skip
    assert "You are a pirate." not in system_of(model.requests[0])
    assert model.violations == []


async def test_people_never_see_each_other(api: Api, model: LlmServer) -> None:
    webui, other = await api.key("webui", "--front-end"), await api.key("other", "--front-end")
    anna = Client(api=api, key=webui, headers={"X-OpenWebUI-User-Id": "anna", "X-OpenWebUI-Chat-Id": "c1"})
    ben = Client(api=api, key=webui, headers={"X-OpenWebUI-User-Id": "ben", "X-OpenWebUI-Chat-Id": "c1"})
    stranger = Client(api=api, key=other, fields={"user": "webui/anna"}, headers={"X-OpenWebUI-Chat-Id": "c1"})
    thief = Client(api=api, key=await api.key("thief"), headers=anna.headers)
    assert await anna.say("my word is teapot") == "heard: my word is teapot"
    for each in (ben, stranger, thief):
        assert "my word is" not in await each.say("/recall teapot")
        assert "There are no earlier sessions" in await each.say("/sessions")
    assert "teapot" in await anna.say("/recall teapot")
    assert await anna.say("again") == "heard: my word is teapot | again"  # a command is no part of the conversation
    assert len(model.requests) == 2


async def test_a_question_is_answered_once(api: Api, model: LlmServer) -> None:
    anna = Client(api=api, key=await api.key("anna"))
    gate = asyncio.Event()
    model.reply = lambda body: Reply(text=f"heard: {' | '.join(heard(body))}", hold=gate)
    anna.history.append({"role": "user", "content": "one"})
    with pytest.raises(httpx.ReadTimeout):
        await anna.post(anna.history, patience=1.0)
    await model.until(lambda: model.calls == 1)
    asks = [asyncio.ensure_future(anna.post(anna.history)) for _ in range(2)]
    gate.set()
    answers = await asyncio.gather(*asks)
    assert [each.json()["choices"][0]["message"]["content"] for each in answers] == ["heard: one"] * 2

    named = Client(api=api, key=anna.key, headers={"Idempotency-Key": "k1"})
    assert await named.say("two") == "heard: two"
    await api.kill()
    await api.start()
    named.history.pop()
    assert await named.again() == "heard: two"
    assert model.calls == 2
