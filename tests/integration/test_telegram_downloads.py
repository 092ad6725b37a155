"""A file server that sends what nobody asked for."""

from __future__ import annotations

import gzip
from typing import Any, cast

import pytest
from pytest_httpx import HTTPXMock
from telegram import Bot, File

from adapters.telegram.files import Downloads
from gateway.domain.chat import Attachment
from gateway.runtime.errors import AdapterError

PATH = "http://127.0.0.1:9/file/bot1:x/documents/1.txt"
FILE = Attachment(kind="document", ref="f", name="1.txt")


class Finder:
    """A bot that knows where the file is."""

    async def get_file(self, ref: str) -> File:
        return File(file_id=ref, file_unique_id=ref, file_path=PATH)


async def fetched(downloads: Downloads) -> bytes:
    return await downloads.fetch(cast(Bot, Finder()), FILE)


async def test_a_file_is_asked_for_as_it_is(httpx_mock: HTTPXMock) -> None:
    downloads = Downloads(1.0)
    httpx_mock.add_response(url=PATH, content=b"as it is")
    assert await fetched(downloads) == b"as it is"
    request: Any = httpx_mock.get_request()
    assert request.headers["accept-encoding"] == "identity"
    await downloads.aclose()


async def test_one_that_comes_packed_is_not_unpacked(httpx_mock: HTTPXMock) -> None:
    downloads = Downloads(1.0)
    bomb = gzip.compress(bytes(50_000_000))
    httpx_mock.add_response(url=PATH, content=bomb, headers={"content-encoding": "gzip"})
    with pytest.raises(AdapterError, match="packed"):
        await fetched(downloads)
    await downloads.aclose()
