"""The model: what it answers follows from the newest word that names a message, and comes slowly, so that it is shown
as it grows."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
from collections.abc import Mapping
from typing import Any, Final

from aiohttp import web

from gateway.domain.message import text_of
from tests.emulators.llm import Call, LlmServer
from tests.emulators.llm_replies import Answer, Reply

TOKEN: Final = re.compile(r"tok\d\d[0-9a-f]{5}")
_ASKED: Final = re.compile(r"\b(say|tell|fill|pay) (tok\d\d[0-9a-f]{5})")
_SENTENCE: Final = "the **ferry** leaves at seven and the harbour office opens at `nine` on every day but Sunday."
_SENTENCES: Final = {"say": 1, "pay": 1, "tell": 6, "fill": 60}  # the last ones are more than a message holds
_SECONDS: Final = {"say": 0.05, "pay": 0.05, "tell": 0.7, "fill": 0.5}  # real ones, at most; the bot's clock is hurried
_PAUSES: Final = 12


def reply_to(kind: str, token: str) -> str:
    """The whole answer to a message, as Markdown."""
    sentences = (f"{number}: {_SENTENCE}" for number in range(1, _SENTENCES[kind] + 1))
    return f"{token} is answered. " + " ".join(sentences)


def answer(body: Mapping[str, Any]) -> Answer:
    """Return the model's answer to a request."""
    kind, token = _asked(body)
    if kind == "pay" and body["messages"][-1]["role"] != "tool":
        return Reply(tool_calls=[("pay", {"token": token})])
    return Reply(text=reply_to(kind, token))


def _asked(body: Mapping[str, Any]) -> tuple[str, str]:
    said = [text_of(message) for message in body["messages"] if message["role"] == "user"]
    kind, token = _ASKED.findall(said[-1])[-1]
    return kind, token


class SlowModel(LlmServer):
    """The emulator, which writes as slowly as a real one does, or so many times `slower`. Both `rng` and that are
    replaced for every run."""

    def __init__(self) -> None:
        # The platform is in the same process and must not stand still while the vocabulary is read.
        super().__init__(answer, count=lambda text: len(text) // 4)
        self.rng = random.Random(0)
        self.slower = 1.0

    async def _answer(self, call: Call, answer: Answer, prompt: int) -> web.StreamResponse:
        if not isinstance(answer, Reply):
            return await super()._answer(call, answer, prompt)
        kind, _ = _asked(call.body)
        frames = list(self._frames(call, answer, prompt))
        pause = self.rng.uniform(0.2, 1.0) * _SECONDS[kind] * self.slower / _PAUSES
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        size = max(1, len(frames) // _PAUSES)
        with contextlib.suppress(ConnectionError):  # who asked may have been killed
            await response.prepare(call.request)
            for first in range(0, len(frames), size):
                await asyncio.sleep(pause)
                await response.write("".join(frames[first : first + size]).encode())
        return response
