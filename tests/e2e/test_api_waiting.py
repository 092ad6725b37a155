"""What comes to a person of the API while no request of theirs waits for it: reminders, events, questions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.agent.tools.ask_person import REFUSED
from gateway.app.config.models import HeartbeatSettings
from gateway.domain.keys import Key
from gateway.domain.message import text_of
from gateway.people.keys import Keys
from gateway.providers.base import ModelRequest
from gateway.providers.plugin import ServedModel
from gateway.runtime.clock import SystemClock
from gateway.store.port import Store
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Answer, Reply
from tests.support.api import Api, Client, heard, parrot, said_in, serving, system_of
from tests.support.api_inside import LiveApi
from tests.support.api_inside import api as api_inside
from tests.support.gateway import FakeModel, Say, config_in
from tests.support.killed import store_of
from tests.support.program import KEY, legato
from tests.support.redis_server import free_port

pytest_plugins = ["tests.support.redis_server"]


@pytest.fixture
async def model() -> AsyncIterator[LlmServer]:
    async with LlmServer(parrot, api_key=KEY) as made:
        yield made


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=pytest.mark.slow)])
async def api(request: pytest.FixtureRequest, tmp_path: Path, model: LlmServer) -> AsyncIterator[Api]:
    url, all_die = store_of(request.param, tmp_path, request)
    port, secret = free_port(), "${TEST_LLM_KEY}"
    hooks: Any = {"house": {"secret": secret, "chat": "api:anna"}}
    hooks |= {name: {"secret": secret, "chat": f"api:{name}", "do": "ask"} for name in ("anna", "poor", "nobody")}
    sections: Any = {
        "store": {"url": url},
        "adapters": {"api": {"enabled": True, "port": port, "hooks": hooks}},
        "turns": {"lane_cap": 3},
        "tools": {"shell": {"enabled": True, "sandbox": "never"}},
        "model": {"context_length": 32_000, "max_output_tokens": 400, "prices": {"input": 100, "output": 100}},
    }
    async with serving(tmp_path, model, **sections) as made:
        made.port, made.all_die = port, all_die
        await made.start()
        yield made


async def delivered(api: Api, hook: str, text: str) -> httpx.Response:
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {KEY}"}, verify=False) as http:
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


def runs_what_events_say(body: Mapping[str, Any]) -> Answer:
    last = body["messages"][-1]
    if "[In the background" in text_of(last):
        return Reply(text="", tool_calls=[("shell", {"command": "echo paid"})])
    return Reply(text=f"done: {text_of(last)}") if last["role"] == "tool" else parrot(body)


async def test_a_name_alone_is_the_person_wherever_they_write(api: Api, model: LlmServer) -> None:
    model.reply = runs_what_events_say
    anna = Client(api=api, key=await api.key("anna"))
    assert (await delivered(api, "anna", "Ms Smith paid")).json()["status"] == "new"
    said = ""
    while "Answer y or n" not in said:
        said += await anna.say("so?") + "\n\n"
    assert "I am continuing on my own: an event came from anna.\n\n" in said
    assert "Another program began this. May I call shell?" in said
    assert (await anna.say("yes")).startswith("done: ")
    assert (await anna.say("end")).removesuffix(" | end") in said  # the answer is no part of this conversation
    assert await Client(api=api, key=anna.key).say("y") == "heard: y"  # nothing is asked any more

    calls, poor = model.calls, Client(api=api, key=await api.key("poor", "--cap", "0.01"))
    assert (await delivered(api, "poor", "Ms Jones paid")).json()["status"] == "new"
    while "spend cap" not in (said := await poor.say("/status")):
        pass
    assert "This key's daily spend cap of $0.01" in said
    assert model.calls == calls

    refused = await delivered(api, "nobody", "Mr Brown paid")
    assert (refused.status_code, refused.json()["error"]["message"][:30]) == (409, "There is no key for nobody. `l")
    for more in ([], ["--ask"]):
        status, _, errors = await legato(api.folder, "send", "api:nobody", *more, "hello")
        assert status != 0
        assert "there is no key for nobody" in errors.lower()


async def test_whose_key_is_taken_back_is_told_nothing_more(api: Api, model: LlmServer) -> None:
    anna = Client(api=api, key=await api.key("anna"))
    await anna.say("/remind in 2 hours stretch")
    status, _, errors = await legato(api.folder, "keys", "remove", "anna")
    assert status == 0, errors
    assert (await delivered(api, "house", "The door is open")).status_code in (200, 409)  # within ten seconds


class Ahead(SystemClock):
    """A clock that the test puts forward."""

    ahead = 0.0

    def now(self) -> float:
        return super().now() + self.ahead

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


async def test_the_reminders_of_a_key_that_was_taken_back_are_silent(
    tmp_path: Path, reopened: Callable[[], Store]
) -> None:
    clock = Ahead()

    async def shown(live: LiveApi, minutes: float) -> list[str]:
        clock.ahead += 60 * minutes
        await live.gateway.upkeep.people.firing.fire_due()
        rows = await live.gateway.store.outbox(None, 20)
        return [row.text for row in reversed(rows) if row.kind == "reminder"]

    async with api_inside(tmp_path, clock=clock, store=reopened()) as live:
        keys = Keys(store=live.gateway.store, clock=clock)
        for text in ("/remind in 5 minutes stretch", "/remind every day at 9:00 walk"):
            await live.client().chat.completions.create(model="legato", messages=[{"role": "user", "content": text}])
        before = await shown(live, 6)
        assert "stretch" in before[0]
        await keys.remove("anna")
        assert await shown(live, 48 * 60) == before
        await keys.add(Key(name="anna"))
        assert len(await shown(live, 24 * 60)) == len(before) + 1  # it goes on


async def test_a_look_now_and_then_is_at_the_conversation_in_which_a_person_wrote_last(tmp_path: Path) -> None:
    def reply(_: Any, request: ModelRequest) -> Say:
        said = text_of(request.messages[-1])
        if "one of the looks" in said:
            return Say(text="They have no milk.")
        return Say(text="No milk is left!" if "[In the background" in said else "hello")

    heartbeat, served = HeartbeatSettings(chat="api:anna"), ServedModel(provider="openai", name="fake")
    config = config_in(tmp_path, heartbeat=heartbeat, model=served).within(tmp_path)
    (tmp_path / "HEARTBEAT.md").write_text("Tell me when the milk is out.")
    async with api_inside(tmp_path, model=FakeModel(reply), config=config) as live:
        for text in ("one", "two"):
            await live.client().chat.completions.create(model="legato", messages=[{"role": "user", "content": text}])
        assert live.gateway.upkeep.heartbeat is not None
        await live.gateway.upkeep.heartbeat()
        said = ""
        while "No milk is left!" not in said:
            messages: Any = [{"role": "user", "content": f"so? {len(said)}"}]
            answer = await live.client().chat.completions.create(model="legato", messages=messages)
            said += f"{answer.choices[0].message.content}\n\n"
        assert "I am continuing on my own: a look at what you wrote down found something." in said
        woken = next(each for each in live.model.requests if "[In the background" in text_of(each.messages[-1]))
        assert next(text_of(each) for each in woken.messages if each["role"] == "user") == "two"


async def test_a_client_that_sends_only_the_end_of_its_history_goes_on(api: Api, model: LlmServer) -> None:
    words = [f"This is number {number} of what I say." for number in range(9)]
    anna, ben = Client(api=api, key=await api.key("anna")), Client(api=api, key=await api.key("ben"))
    shown: Any = [{"role": "system", "content": "You are a pirate."}]
    for number, text in enumerate(words):
        anna.history.append({"role": "user", "content": text})
        if number == 6:
            await api.kill()
            await api.start()
            shown = []
        told = said_in((await anna.post([*shown, *anna.history[-5:]])).json())
        assert told == f"heard: {' | '.join(words[: number + 1])}"
        assert ("You are a pirate." in system_of(model.requests[-1])) is (number < 6)
        anna.history.append({"role": "assistant", "content": told})
    regenerated = said_in((await anna.post(anna.history[-6:-1])).json())
    assert regenerated == f"heard: {' | '.join(words)}"
    stolen = said_in((await ben.post([*anna.history[-4:], {"role": "user", "content": "and?"}])).json())
    assert stolen == f"heard: {' | '.join(words[-2:])} | and?"

    noted = "That is noted, and there is nothing more to be said of it."
    model.reply = lambda _: Reply(text=noted)
    for name in ("Ann", "Bob"):
        talk = Client(api=api, key=anna.key)
        await talk.say(f"I am {name}")
        await talk.say("Go on, please.")
    model.reply = parrot
    end = [{"role": "user", "content": "Go on, please."}, {"role": "assistant", "content": noted}]
    asked = said_in((await anna.post([*end, {"role": "user", "content": "Who am I?"}])).json())
    assert asked == "heard: Go on, please. | Who am I?"  # nobody knows which of the two
