"""A loopback server with OpenAI's `/audio/speech`, `/images/generations` and `/images/edits`, as strict as the real one
(https://platform.openai.com/docs/api-reference/audio/createSpeech, …/images/create, …/images/createEdit).

    async with MediaServer() as server:
        settings = SpeechSettings(model="tts-1", base_url=server.url)

`server.answers` are given first, one each, in the place of sound and pictures. Every text that was said is in
`server.said`, as (text, voice, format); every call for a picture in `server.asked`; and what was wrong with any call in
`server.violations`.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any, Final, Self

from aiohttp import web

from tests.emulators.transcription import Refusal, opus
from tests.support.pictures import png

LONGEST_INPUT: Final = 4_096  # characters
LARGEST_IMAGE: Final = 50 * 1024 * 1024
SIZES: Final = ("auto", "256x256", "512x512", "1024x1024", "1536x1024", "1024x1536", "1792x1024", "1024x1792")
FORMATS: Final = ("mp3", "opus", "aac", "flac", "wav", "pcm")
MP3: Final = b"\xff\xf3\x44\xc4" + bytes(400)
ENDLESS: Final = "endless"  # an answer that never ends
BY_POLICY: Final = Refusal(
    status=400,
    body=json.dumps(
        {
            "error": {
                "message": "Your request was rejected by the safety system.",
                "type": "image_generation_user_error",
                "code": "moderation_blocked",
            }
        }
    ),
)

Answer = Refusal | bytes | str


class MediaServer:
    """The emulator. `pace`: called before each answer, so that a test may hold it up."""

    def __init__(self, *, api_key: str | None = None, links: bool = False) -> None:
        self.api_key = api_key
        self.links = links  # whether pictures come as addresses, where nobody asks for Base64
        self.answers: list[Answer] = []
        self.said: list[tuple[str, str, str]] = []
        self.asked: list[dict[str, Any]] = []
        self.violations: list[str] = []
        self.before: Callable[[], Any] | None = None
        self.url = ""
        self.picture = png(64, 48)
        self._runner: web.AppRunner | None = None
        self._closing = asyncio.Event()

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=LARGEST_IMAGE + 65_536)
        app.router.add_post("/v1/audio/speech", self._speech)
        app.router.add_post("/v1/images/generations", self._generations)
        app.router.add_post("/v1/images/edits", self._edits)
        app.router.add_get("/made.png", self._made)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        assert self._runner is not None
        await self._runner.cleanup()

    async def _speech(self, request: web.Request) -> web.StreamResponse:
        form = await request.json()
        if (refusal := self._refused(request, form, ("model", "input", "voice"))) is not None:
            return refusal
        kind, text = form.get("response_format", "mp3"), form["input"]
        if kind not in FORMATS or not isinstance(text, str) or not 0 < len(text) <= LONGEST_INPUT:
            return self._wrong(f"not said: {kind}, {len(text)} characters")
        self.said.append((text, form["voice"], kind))
        sound = sound_of(text) if kind == "opus" else MP3
        return await self._given(request, sound, "audio/ogg" if kind == "opus" else "audio/mpeg")

    async def _generations(self, request: web.Request) -> web.StreamResponse:
        form = await request.json()
        return self._refused(request, form, ("prompt",)) or await self._drawn(request, form)

    async def _edits(self, request: web.Request) -> web.StreamResponse:
        fields = await request.post()
        image = fields.get("image")
        if not isinstance(image, web.FileField) or image.content_type not in ("image/png", "image/jpeg", "image/webp"):
            return self._wrong("no image to be edited")
        form = {name: value for name, value in fields.items() if isinstance(value, str)}
        refusal = self._refused(request, form, ("prompt",))
        return refusal or await self._drawn(request, {**form, "image": image.file.read()})

    async def _drawn(self, request: web.Request, form: dict[str, Any]) -> web.StreamResponse:
        model, size, shape = form.get("model", "dall-e-2"), form.get("size", "auto"), form.get("response_format")
        if shape is not None and model.startswith("gpt-image"):
            return self._wrong("Unknown parameter: 'response_format'.")
        if size not in SIZES or shape not in (None, "url", "b64_json"):
            return self._wrong(f"Invalid value: '{size}'.")
        self.asked.append(form)
        made = {"b64_json": base64.b64encode(self.picture).decode()}
        if self.links:
            made = {"url": f"{self.url.removesuffix('/v1')}/made.png"}
        return await self._given(request, json.dumps({"created": 1, "data": [made]}).encode(), "application/json")

    async def _made(self, request: web.Request) -> web.Response:
        return web.Response(body=self.picture, content_type="image/png")

    async def _given(self, request: web.Request, content: bytes, mime: str) -> web.StreamResponse:
        """The answer, or the one that a test wants; in pieces, as such servers stream."""
        if self.before is not None:
            await self.before()
        answer = self.answers.pop(0) if self.answers else content
        if isinstance(answer, Refusal):
            if answer.hangs:
                await self._closing.wait()
            return web.Response(status=answer.status, text=answer.body, headers=answer.headers)
        stream = web.StreamResponse(headers={"Content-Type": mime})
        await stream.prepare(request)
        while answer == ENDLESS and not self._closing.is_set():
            await stream.write(b"OggS" + bytes(1 << 20))
        await stream.write(content if isinstance(answer, str) else answer)
        return stream

    def _refused(self, request: web.Request, form: Any, needed: tuple[str, ...]) -> web.Response | None:
        if self.api_key and request.headers.get("Authorization") != f"Bearer {self.api_key}":
            return _error(401, "Incorrect API key provided.")
        missing = [name for name in needed if not form.get(name)]
        return self._wrong(f"you must provide {missing[0]}") if missing else None

    def _wrong(self, what: str) -> web.Response:
        self.violations.append(what)
        return _error(400, what)


def sound_of(text: str) -> bytes:
    """How it says a text, in Ogg."""
    return opus(len(text) / 15, text[:200].encode())


def _error(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message, "type": "invalid_request_error"}}, status=status)
