"""A loopback server with OpenAI's `/embeddings`, as strict as the real ones about keys, batches and bodies.

    async with EmbeddingServer() as server:
        settings = {"provider": "openai", "base_url": server.url, "name": "tiny"}

Its vectors are made of words: texts that share a word, or two of one row of `SYNONYMS`, point nearly the same way. That
is enough to test with, and says nothing about a real model. `server.refusal` is the status of every answer while it is
set. What was asked is kept in `server.asked`.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from typing import Final, Self

from aiohttp import web

MOST: Final = 2_048  # texts in one call: https://platform.openai.com/docs/api-reference/embeddings/create
SYNONYMS: Final = (
    ("car", "corsa", "drive", "vehicle", "auto"),
    ("allergic", "shellfish", "eat", "food"),
    ("daughter", "girl", "child", "kids"),
    ("oboe", "instrument", "music", "plays"),
)
_OF: Final = {word: row[0] for row in SYNONYMS for word in row}
_PLAIN: Final = frozenset(["a", "do", "i", "is", "my", "of", "the", "to", "what", "which", "who", "you", "your"])


def vector(text: str, length: int = 64) -> list[float]:
    """Return the vector of a text, of length 1."""
    words = [each for each in re.findall(r"\w+", text.casefold()) if each not in _PLAIN] or ["nothing"]
    sums = [0.0] * length
    for word in words:
        rng = random.Random(_OF.get(word, word))
        sums = [one + rng.gauss(0, 1) for one in sums]
    size = math.hypot(*sums)
    return [each / size for each in sums]


class EmbeddingServer:
    """The emulator."""

    def __init__(self, *, api_key: str | None = None, length: int = 64, port: int = 0) -> None:
        self.length = length
        self.refusal = 0
        self.asked: list[str] = []
        self._key = api_key
        self._port = port
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/v1/embeddings", self._embed)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _embed(self, request: web.Request) -> web.Response:
        if self._key and request.headers.get("Authorization") != f"Bearer {self._key}":
            return _error(401, "Incorrect API key provided")
        if self.refusal:
            return _error(self.refusal, "The server had an error")
        body = await request.json()
        texts: Sequence[str] = body["input"]
        if not isinstance(texts, list) or not 1 <= len(texts) <= MOST or not all(texts):
            return _error(400, "'$.input' is invalid")
        if any("unreadable" in each for each in texts):
            return _error(400, "One of the inputs cannot be read")
        self.asked += texts
        vectors = [vector(each, self.length) for each in texts]
        rows = [{"object": "embedding", "index": place, "embedding": each} for place, each in enumerate(vectors)]
        tokens = sum(len(each.split()) for each in texts)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return web.json_response({"object": "list", "model": body["model"], "data": rows[::-1], "usage": usage})


def _error(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message, "type": "invalid_request_error"}}, status=status)
