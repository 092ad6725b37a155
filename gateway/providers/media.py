"""Servers beside the models, of OpenAI's form: they write recordings down, say texts aloud
(https://platform.openai.com/docs/api-reference/audio/createSpeech) and make pictures
(https://platform.openai.com/docs/api-reference/images). OpenAI's own, another vendor's, or one of the operator's.

A server may send anything, without end: an answer is read up to a limit, and its kind is for the caller to look at."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from gateway.providers.errors import classify, retry_after
from gateway.providers.http import FOREIGN_ERRORS, http_client
from gateway.runtime.backoff import Backoff
from gateway.runtime.clock import Clock
from gateway.runtime.errors import MediaFailed

_ATTEMPTS: Final = 3
_PAUSES: Final = (1.0, 30.0)  # seconds between two of them: the first, the longest
_LONGEST_PAUSE: Final = 60.0  # seconds that a server may ask for
_MOST_SOUND: Final = 10 * 1024 * 1024  # bytes: minutes of speech, even unpacked
_A_CHARACTER: Final = 16_000  # bytes of sound at most: unpacked and in stereo at 48 kHz, said in a twelfth of a second
_BEGINNING: Final = 500_000  # bytes that any sound may have: silence, a header, a cover
_MOST_PICTURE: Final = 20 * 1024 * 1024
_MOST_ANSWER: Final = _MOST_PICTURE * 4 // 3 + 100_000  # a picture in Base64, and what stands around it
_GIVE_BASE64: Final = ("gpt-image", "chatgpt-image")  # which refuse to be asked for it
_BY_POLICY: Final = ("moderation_blocked", "content_policy", "content_filter", "safety system")
BY_POLICY: Final = "its policy forbids this picture, so ask for another one"

Body = Callable[[], Mapping[str, Any]]
"""What httpx is to send, made anew for each attempt: a file that was read once is at its end."""


class MediaServer:
    """One of them. `does`: its work in words, as in "the server that writes it down"; `section`: where its settings
    are. `provider` is its name in the ledger."""

    provider = "media"
    free = False

    def __init__(
        self, *, base_url: str, model: str, api_key: str | None, clock: Clock, does: str, section: str
    ) -> None:
        self.model, self.who = model, f"the server that {does}"
        self._base, self._section, self._clock = base_url.rstrip("/"), section, clock
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}

    async def ask(self, path: str, most: int, body: Body, *, method: str = "POST") -> bytes:
        """The answer, of at most so many bytes. A call that came too often, or met a server in trouble, is repeated.
        Raises MediaFailed, and CancelledError: the caller limits the time."""
        backoff, url = Backoff(*_PAUSES), urljoin(f"{self._base}/", path)
        while True:
            try:
                return await self._asked(method, url, most, body())
            except MediaFailed as error:
                pause = max(backoff.pause(), error.again or 0.0)
                if error.again is None or backoff.failures == _ATTEMPTS or pause > _LONGEST_PAUSE:
                    raise
            await self._clock.sleep(pause)

    async def _asked(self, method: str, url: str, most: int, body: Mapping[str, Any]) -> bytes:
        sent, answer = {**body, "headers": {**self._headers, **body.get("headers", {})}}, bytearray()
        try:
            async with http_client() as client, client.stream(method, url, **sent) as response:
                async for chunk in response.aiter_bytes():
                    answer += chunk
                    if len(answer) > most:
                        raise MediaFailed(f"{self.who} does not stop", detail=f"over {most:,} bytes")
        except FOREIGN_ERRORS as error:
            raise MediaFailed(f"{self.who} does not answer", detail=f"{url}: {error}", again=0.0) from error
        if response.is_success:
            return bytes(answer)
        raise self._refusal(response.status_code, response.headers, answer[:10_000].decode("utf-8", "replace"))

    def _refusal(self, status: int, headers: Mapping[str, str], text: str) -> MediaFailed:
        bad_key = f"{self.who} refused its key ({self._section}.api_key)"
        said = {
            401: bad_key,
            403: bad_key,
            404: f"{self.who} does not know its model ({self._section}.model, {self._section}.base_url)",
            413: f"it is too large for {self.who}",
            429: f"{self.who} is asked too often; try again later",
        }.get(status, f"{self.who} {'has a problem; try again later' if status >= 500 else 'cannot read it'}")
        if status in (400, 403) and any(each in text.lower() for each in _BY_POLICY):
            said = BY_POLICY
        again = retry_after(headers) or 0.0 if status == 429 or status >= 500 else None
        return MediaFailed(said, detail=f"answered {status}: {classify(status, text, headers)}", again=again)


class SpeechServer(MediaServer):
    """Says texts aloud."""

    provider = "speech"

    async def say(self, text: str, voice: str, form: str) -> bytes:
        """A text as sound, of this format if the server has it. Raises MediaFailed."""
        asked = {"model": self.model, "input": text, "voice": voice, "response_format": form}
        most = min(_MOST_SOUND, _BEGINNING + _A_CHARACTER * len(text))
        return await self.ask("audio/speech", most, lambda: {"json": asked})


class PictureServer(MediaServer):
    """Makes pictures."""

    provider = "pictures"

    async def make(self, prompt: str, size: str, edited: tuple[str, bytes, str] | None) -> bytes:
        """A picture by words; or another one as it is `edited` by them: its name, content and type. Raises
        MediaFailed."""
        asked = {"model": self.model, "prompt": prompt, **({"size": size} if size else {})}
        if not self.model.startswith(_GIVE_BASE64):
            asked["response_format"] = "b64_json"

        def body() -> Mapping[str, Any]:
            if edited is None:
                return {"json": {**asked, "n": 1}}
            name, content, mime = edited
            return {"data": asked, "files": {"image": (name, BytesIO(content), mime)}}

        answer = await self.ask(f"images/{'edits' if edited else 'generations'}", _MOST_ANSWER, body)
        found = await asyncio.to_thread(_picture_in, answer)
        if isinstance(found, str):
            url = urljoin(f"{self._base}/", found)
            if urlsplit(url)[:2] != urlsplit(self._base)[:2]:  # nobody may have this machine ask another one
                raise MediaFailed(
                    f"{self.who} redirects to another address, which Legato does not follow", detail=url[:200]
                )
            found = await self.ask(url, _MOST_PICTURE, dict, method="GET")
        if not found:
            raise MediaFailed(f"{self.who} sent nothing", detail=repr(answer[:200]))
        return found


def _picture_in(answer: bytes) -> bytes | str:
    """The picture in an answer, or its address; nothing if the answer has none."""
    try:
        (first, *_) = json.loads(answer)["data"]
        packed, address = first.get("b64_json"), first.get("url")
        return base64.b64decode(packed, validate=True) if isinstance(packed, str) else str(address or "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return b""
