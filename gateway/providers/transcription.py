"""Recordings written down by a server with OpenAI's `/audio/transcriptions`
(https://platform.openai.com/docs/api-reference/audio/createTranscription): OpenAI's own, Groq's, or one of the
operator's, such as whisper.cpp's, faster-whisper's or LocalAI's."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from io import BytesIO
from typing import Any, Final

import httpx

from gateway.domain.speech import Transcript
from gateway.domain.usage import CanonicalUsage
from gateway.providers.errors import classify, retry_after
from gateway.providers.http import FOREIGN_ERRORS
from gateway.runtime.backoff import Backoff
from gateway.runtime.clock import Clock
from gateway.runtime.errors import TranscriptionFailed

_ATTEMPTS: Final = 3
_PAUSES: Final = (1.0, 30.0)  # seconds between two of them: the first, the longest
_LONGEST_PAUSE: Final = 60.0  # seconds that a server may ask for
_MOST: Final = 4 * 1024 * 1024  # bytes of an answer
# Whisper's own rule: https://github.com/openai/whisper/blob/main/whisper/transcribe.py
_NO_SPEECH, _UNSURE = 0.6, -1.0
_MIME: Final[Mapping[str, str]] = {"mp3": "audio/mpeg", "m4a": "audio/mp4"}


class _Later(Exception):
    """The server may do it later; `seconds`: when it asks to be asked again."""

    def __init__(self, failed: TranscriptionFailed, seconds: float | None = None) -> None:
        super().__init__(str(failed))
        self.failed = failed
        self.seconds = seconds


class TranscriptionServer:
    """Asks the server at `base_url`. `client` is `providers.http.http_client()`, and belongs to this instance from then
    on. `language`: the spoken language, as ISO 639-1; None: the server finds out."""

    provider = "transcription"
    free = False

    def __init__(
        self,
        client: httpx.AsyncClient,
        *,
        base_url: str,
        model: str,
        api_key: str | None,
        language: str | None,
        clock: Clock,
    ) -> None:
        self.model = model
        self._client = client
        self._url = f"{base_url.rstrip('/')}/audio/transcriptions"
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        # Newer models give plain JSON only; of Whisper's, the long form says whether anybody speaks.
        form = "verbose_json" if "whisper" in model.lower() else "json"
        self._fields = {"model": model, "response_format": form, **({"language": language} if language else {})}
        self._clock = clock

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def transcribe(self, sound: bytes, form: str, digest: str) -> Transcript:
        """Have a recording written down. A call that came too often, or met a server in trouble, is repeated."""
        backoff = Backoff(*_PAUSES)
        while True:
            try:
                return await self._asked(sound, form, digest)
            except _Later as later:
                pause = max(backoff.pause(), later.seconds or 0)
                if backoff.failures == _ATTEMPTS or pause > _LONGEST_PAUSE:
                    raise later.failed from later
            await self._clock.sleep(pause)

    async def _asked(self, sound: bytes, form: str, digest: str) -> Transcript:
        # The digest of the content cannot stand in the content: nobody can end the part early.
        headers = {**self._headers, "Content-Type": f"multipart/form-data; boundary={digest}"}
        # A file is read piece by piece: written at once, megabytes would hold up everybody else.
        files = {"file": (f"voice.{form}", BytesIO(sound), _MIME.get(form, f"audio/{form}"))}
        call = self._client.stream("POST", self._url, data=self._fields, files=files, headers=headers)
        try:
            async with call as response:
                text = await _read(response.aiter_bytes())
        except FOREIGN_ERRORS as error:
            failed = TranscriptionFailed("nobody answers who could write it down", detail=f"{self._url}: {error}")
            raise _Later(failed) from error
        if response.is_success:
            return _transcript(text)
        raise self._refusal(response, text)

    def _refusal(self, response: httpx.Response, text: str) -> _Later | TranscriptionFailed:
        status = response.status_code
        detail = f"{self._url} answered {status}: {classify(status, text, response.headers)}"
        said = {
            401: "the server that writes it down refused its key (transcription.api_key)",
            403: "the server that writes it down refused its key (transcription.api_key)",
            404: "the server that writes it down does not know its model (transcription.model, transcription.base_url)",
            413: "it is too large for the server that writes it down",
            429: "the server that writes it down is asked too often; send it again later",
        }.get(status, "the server that writes it down cannot read it")
        if status == 429:
            return _Later(TranscriptionFailed(said, detail=detail), retry_after(response.headers))
        if status >= 500:
            said = "the server that writes it down has a problem; send it again later"
            return _Later(TranscriptionFailed(said, detail=detail), retry_after(response.headers))
        return TranscriptionFailed(said, detail=detail)


async def _read(chunks: AsyncIterator[bytes]) -> str:
    read = b""
    async for chunk in chunks:
        read += chunk
        if len(read) > _MOST:
            raise TranscriptionFailed("the server that writes it down does not stop", detail=f"over {_MOST:,} bytes")
    return read.decode("utf-8", "replace")


def _transcript(text: str) -> Transcript:
    """The server's answer. Raises TranscriptionFailed if it is none."""
    try:
        told: Any = json.loads(text)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or not isinstance(told.get("text"), str):
        raise TranscriptionFailed("the server that writes it down answered something else", detail=text[:200])
    usage = told.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return Transcript(
        text=told["text"],
        seconds=_amount(told.get("duration")) or _amount(usage.get("seconds")),
        silent=_is_silent(told.get("segments")),
        usage=CanonicalUsage(
            input_tokens=int(_amount(usage.get("input_tokens"))),
            output_tokens=int(_amount(usage.get("output_tokens"))),
        ),
    )


def _is_silent(segments: Any) -> bool:
    if not isinstance(segments, list) or not segments:
        return False
    return all(
        isinstance(each, dict)
        and (_number(each.get("no_speech_prob")) or 0) > _NO_SPEECH
        and (_number(each.get("avg_logprob")) or 0) < _UNSURE
        for each in segments
    )


def _number(value: Any) -> float | None:
    """A finite number; some servers write them as texts."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if abs(number) < 1e9 and not isinstance(value, bool) else None


def _amount(value: Any) -> float:
    """A number of something; 0 for no amount."""
    return max(0.0, _number(value) or 0.0)
