"""The loopback model of the crash laboratory: who asked what, from when to when, and faults by number."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import web

from gateway.providers.offline.model import is_memory_request
from tests.chaos.answers import model
from tests.emulators.llm import Call as Received
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Answer, Cut, Reply, is_title_request, is_turn, rate_limited, server_error

ModelFault = Literal["limited", "broken", "hanging", "cut"]


@dataclass(slots=True, kw_only=True)
class Call:
    """One request: whose, and its span (monotonic seconds; `ended` None: still open)."""

    number: int
    process: int
    body: Mapping[str, Any]
    begun: float
    ended: float | None = None
    fault: ModelFault | None = None

    @property
    def is_turn(self) -> bool:
        """Say whether the call is a conversation's, and not one for a summary or for the memory."""
        return is_turn(self.body)

    @property
    def is_beside(self) -> bool:
        """Whether the call is one for the memory or a title, which may go on beside a turn."""
        return is_memory_request(self.body["messages"]) or is_title_request(self.body["messages"])


@dataclass(slots=True)
class Watch:
    """The calls of one run and their planned faults: `hangs` is the length in seconds of a hanging call, `slowest`
    the most of any other one."""

    faults: Mapping[int, ModelFault]
    rng: random.Random
    hangs: float = 2.2  # longer than a lease, so that a turn outlives it
    slowest: float = 0.12
    calls: list[Call] = field(default_factory=list)


class WatchedModel(LlmServer):
    """The emulator, with a log. `watch` is replaced for every run."""

    def __init__(self) -> None:
        super().__init__(model)
        # Who counts for the first time reads the vocabulary, and nobody else is answered until it has been read.
        self.prompt_tokens({"messages": [{"role": "user", "content": "warm"}]})
        self.watch = Watch({}, random.Random(0))

    async def _answer(self, received: Received, answer: Answer, prompt: int) -> web.StreamResponse:
        request, body = received.request, received.body
        watch = self.watch
        process = int(request.headers["Authorization"].rpartition("-")[2])
        number = len(watch.calls) + 1
        call = Call(number=number, process=process, body=body, begun=time.monotonic(), fault=watch.faults.get(number))
        watch.calls.append(call)
        try:
            await asyncio.sleep(watch.hangs if call.fault == "hanging" else watch.rng.uniform(0.0, watch.slowest))
            if call.fault == "hanging" and request.transport is not None:
                request.transport.abort()
            faulty: dict[ModelFault | None, Answer] = {
                "limited": rate_limited(1),
                "broken": server_error(),
                "cut": Cut(text=answer.text, after=2) if isinstance(answer, Reply) else answer,
            }
            return await super()._answer(received, faulty.get(call.fault, answer), prompt)
        finally:
            call.ended = time.monotonic()
