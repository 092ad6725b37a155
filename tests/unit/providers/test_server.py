"""The events of an answer, as they come from a server."""

from __future__ import annotations

import asyncio
import gzip
from types import SimpleNamespace
from typing import Any

import httpx

from gateway.providers.bodies import Body
from gateway.providers.openai.answer import ChatAnswer
from gateway.providers.server import ModelServer
from gateway.runtime.clock import SystemClock

EVENT = b'data: {"choices": [{"delta": {"content": "a"}}]}\n\n'
END = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


class Busy(SystemClock):
    """A clock by which everything takes a millisecond."""

    def __init__(self) -> None:
        self._time = 0.0

    def monotonic(self) -> float:
        self._time += 0.001
        return self._time


async def test_others_have_their_turn_while_many_events_are_read() -> None:
    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=EVENT * 1_000 + END)

    turns, said = 0, ""
    client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    spec: Any = SimpleNamespace(silence=None, whole_answer=60.0)
    server = ModelServer(client, str, Busy())
    beside = asyncio.create_task(others())
    async for event in server.call("http://model", {}, Body((b"{}",), True), ChatAnswer(lambda: "c"), spec=spec):
        said = getattr(event, "text", said)
    beside.cancel()
    await server.aclose()
    assert said == "a" * 1_000
    assert turns > 1_000 / 20


async def test_an_answer_is_read_that_was_packed_though_nobody_asked() -> None:
    packed = httpx.Response(200, headers={"Content-Encoding": "gzip"}, content=gzip.compress(EVENT * 3 + END))
    spec: Any = SimpleNamespace(silence=None, whole_answer=60.0)
    async with httpx.AsyncClient(transport=httpx.MockTransport(lambda _: packed)) as client:
        call = ModelServer(client, str, None).call("http://model", {}, Body((b"{}",), True), ChatAnswer(str), spec=spec)
        assert [getattr(event, "text", "") async for event in call][-1] == "aaa"
