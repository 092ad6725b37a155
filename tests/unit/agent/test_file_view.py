"""The files of a request as a model is shown them."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator
from hashlib import sha256
from typing import Any

import pytest

from gateway.agent.files.references import picture_part, sound_part
from gateway.agent.files.view import PICTURE_HIDDEN, PUT_ASIDE, SOUND_HIDDEN, FileView
from gateway.domain.chat import SessionKey
from gateway.providers.base import Completed, ModelEvent, ModelRequest, ModelSpec
from gateway.runtime.errors import (
    ContextOverflow,
    PicturesRefused,
    ProviderRejected,
    ProviderUnavailable,
    QuotaExceeded,
)
from tests.emulators.telegram.people import PIXEL

KEY = SessionKey(platform="p", chat="c")
SPEC = ModelSpec(provider="openai", name="m")
MEGABYTE = 1024 * 1024


class Contents:
    """A store that has contents and nothing else; counts what it is asked for."""

    def __init__(self, *contents: bytes) -> None:
        self.known = {sha256(content).hexdigest(): content for content in contents}
        self.digests = [*self.known]
        self.asked = 0

    async def file_content(self, key: SessionKey, digest: str) -> bytes | None:
        assert key == KEY
        self.asked += 1
        return self.known.get(digest)


class Server:
    """A provider that refuses what `refusal` says, and keeps what it was sent."""

    name = "openai"

    def __init__(self, *refusals: Exception | None) -> None:
        self.refusals = [*refusals]
        self.sent: list[list[Any]] = []

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.sent.append([message["content"] for message in request.messages])
        refusal = self.refusals.pop(0) if self.refusals else None
        if refusal is not None:
            raise refusal
        yield Completed(text="ok")

    async def aclose(self) -> None:
        """Nothing is open."""


def view(contents: Contents) -> FileView:
    return FileView(contents)  # type: ignore[arg-type]


def request(*parts: Any) -> ModelRequest:
    """A request with one user message for each part."""
    messages: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "look"}, part]} for part in parts]
    return ModelRequest(messages=messages)


async def ask(shown: FileView, server: Server, asked: ModelRequest, spec: ModelSpec = SPEC) -> list[Any]:
    """Return the parts behind the words in each message that was sent last."""
    async for _ in shown.stream(server, spec, asked, KEY):
        pass
    return [content[1] for content in server.sent[-1]]


def url(content: bytes) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(content).decode()}}


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


async def test_references_become_contents_and_the_request_stays_as_it_was() -> None:
    contents, server = Contents(PIXEL), Server()
    asked = request(picture_part(contents.digests[0]))
    before = repr(asked)
    assert await ask(view(contents), server, asked) == [url(PIXEL)]
    assert repr(asked) == before


async def test_a_content_is_loaded_once_for_many_steps() -> None:
    contents = Contents(PIXEL)
    shown = view(contents)
    for _ in range(3):
        await ask(shown, Server(), request(picture_part(contents.digests[0])))
    assert contents.asked == 1


async def test_what_is_not_kept_any_more_is_words() -> None:
    assert await ask(view(Contents()), Server(), request(picture_part("0" * 64))) == [words(PUT_ASIDE)]


async def test_the_newest_come_first_where_there_is_no_room_for_all() -> None:
    contents = Contents(*(PIXEL + bytes([n]) * (9 * MEGABYTE) for n in range(3)))
    found = await ask(view(contents), Server(), request(*map(picture_part, contents.digests)))
    assert found[0] == words(PUT_ASIDE)
    assert [part["type"] for part in found] == ["text", "image_url", "image_url"]


async def test_what_has_no_room_is_not_loaded_at_every_step() -> None:
    contents = Contents(*(PIXEL + bytes([n]) * (9 * MEGABYTE) for n in range(6)))
    shown, asked = view(contents), request(*map(picture_part, contents.digests))
    await ask(shown, Server(), asked)
    assert contents.asked == 3
    await ask(shown, Server(), asked)
    assert contents.asked == 3


async def test_a_content_that_two_load_at_once_is_remembered_as_one() -> None:
    class Slow(Contents):
        async def file_content(self, key: SessionKey, digest: str) -> bytes | None:
            found = await super().file_content(key, digest)
            await asyncio.sleep(0)
            return found

    large, small = PIXEL + bytes(20 * MEGABYTE - len(PIXEL) - 9), PIXEL + b"small"
    contents = Slow(large, small)
    shown = view(contents)
    part, other = map(picture_part, contents.digests)
    await asyncio.gather(*(ask(shown, Server(), request(part)) for _ in range(3)))
    await ask(shown, Server(), request(other))
    before = contents.asked
    await ask(shown, Server(), request(part))
    assert contents.asked == before


async def test_a_mark_for_the_cache_stays_where_it_was() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    contents = Contents(PIXEL)
    part = picture_part(contents.digests[0]) | mark
    assert await ask(view(contents), Server(), request(part)) == [url(PIXEL) | mark]
    blind = ModelSpec(provider="openai", name="m", pictures=False)
    assert await ask(view(contents), Server(), request(part), blind) == [words(PICTURE_HIDDEN) | mark]


async def test_sounds_are_played_only_in_formats_that_are_heard() -> None:
    contents = Contents(b"RIFF....WAVE")
    part = sound_part(contents.digests[0], "wav")
    assert await ask(view(contents), Server(), request(part)) == [words(SOUND_HIDDEN)]
    hearing = ModelSpec(provider="openai", name="m", sounds=("wav",))
    data = base64.b64encode(b"RIFF....WAVE").decode()
    assert await ask(view(contents), Server(), request(part), hearing) == [
        {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}
    ]


async def test_a_model_that_takes_no_pictures_is_shown_none_from_then_on_and_others_are() -> None:
    contents = Contents(PIXEL, PIXEL + b"2")
    shown, server = view(contents), Server(PicturesRefused("no"))
    assert await ask(shown, server, request(picture_part(contents.digests[0]))) == [words(PICTURE_HIDDEN)]
    assert not shown.sees(SPEC)
    assert await ask(shown, server, request(picture_part(contents.digests[1]))) == [words(PICTURE_HIDDEN)]
    assert len(server.sent) == 3
    other = ModelSpec(provider="openai", name="other")
    assert await ask(shown, server, request(picture_part(contents.digests[1])), other) == [url(PIXEL + b"2")]


async def test_a_refusal_for_another_reason_is_the_refusal_and_nothing_is_learned() -> None:
    contents = Contents(PIXEL)
    shown = view(contents)
    refusal = ProviderRejected("no such model", status=400)
    with pytest.raises(ProviderRejected, match="no such model"):
        await ask(shown, Server(refusal, refusal), request(picture_part(contents.digests[0])))
    assert await ask(shown, Server(), request(picture_part(contents.digests[0]))) == [url(PIXEL)]


async def test_a_picture_that_was_taken_before_is_not_suspected() -> None:
    contents = Contents(PIXEL, PIXEL + b"new")
    old, new = map(picture_part, contents.digests)
    shown = view(contents)
    await ask(shown, Server(), request(old))
    server = Server(ProviderRejected("I would rather not", status=400))
    assert await ask(shown, server, request(old, new)) == [url(PIXEL), words(PICTURE_HIDDEN)]


class SmallServer(Server):
    """A provider that takes so many bytes of pictures, and none that is broken."""

    def __init__(self, most: int = 10**9, broken: bytes = b"nothing is") -> None:
        super().__init__()
        self.most, self.broken = most, broken

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.sent.append([message["content"] for message in request.messages])
        pictures = [_content(part) for message in self.sent[-1] for part in message]
        if sum(map(len, pictures)) > self.most:
            raise ContextOverflow("413", bulky=True)
        if any(self.broken in each for each in pictures):
            raise ProviderRejected("a picture is broken", status=400)
        yield Completed(text="ok")


def _content(part: dict[str, Any]) -> bytes:
    return base64.b64decode(part["image_url"]["url"].partition(",")[2]) if part["type"] == "image_url" else b""


async def test_where_a_server_takes_small_bodies_only_the_oldest_pictures_go() -> None:
    contents = Contents(*(PIXEL + bytes([number]) * MEGABYTE for number in range(8)))
    parts = [*map(picture_part, contents.digests)]
    shown, server = view(contents), SmallServer(most=3 * MEGABYTE)
    kinds = [part["type"] for part in await ask(shown, server, request(*parts[:2]))]
    assert kinds == ["image_url", "image_url"]
    for number in range(3, 9):
        before = len(server.sent)
        *_, last = await ask(shown, server, request(*parts[:number]))
        assert last["type"] == "image_url", "the newest picture is always seen"
        assert len(server.sent) - before <= (1 if number > 3 else 2), "one upload a message, once it is known"
    assert (await ask(shown, server, request(*parts)))[0] == words(PUT_ASIDE)


async def test_a_picture_that_is_too_large_alone_takes_no_other_with_it() -> None:
    small, large = PIXEL + b"small", PIXEL + bytes(9 * MEGABYTE)
    contents = Contents(small, large)
    shown, server = view(contents), SmallServer(most=MEGABYTE)
    asked = request(*map(picture_part, contents.digests))
    assert await ask(shown, server, asked) == [words(PICTURE_HIDDEN), words(PICTURE_HIDDEN)]
    assert await ask(shown, server, asked) == [url(small), words(PICTURE_HIDDEN)]


async def test_pictures_that_were_taken_before_are_not_refused_for_good() -> None:
    contents = Contents(PIXEL, PIXEL + b"2")
    asked = request(*map(picture_part, contents.digests))
    shown = view(contents)
    await ask(shown, Server(), asked)
    server = Server(ProviderRejected("I would rather not", status=400))
    assert await ask(shown, server, asked) == [words(PICTURE_HIDDEN)] * 2
    for _ in range(2):
        found = await ask(shown, server, asked)
    assert found == [url(PIXEL), url(PIXEL + b"2")]


async def test_what_is_put_aside_for_a_model_is_shown_to_others() -> None:
    contents = Contents(PIXEL)
    shown, asked = view(contents), request(picture_part(contents.digests[0]))
    assert shown.put_aside(SPEC, asked.messages)
    assert not shown.put_aside(SPEC, asked.messages)
    assert await ask(shown, Server(), asked) == [words(PICTURE_HIDDEN)]
    assert await ask(shown, Server(), asked, ModelSpec(provider="openai", name="other")) == [url(PIXEL)]


@pytest.mark.parametrize(
    "error",
    [
        QuotaExceeded("no money"),
        ContextOverflow("too many tokens"),
        ProviderRejected("bad key", status=401),
        ProviderUnavailable("away"),
    ],
    ids=lambda error: str(error),
)
async def test_what_has_nothing_to_do_with_pictures_is_not_tried_again(error: Exception) -> None:
    contents, server = Contents(PIXEL), Server(error)
    with pytest.raises(type(error)):
        await ask(view(contents), server, request(picture_part(contents.digests[0])))
    assert len(server.sent) == 1


async def test_a_request_of_words_goes_as_it_is() -> None:
    server = Server()
    asked = ModelRequest(messages=[{"role": "user", "content": "hello"}])
    async for _ in view(Contents()).stream(server, SPEC, asked, KEY):
        pass
    assert server.sent == [["hello"]]
