"""The program with its API, in a process of its own, and people whose clients hold the history themselves."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from msgspec import Struct, field

from gateway.domain.message import text_of
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Answer, Reply
from tests.support.forks import Process
from tests.support.program import legato, started, write_config
from tests.support.redis_server import free_port
from tests.support.waiting import eventually

Line = dict[str, Any]


def parrot(body: Mapping[str, Any]) -> Answer:
    """A model that says what it was told by the person, oldest first."""
    return Reply(text="heard: " + " | ".join(heard(body)))


def heard(body: Mapping[str, Any]) -> list[str]:
    """What the person said in a request to a model."""
    return [text_of(each) for each in body["messages"] if each["role"] == "user"]


def system_of(body: Mapping[str, Any]) -> str:
    """The system prompt of a request to a model."""
    return "".join(text_of(each) for each in body["messages"] if each["role"] == "system")


class Api:
    """`legato run` with its API in a folder, which can be killed and started again."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port
        self.process: Process | None = None
        self.all_die: Callable[[], None] = lambda: None  # has the store know that it was killed

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Start it, and wait until it answers."""
        self.process = await started(self.folder, "run")
        await self._answers(401)

    async def _answers(self, status: int, key: str = "none") -> None:
        """Wait until it answers so to this key."""

        async def answers() -> bool:
            try:
                async with httpx.AsyncClient(headers={"Authorization": f"Bearer {key}"}, verify=False) as http:
                    return (await http.get(f"{self.url}/v1/models")).status_code == status
            except httpx.HTTPError:
                assert self.process is None or self.process.returncode is None, "the program has ended"
                return False

        await eventually(answers)

    async def kill(self) -> None:
        """End it at once, as `kill -9` does."""
        assert self.process is not None
        if self.process.returncode is None:
            self.process.kill()
        await self.process.communicate()
        self.all_die()

    async def key(self, name: str, *options: str) -> str:
        """A new key, which the program knows within a second."""
        status, out, errors = await legato(self.folder, "keys", "add", name, *options)
        assert status == 0, errors
        if self.process is not None:
            await self._answers(200, out.strip())
        return out.strip()


@asynccontextmanager
async def serving(folder: Path, server: LlmServer, **sections: Any) -> AsyncIterator[Api]:
    """The program, to be started, with this model; killed in the end."""
    api = Api(folder, free_port())
    sections.setdefault("adapters", {"api": {"enabled": True, "port": api.port}})
    write_config(folder, server.url, **sections)
    try:
        yield api
    finally:
        if api.process is not None:
            await api.kill()


class Client(Struct, kw_only=True):
    """A person's client: it sends its whole history each time."""

    api: Api
    key: str
    history: list[Line] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)

    async def post(self, messages: list[Line], *, patience: float = 60.0, **more: Any) -> httpx.Response:
        """One request."""
        body = {"model": "legato", "messages": messages, **self.fields, **more}
        headers = {"Authorization": f"Bearer {self.key}", **self.headers}
        async with httpx.AsyncClient(timeout=patience, verify=False) as http:
            return await http.post(f"{self.api.url}/v1/chat/completions", json=body, headers=headers)

    async def say(self, text: str, **more: Any) -> str:
        """Say one more thing; returns the answer."""
        self.history.append({"role": "user", "content": text})
        return await self.again(**more)

    async def again(self, **more: Any) -> str:
        """Send the history as it is, whose last message is the person's."""
        answer = await self.post(self.history, **more)
        assert answer.status_code == 200, answer.text
        told = said_in_stream(answer.text) if more.get("stream") else said_in(answer.json())
        self.history.append({"role": "assistant", "content": told})
        return told

    def back_to(self, turns: int) -> None:
        """Take everything back behind so many exchanges."""
        del self.history[2 * turns :]


def said_in(body: Mapping[str, Any]) -> str:
    """The words of an answer."""
    return str(body["choices"][0]["message"]["content"])


def said_in_stream(text: str) -> str:
    """The words of an answer that was streamed to its end."""
    events = re.findall(r"^data: (.*)$", text, re.MULTILINE)
    assert events[-1] == "[DONE]", text[-500:]
    choices = [choice for each in events[:-1] for choice in json.loads(each)["choices"]]
    assert choices[-1]["finish_reason"] == "stop", text[-500:]
    return "".join(each["delta"].get("content") or "" for each in choices)
