"""A file server that sends what nobody asked for."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from typing import cast

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from telegram import Bot, File

from adapters.telegram.files import Downloads
from adapters.telegram.requests import way
from gateway.domain.chat import Attachment
from gateway.runtime.errors import AdapterError

FILE = Attachment(kind="document", ref="f", name="1.txt")


class FileServer:
    """A bot that knows where the file is, and the server that has it."""

    def __init__(self) -> None:
        self.answer = web.Response(body=b"as it is")
        self.asked: list[str | None] = []
        app = web.Application()
        app.router.add_get("/1.txt", self._give)
        self.server = TestServer(app)

    async def get_file(self, ref: str) -> File:
        return File(file_id=ref, file_unique_id=ref, file_path=str(self.server.make_url("/1.txt")))

    async def fetched(self) -> bytes:
        """The file, by a client of its own."""
        downloads = Downloads(1.0, lambda most: way(str(self.server.make_url("/")), None, most=most))
        try:
            return await downloads.fetch(cast(Bot, self), FILE)
        finally:
            await downloads.aclose()

    async def _give(self, request: web.Request) -> web.Response:
        self.asked.append(request.headers.get("Accept-Encoding"))
        return self.answer


@pytest.fixture
async def files() -> AsyncIterator[FileServer]:
    made = FileServer()
    async with made.server:
        yield made


async def test_a_file_is_asked_for_as_it_is(files: FileServer) -> None:
    assert await files.fetched() == b"as it is"
    assert files.asked == ["identity"]


async def test_one_that_comes_packed_is_not_unpacked(files: FileServer) -> None:
    bomb = gzip.compress(bytes(50_000_000))
    files.answer = web.Response(body=bomb, headers={"content-encoding": "gzip"})
    with pytest.raises(AdapterError, match="compressed"):
        await files.fetched()
