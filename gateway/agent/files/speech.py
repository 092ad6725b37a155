"""Voice messages in words, for models that do not hear: transcribed once, and kept with the conversation.

The words are kept under the recording's digest before they are used, so no recording is paid for twice, even after a
crash or if it is sent again.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Final, Literal

import structlog
from msgspec import Struct, field
from pydantic import Field

from gateway.agent.caps import millionths
from gateway.agent.conversation import Conversation
from gateway.agent.metering import Metering
from gateway.domain.chat import WORDS, KeptFile, SessionKey
from gateway.domain.settings import Contradiction, Count, Dollars, Seconds, ServerSettings, Text, Texts
from gateway.domain.speech import Transcriber, Transcript, recorded_seconds
from gateway.domain.wording import lasting
from gateway.runtime import program
from gateway.runtime.clock import Clock
from gateway.runtime.errors import MediaFailed, SpendCapReached, StoreUnavailable
from gateway.store.port import FileStore

log = structlog.get_logger(__name__)

_FILE: Final = "{file}"
_AT_ONCE: Final = 8  # recordings in this process: each is held in memory meanwhile
_PASSED_ON: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ")  # of the gateway's environment, and nothing else
_SLOWEST: Final = 1_000  # bytes of a second of speech, at least: of a recording that does not say how long it is
_SHOWN: Final = 1_000  # characters that the person is shown

UNDERSTOOD: Final = "🎙 “{words}”"
NOTHING_HEARD: Final = "🎙 I could not hear anything in your {what}."
NOT_WRITTEN: Final = "I could not write your {what} down: {reason}."
TOO_LONG: Final = "it is longer than {most}"
TOO_LARGE: Final = "it is larger than {most:g} MB"
TOO_SLOW: Final = "it took longer than {seconds:g} seconds"
NO_BUDGET: Final = "a spend cap does not allow it"


class TranscriptionSettings(ServerSettings):
    """For a model that cannot hear, a server with OpenAI's /audio/transcriptions, or your own command, turns voice
    messages into text (docs/voice.md).

        transcription:
          {base_url: "https://api.openai.com/v1", model: whisper-1, api_key: "${OPENAI_API_KEY}", usd_per_minute: 0.006}
        transcription: {base_url: "http://127.0.0.1:8000/v1", model: large-v3}        # a server of your own
        transcription: {command: [whisper-cli, -m, /models/ggml-base.bin, -nt, -f, "{file}"]}   # prints the words
    """

    language: Text | None = Field(None, description="the spoken language, such as en; null: the server finds out")
    command: Texts = Field((), description='a program with its arguments, one of them "{file}", that prints the words')
    max_seconds: Seconds = Field(900, description="seconds; longer recordings are not transcribed")
    max_mb: Annotated[float, Field(strict=True, gt=0, le=100, allow_inf_nan=False)] = Field(
        25, description="MB; larger recordings are not transcribed"
    )
    usd_per_minute: Dollars | None = Field(None, description="the price per minute; null: unknown")

    def contradictions(self) -> Iterator[Contradiction]:
        yield from super().contradictions()
        if self.base_url is not None and self.command:
            yield ("command", "base_url"), "and transcription.base_url cannot be used together: leave one out"
        if self.command and not any(_FILE in each for each in self.command[1:]):
            yield ("command",), 'must hold "{file}" after the program, where the recording\'s file is named'


class SpeechSettings(ServerSettings):
    """The bot speaks its answers, with a server that has OpenAI's /audio/speech (docs/voice.md). In a chat, /voice on
    and /voice off turn spoken answers on and off.

        speech: {base_url: "https://api.openai.com/v1", model: tts-1, api_key: "${OPENAI_API_KEY}"}
        speech: {base_url: "http://127.0.0.1:8880/v1", model: kokoro, voice: af_heart}    # a server of your own
    """

    voice: Text = Field("alloy", description="the name of the voice on the server")
    when: Literal["voice", "always", "asked"] = Field(
        "voice", description="voice: after a voice message; always: each answer; asked: only after /voice on"
    )
    max_chars: Count = Field(1_500, description="how many characters of an answer are spoken")
    timeout: Seconds = Field(60, description="seconds that each part may take")
    usd_per_million_chars: Dollars | None = Field(None, description="the price; null: unknown")


class Spoken(Struct, frozen=True, kw_only=True):
    """The words of a recording, kept under `digest`; "" if there are none. `problem`: why nobody knows them."""

    words: str = ""
    problem: str | None = None
    digest: str = ""

    def told(self, what: str) -> str:
        """Return the line about the recording that the person is shown. `what`: "voice message", say."""
        if self.problem is not None:
            return NOT_WRITTEN.format(what=what, reason=self.problem)
        if not self.words:
            return NOTHING_HEARD.format(what=what)
        cut = self.words if len(self.words) <= _SHOWN else self.words[: _SHOWN - 1] + "…"
        return UNDERSTOOD.format(words=cut)


class Dictation(Struct, kw_only=True):
    """Writes recordings down, within the limits of the settings and the spend caps."""

    store: FileStore
    transcriber: Transcriber
    settings: TranscriptionSettings
    metering: Metering
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    def refusal(self, size: int | None, seconds: float | None) -> str | None:
        """Return the reason why a recording of this size and length is not written down; None: it is."""
        if seconds is not None and seconds > self.settings.max_seconds:
            return TOO_LONG.format(most=lasting(self.settings.max_seconds))
        if size is not None and size > self.settings.max_mb * 1024**2:
            return TOO_LARGE.format(most=self.settings.max_mb)
        return "it is empty" if size == 0 else None

    async def write_down(self, conversation: Conversation, digest: str, content: bytes, form: str) -> Spoken:
        """The words of a recording, which are kept under this digest. If a call was made, it is entered into the ledger
        at once; into the conversation's if the store cannot take it now. Raises nothing but CancelledError."""
        try:
            words = await self.known(conversation.stored.session.key, digest)
            if words is None:
                seconds = recorded_seconds(content, form)
                if problem := self.refusal(len(content), seconds):
                    return Spoken(problem=problem)
                words = await self._written(conversation, digest, content, form, seconds)
        except TimeoutError:
            return Spoken(problem=TOO_SLOW.format(seconds=self.settings.timeout))
        except SpendCapReached:
            return Spoken(problem=NO_BUDGET)
        except MediaFailed as error:
            log.warning("not_written_down", reason=str(error), detail=error.detail)
            return Spoken(problem=str(error))
        except StoreUnavailable as error:
            return Spoken(problem=str(error).rstrip("."))
        return Spoken(words=words, digest=digest)

    async def _written(
        self, conversation: Conversation, digest: str, content: bytes, form: str, seconds: float | None
    ) -> str:
        session, charge = conversation.stored.session, conversation.ledger.append
        assumed = seconds or min(self.settings.max_seconds, len(content) / _SLOWEST)
        bought = self.metering.buying(session, "transcription", self.transcriber, self._price(assumed), charge)
        async with self._room, bought as paid:
            async with self.metering.clock.limit(self.settings.timeout):
                transcript = await self.transcriber.transcribe(content, form, digest)
            paid(self._price(transcript.seconds or assumed), transcript.usage)
        try:  # behind the cost: nobody pays for words that are known already
            await self._keep(session.key, digest, transcript.words)
        except StoreUnavailable as error:  # it is paid for, and can be used now
            log.warning("words_not_kept", error=str(error))
        return transcript.words

    async def known(self, key: SessionKey, digest: str) -> str | None:
        """Return the words of a recording that was written down before; None: it was not. Raises StoreUnavailable."""
        kept = await self.store.kept_file(key, WORDS + digest)
        content = None if kept is None else await self.store.file_content(key, kept.digest)
        return None if content is None else content.decode("utf-8", "replace")

    async def _keep(self, key: SessionKey, digest: str, words: str) -> None:
        content = words.encode("utf-8", "replace")
        file = KeptFile(
            ref=WORDS + digest,
            digest=sha256(content).hexdigest(),
            name="",
            mime="text/plain",
            size=len(content),
            at=self.metering.clock.now(),
        )
        await self.store.keep_file(key, file, content)

    def _price(self, seconds: float) -> float | None:
        if self.transcriber.free:
            return 0.0
        per_minute = self.settings.usd_per_minute
        return None if per_minute is None else millionths(per_minute * seconds / 60) / 1_000_000


class Command:
    """A program of the operator's, which reads a file and prints its words."""

    provider = "command"
    free = True

    def __init__(self, argv: Sequence[str], *, seconds: float, clock: Clock) -> None:
        self.model = Path(argv[0]).name
        self._argv = argv
        self._seconds = seconds
        self._clock = clock

    async def transcribe(self, sound: bytes, form: str, digest: str) -> Transcript:
        """Run the program on the recording."""
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="legato-voice-"))
        file = folder / f"voice.{form}"
        try:
            await asyncio.to_thread(file.write_bytes, sound)
            environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
            ended = await program.run(
                [each.replace(_FILE, str(file)) for each in self._argv],
                folder=folder,
                environment=environment,
                seconds=self._seconds,
                clock=self._clock,
                apart=True,
            )
        except OSError as error:
            raise MediaFailed("the program that writes it down cannot be run", detail=str(error)) from error
        finally:
            await asyncio.shield(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))
        if ended.late:
            raise MediaFailed(TOO_SLOW.format(seconds=self._seconds))
        if ended.code:
            detail = f"exit code {ended.code}: {ended.errors[-500:]}"
            raise MediaFailed("the program that writes it down failed", detail=detail)
        return Transcript(text=ended.output)
