"""Recordings written down by a server with OpenAI's `/audio/transcriptions`
(https://platform.openai.com/docs/api-reference/audio/createTranscription): OpenAI's own, Groq's, or one of the
operator's, such as whisper.cpp's, faster-whisper's or LocalAI's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any, Final

from gateway.domain.speech import Transcript
from gateway.domain.usage import CanonicalUsage
from gateway.providers.media import MediaServer
from gateway.runtime.errors import MediaFailed

_MOST: Final = 4 * 1024 * 1024  # bytes of an answer
# Whisper's own rule: https://github.com/openai/whisper/blob/main/whisper/transcribe.py
_NO_SPEECH, _UNSURE = 0.6, -1.0
_MIME: Final[Mapping[str, str]] = {"mp3": "audio/mpeg", "m4a": "audio/mp4"}


class TranscriptionServer(MediaServer):
    """Writes recordings down. `language`: the spoken one, as ISO 639-1; None: the server finds out."""

    provider = "transcription"

    def __init__(self, *, language: str | None, **server: Any) -> None:
        super().__init__(**server, does="writes it down", section="transcription")
        # Newer models give plain JSON only; of Whisper's, the long form says whether anybody speaks.
        form = "verbose_json" if "whisper" in self.model.lower() else "json"
        self._fields = {"model": self.model, "response_format": form, **({"language": language} if language else {})}

    async def transcribe(self, sound: bytes, form: str, digest: str) -> Transcript:
        """Have a recording written down."""
        # The digest of the content cannot stand in the content: nobody can end the part early.
        headers = {"Content-Type": f"multipart/form-data; boundary={digest}"}

        def body() -> Mapping[str, Any]:
            # A file is read piece by piece: written at once, megabytes would hold up everybody else.
            files = {"file": (f"voice.{form}", BytesIO(sound), _MIME.get(form, f"audio/{form}"))}
            return {"data": self._fields, "files": files, "headers": headers}

        return _transcript((await self.ask("audio/transcriptions", _MOST, body)).decode("utf-8", "replace"))


def _transcript(text: str) -> Transcript:
    """The server's answer. Raises MediaFailed if it is not a transcript."""
    try:
        told: Any = json.loads(text)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or not isinstance(told.get("text"), str):
        raise MediaFailed("the server that writes it down answered something else", detail=text[:200])
    usage = told.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return Transcript(
        text=told["text"],
        seconds=_amount(told.get("duration")) or _amount(usage.get("seconds")),
        silent=_is_silent(told.get("segments")),
        usage=CanonicalUsage(
            input_tokens=int(_amount(usage.get("input_tokens"))), output_tokens=int(_amount(usage.get("output_tokens")))
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
