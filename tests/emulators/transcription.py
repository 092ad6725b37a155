"""A loopback server with OpenAI's `/audio/transcriptions`, as strict as the real one: multipart bodies, 25 MB, formats
by name and by content, keys, and what goes wrong.

    async with TranscriptionServer() as server:
        settings = TranscriptionSettings(model="whisper-1", base_url=server.url)

`server.says` is what it hears, a text or a function of the recording; `server.refusals` are answered first, one each.
Every call is kept in `server.calls`, and what was wrong with any in `server.violations`.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Self

from aiohttp import web

# https://platform.openai.com/docs/guides/speech-to-text: 25 MB, and these formats.
MOST: Final = 25 * 1024 * 1024
FORMATS: Final = ("flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "oga", "ogg", "wav", "webm")
_MARKS: Final = {"ogg": b"OggS", "oga": b"OggS", "wav": b"RIFF", "flac": b"fLaC"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One that was answered: its fields, the file's name, type and content."""

    fields: dict[str, str]
    name: str
    mime: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An answer that is none. `hangs`: it never comes."""

    status: int = 500
    body: str = '{"error": {"message": "The server had an error", "type": "server_error"}}'
    headers: dict[str, str] = field(default_factory=dict)
    hangs: bool = False


class TranscriptionServer:
    """The emulator."""

    def __init__(
        self,
        says: str | Callable[[bytes], str] = "",
        *,
        api_key: str | None = None,
        segments: list[dict[str, Any]] | None = None,
        seconds: float = 12.5,
        port: int = 0,
    ) -> None:
        self.says = says
        self.segments = segments
        self.seconds = seconds
        self.api_key = api_key
        self._port = port
        self.refusals: list[Refusal] = []
        self.asked = 0
        self.calls: list[Call] = []
        self.violations: list[str] = []
        self.url = ""
        self._runner: web.AppRunner | None = None
        self._closing = asyncio.Event()

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=MOST + 65_536)
        app.router.add_post("/v1/audio/transcriptions", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        assert self._runner is not None
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        if self.refusals:
            refusal = self.refusals.pop(0)
            await request.read()
            if refusal.hangs:
                await self._closing.wait()
            return web.Response(status=refusal.status, text=refusal.body, headers=refusal.headers)
        if self.api_key and request.headers.get("Authorization") != f"Bearer {self.api_key}":
            return _error(401, "Incorrect API key provided: sk-***. You can find your API key at your account page.")
        if request.content_type != "multipart/form-data":
            self.violations.append(f"body of type {request.content_type}")
            return _error(400, "Could not parse multipart form")
        try:
            form = await request.post()
        except (ValueError, web.HTTPRequestEntityTooLarge) as error:
            return _error(413 if isinstance(error, web.HTTPRequestEntityTooLarge) else 400, str(error))
        return self._transcribed(form)

    def _transcribed(self, form: Any) -> web.Response:
        sent = form.get("file")
        if not isinstance(sent, web.FileField):
            self.violations.append("no file")
            return _error(400, "you must provide a file")
        content = sent.file.read()
        fields = {name: value for name, value in form.items() if isinstance(value, str)}
        if "model" not in fields:
            return _error(400, "you must provide a model parameter")
        if len(content) > MOST:
            return _error(413, f"Maximum content size limit ({MOST}) exceeded ({len(content)} bytes read)")
        ending = sent.filename.rpartition(".")[2]
        mark = _MARKS.get(ending, b"")
        if ending not in FORMATS or not content.startswith(mark) or len(content) < 100:
            return _error(400, f"Invalid file format. Supported formats: {list(FORMATS)}")
        self.calls.append(Call(fields=fields, name=sent.filename, mime=sent.content_type, content=content))
        text = self.says if isinstance(self.says, str) else self.says(content)
        told: dict[str, Any] = {"text": text, "usage": {"type": "duration", "seconds": round(self.seconds)}}
        if fields.get("response_format") == "verbose_json":
            if "whisper" not in fields["model"]:
                return _error(400, "response_format 'verbose_json' is not compatible with this model")
            told |= {"task": "transcribe", "language": "english", "duration": self.seconds}
            told["segments"] = self.segments or [
                {"id": 0, "text": text, "no_speech_prob": 0.01, "avg_logprob": -0.2, "compression_ratio": 1.2}
            ]
        return web.json_response(told)


def _error(status: int, message: str) -> web.Response:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return web.json_response({"error": {"message": message, "type": kind}}, status=status)


def opus(seconds: float, salt: bytes = b"") -> bytes:
    """An Ogg file with Opus in it, as Telegram's voice messages are: headers, and packets of silence."""
    return opus_of([b"\xf8\xff\xfe"] * max(1, round(seconds * 50)), salt)


def opus_of(packets: list[bytes], salt: bytes = b"", *, samples: int = 960) -> bytes:
    """The same with these packets, of 20 ms each unless they hold other `samples` of 48,000 a second."""
    head = b"OpusHead" + struct.pack("<BBHIhB", 1, 1, 312, 48_000, 0, 0)
    tags = b"OpusTags" + struct.pack("<I", len(salt)) + salt + struct.pack("<I", 0)
    pages = [_page(0, 0, 2, [head]), _page(1, 0, 0, [tags])]
    for number, at in enumerate(range(0, len(packets), 200), 2):
        held, ends = packets[at : at + 200], at + 200 >= len(packets)
        pages.append(_page(number, (at + len(held)) * samples, 4 if ends else 0, held))
    return b"".join(pages)


def _page(number: int, position: int, kind: int, packets: list[bytes]) -> bytes:
    """A page of https://www.rfc-editor.org/rfc/rfc3533."""
    sizes = bytes(len(each) for each in packets)
    head = b"OggS" + struct.pack("<BBqIIIB", 0, kind, position, 7, number, 0, len(sizes)) + sizes
    page = head + b"".join(packets)
    checksum = 0
    for byte in page:
        checksum ^= byte << 24
        for _ in range(8):
            checksum = ((checksum << 1) ^ (0x04C11DB7 if checksum & 0x80000000 else 0)) & 0xFFFFFFFF
    return page[:22] + struct.pack("<I", checksum) + page[26:]
