"""A message's files are fetched from its platform once, and kept: another attempt at the turn, in any process, finds
them in the store.

A file is fetched only if the conversation's model may be shown it, or a tool may change it. One that cannot be fetched
becomes a clause in the message and never an error: the person's words are answered all the same.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from importlib import import_module
from typing import Final, TypeVar

import structlog
from msgspec import Struct, field

from gateway.agent.conversation import Conversation
from gateway.agent.files.frames import MOST_FRAMES, SOUND, Frames
from gateway.agent.files.kinds import (
    NOT_TEXT,
    FileText,
    Reading,
    is_document,
    is_opaque,
    is_sound,
    read,
    reading_of,
    sound_format,
    text_in,
)
from gateway.agent.files.message import (
    MOST_TEXT,
    NO_PICTURES,
    ONE_FRAME,
    Reader,
    Received,
    no_sounds,
    not_shown,
    with_files,
)
from gateway.agent.files.quota import NOT_KEPT, FileQuotas
from gateway.agent.files.speech import Dictation, Spoken
from gateway.agent.files.view import FileView
from gateway.domain.adapter import Adapter, CanFetch
from gateway.domain.chat import (
    OUTPUT,
    Attachment,
    ChatAddress,
    Inbound,
    KeptFile,
    SessionKey,
    Source,
    named,
    one_line,
)
from gateway.domain.message import Message
from gateway.runtime.aside import RunsAside
from gateway.runtime.backoff import Backoff
from gateway.runtime.clock import Clock
from gateway.runtime.errors import (
    AdapterError,
    FileRefused,
    NothingSaid,
    RateLimited,
    StoreUnavailable,
    TookTooLong,
)
from gateway.runtime.structs import replace
from gateway.runtime.tokens import IMAGE_TOKENS, TokenCounter
from gateway.store.port import FileStore

log = structlog.get_logger(__name__)

T = TypeVar("T")
Show = Callable[[str, str], Awaitable[None]]
"""Shows the person a sentence about the file of this ref, once, whatever is repeated."""

Content = Callable[[], Awaitable[bytes]]
"""Fetches a file when it is first needed. Raises one of `_NOT_HAD`."""

_SECONDS: Final = 120.0  # for one file, all attempts together
_ATTEMPTS: Final = 3
_MOST_CARRIED: Final = 1_000  # files into a copy of a conversation
_PAUSES: Final = (1.0, 60.0)  # seconds between two of them: the first, the longest
_AT_ONCE: Final = 16  # files in this process's memory, until they are kept and read
_TOLD_EVERY: Final = 3_600.0  # seconds between two complaints that nothing is understood in a room

FAILED = "which could not be fetched: {reason}"
UNKEPT = "which could not be kept here: {reason}"
UNREAD = "I cannot read {name}: {reason}."
UNFETCHED = "I could not fetch {name}: {reason}."
UNHEARD = (
    "🎙 I could not write down what was said: {reason}. Until I show your words here again, I cannot understand voice "
    "messages."
)
UNSEEN = "I cannot watch {name}, because it came without a preview frame."
NO_FRAME = "which you cannot watch: it came without a preview frame"
TOO_SLOW = f"{{platform}} did not hand it over within {_SECONDS / 60:g} minutes"
_WHAT: Final = {"voice": "voice message", "image": "picture"}
_NOT_HAD: Final = (TimeoutError, AdapterError, StoreUnavailable)
TOO_STRANGE: Final = "it is damaged, or takes too long to read"
NO_EARS: Final = "the model takes no sound"
NOT_HERE = "this gateway cannot fetch files from {platform}"


class _Bringing(Struct, frozen=True):
    """Whose files are taken in, where, for which model, and how their sender is told of them."""

    conversation: Conversation
    source: Source
    reader: Reader
    show: Show

    @property
    def key(self) -> SessionKey:
        return self.conversation.stored.session.key


class FileIntake(Struct, frozen=True, kw_only=True):
    """Makes messages of Inbounds that came with files."""

    store: FileStore
    adapters: Mapping[str, Adapter]
    view: FileView
    counter: TokenCounter
    clock: Clock
    quotas: FileQuotas
    aside: RunsAside
    dictation: Dictation | None = None  # the writer of words for a model that takes no sounds
    frames: Frames | None = None
    paints: bool = False  # a tool changes pictures, also those that the model does not see
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))
    _deaf: dict[ChatAddress, float] = field(default_factory=dict)  # rooms where nothing is understood; when told so

    async def message(
        self, conversation: Conversation, inbound: Inbound, alive: Callable[[], None], show: Show
    ) -> Message:
        """The user's message for the conversation's model, files and all; `alive` is called after each file. Raises
        NothingSaid and StoreUnavailable."""
        spec, key = conversation.spec, conversation.stored.session.key
        reader = Reader(
            window=spec.context_length,
            sees=self.view.sees(spec),
            sounds=spec.sounds,
            count=self.counter.text,
            image_tokens=IMAGE_TOKENS,
        )
        bringing, received = _Bringing(conversation, inbound.source, reader, show), []
        for file in inbound.attachments:
            if file.is_video:
                received.append(await self._watched(bringing, file))
            elif file.in_passing:
                received.append(await self._in_passing(bringing, file))
            else:
                got, content = await self._received(bringing, file)
                alive()
                received.append(await self._heard(bringing, got, content))
            alive()
        if unread := "\n".join(filter(None, map(_unread, received))):
            await show("unread", unread)
        return with_files(key, inbound, received, reader)

    async def _received(self, bringing: _Bringing, file: Attachment) -> tuple[Received, bytes]:
        """A file, with its content if that is to be transcribed."""
        key, platform, reader = bringing.key, bringing.source.platform, bringing.reader
        problem = self._not_wanted(file, reader)
        if problem is not None:
            return problem, b""
        async with self._room:
            try:
                kept, content = await self._content(key, platform, file)
                if kept is None:
                    refusal = await self._no_room(bringing, f"{platform}:{file.ref}", file, len(content))
                    if refusal is not None:
                        return refusal, b""
                    kept = await self._kept(key, f"{platform}:{file.ref}", file, content)
            except _NOT_HAD as error:
                return _lost(file, platform, error), b""
            reading = await _reading(content, kept.mime, MOST_TEXT, self.aside)
            unheard = reading.sound is not None and reading.sound not in reader.sounds
            return Received(attachment=file, kept=kept, reading=reading), content if unheard else b""

    async def carry(self, messages: Sequence[Message], origin: SessionKey, to: SessionKey, source: Source) -> None:
        """Keep the files that these messages name in another conversation of their person, too. Raises FileRefused."""

        async def tell(_: str) -> None:
            """Who copies sends nothing."""

        names = json.dumps(messages)
        files = [each for each in await self.store.kept_files(origin, _MOST_CARRIED) if each.digest[:12] in names]
        sizes = [
            each.size
            for each in files
            if not each.ref.startswith(OUTPUT) and await self.store.kept_file(to, each.ref) is None
        ]
        await self.quotas.fit(source, sum(sizes))  # all or none: half of a copy would take room for nothing
        for file in files:
            content = await self.store.file_content(origin, file.digest)
            if content is None:
                continue
            if not file.ref.startswith(OUTPUT):
                await self.quotas.take(to, source, file.ref, file.size, tell)
            await self.store.keep_file(to, file, content)

    async def _content(self, key: SessionKey, platform: str, file: Attachment) -> tuple[KeptFile | None, bytes]:
        """What is kept of a file, and its content, which is fetched if need be. Raises one of `_NOT_HAD`."""
        kept = await self.store.kept_file(key, f"{platform}:{file.ref}")
        content = None if kept is None else await self.store.file_content(key, kept.digest)
        if content is not None:
            return kept, content
        return None, await self._fetched(platform, file)

    async def _watched(self, bringing: _Bringing, file: Attachment) -> Received:
        """A video with pictures of it, and with the words of its sound where they are written down."""
        fetched = list[bytes]()

        async def video() -> bytes:
            if not fetched:
                fetched.append((await self._content(bringing.key, bringing.source.platform, file))[1])
            return fetched[0]

        got = await self._seen(bringing, file, video)
        if (spoken := await self._overheard(bringing, file, video)) is None:
            return got
        if spoken.words or spoken.problem:
            await bringing.show(file.ref, spoken.told("video"))
        return replace(got, spoken=spoken, told="")

    async def _overheard(self, bringing: _Bringing, file: Attachment, video: Content) -> Spoken | None:
        """The words of a video; None if it has no sound, or nobody can extract it."""
        if self.dictation is None or self.frames is None or file.ref == file.preview:
            return None
        if problem := self.dictation.refusal(None, file.seconds):
            return Spoken(problem=problem)
        frames, most = self.frames, self.dictation.settings.max_seconds

        async def sound() -> bytes:
            return await frames.sound(await video(), most)

        try:
            return await self._words(self.dictation, bringing, file, SOUND, sound)
        except _NOT_HAD as error:
            log.info("no_sound_taken", error=str(error))
            return None

    async def _words(
        self, dictation: Dictation, bringing: _Bringing, file: Attachment, form: str, sound: Content
    ) -> Spoken | None:
        """The words of a sound that is not kept: they lie under a digest of its file's name. None: there is no sound.
        Raises one of `_NOT_HAD`."""
        digest = sha256(f"{bringing.source.platform}:{file.ref}".encode()).hexdigest()
        if (words := await dictation.known(bringing.key, digest)) is not None:
            return Spoken(words=words, digest=digest)
        async with self._room:
            content = await sound()
        return await dictation.write_down(bringing.conversation, digest, content, form) if content else None

    async def _in_passing(self, bringing: _Bringing, file: Attachment) -> Received:
        """What somebody said in a room. Its recording is kept for a model that hears it, else only its words are. What
        nobody understands is no message; the room is told so once, until something is understood again. Raises
        NothingSaid."""
        source, show = bringing.source, bringing.show

        async def complain(ref: str, text: str) -> None:
            now = self.clock.monotonic()
            if now - self._deaf.get(source.address, -_TOLD_EVERY) >= _TOLD_EVERY:
                self._deaf[source.address] = now
                await show(ref, text)

        form = sound_format(b"", file.mime) or ""
        if form in bringing.reader.sounds:
            got, _ = await self._received(replace(bringing, show=complain), file)
            if got.told:
                await complain(file.ref, got.told)
            if got.kept is None:
                raise NothingSaid
            self._deaf.pop(source.address, None)
            return got
        try:
            spoken: Spoken | None = Spoken(problem=NO_EARS)
            if self.dictation is not None:
                sound = partial(self._fetched, source.platform, file)
                spoken = await self._words(self.dictation, bringing, file, form, sound)
        except _NOT_HAD as error:
            spoken = Spoken(problem=_reason(error, source.platform))
        if spoken is not None and spoken.problem is not None:
            await complain(file.ref, UNHEARD.format(reason=spoken.problem))
        if spoken is None or not spoken.words:
            raise NothingSaid
        self._deaf.pop(source.address, None)
        await show(file.ref, spoken.told(""))
        return Received(attachment=file, spoken=spoken)

    async def _seen(self, bringing: _Bringing, file: Attachment, video: Content) -> Received:
        """Frames of a video where there is a decoder, else the preview frame that came along."""
        if not bringing.reader.sees:
            return Received(attachment=file, problem=NO_PICTURES)
        if frames := await self._taken(bringing, file, video):
            return Received(attachment=file, frames=frames)
        if not file.preview:
            return Received(attachment=file, problem=NO_FRAME, told=UNSEEN.format(name=_called(file)))
        preview = Attachment(kind="image", ref=file.preview, name=f"{file.name or 'video'}, preview.jpg")
        got, _ = await self._received(bringing, preview)
        if got.kept is not None and got.reading.picture:
            return Received(attachment=file, frames=(got.kept,), problem=ONE_FRAME)
        return Received(attachment=file, problem=got.problem or NO_FRAME, told=UNSEEN.format(name=_called(file)))

    async def _taken(self, bringing: _Bringing, file: Attachment, video: Content) -> tuple[KeptFile, ...]:
        """Frames of a video, which are kept in its place; where there are none, the preview frame must do."""
        if self.frames is None or file.ref == file.preview:
            return ()
        key, platform = bringing.key, bringing.source.platform
        refs = [f"{platform}:{file.ref}#{number}" for number in range(MOST_FRAMES)]
        try:
            known = [await self.store.kept_file(key, ref) for ref in refs]
            if known[0] is not None:
                return tuple(each for each in known if each is not None)
            async with self._room:
                pictures = await self.frames.of(await video(), file.seconds)
            taken = []
            for number, (ref, picture) in enumerate(zip(refs, pictures, strict=False), 1):
                name = f"{file.name or 'video'}, frame {number}.jpg"
                frame = Attachment(kind="image", ref=ref, name=name, mime="image/jpeg")
                if await self._no_room(bringing, ref, frame, len(picture)):
                    break
                taken.append(await self._kept(key, ref, frame, picture))
            return tuple(taken)
        except _NOT_HAD as error:
            log.info("no_frames_taken", error=str(error))
            return ()

    async def _no_room(self, bringing: _Bringing, ref: str, file: Attachment, size: int) -> Received | None:
        """Count a file that is about to be kept. If there is no room, its sender is told."""
        show = bringing.show
        try:
            await self.quotas.take(
                bringing.key, bringing.source, ref, size, lambda text: show(f"{file.ref} quota", text)
            )
        except FileRefused as error:
            await show(f"{file.ref} quota", NOT_KEPT.format(name=named(file), reason=error))
            return _failed(file, str(error), UNKEPT)
        return None

    async def _heard(self, bringing: _Bringing, got: Received, content: bytes) -> Received:
        """The same file; a recording that the model does not hear comes with its words, which the person is shown."""
        form, heard = got.reading.sound, bringing.reader.sounds
        if self.dictation is not None and got.kept is not None and form is not None and form not in heard:
            spoken = await self.dictation.write_down(bringing.conversation, got.kept.digest, content, form)
            got = replace(got, spoken=spoken)
        if got.spoken is not None:
            await bringing.show(got.attachment.ref, got.spoken.told(_WHAT.get(got.attachment.kind, "recording")))
        return got

    def _not_wanted(self, file: Attachment, reader: Reader) -> Received | None:
        """A file that need not be fetched, with the reason why."""
        if is_sound(file) and not reader.sounds:
            if self.dictation is None:
                return Received(attachment=file, problem=no_sounds(reader.sounds))
            refusal = self.dictation.refusal(file.size, file.seconds)
            return None if refusal is None else Received(attachment=file, spoken=Spoken(problem=refusal))
        if file.kind == "image" and not (reader.sees or self.paints):
            return Received(attachment=file, problem=NO_PICTURES)
        if is_opaque(file):
            return Received(attachment=file, reading=Reading(problem=NOT_TEXT), problem=not_shown(NOT_TEXT))
        return None

    async def _fetched(self, platform: str, file: Attachment) -> bytes:
        adapter = self.adapters.get(platform)
        if not isinstance(adapter, CanFetch):
            raise FileRefused(NOT_HERE.format(platform=platform.capitalize()))
        async with self.clock.limit(_SECONDS):
            return await self._tried(lambda: adapter.fetch(file), "fetch")

    async def _kept(self, key: SessionKey, ref: str, file: Attachment, content: bytes) -> KeptFile:
        digest = await asyncio.to_thread(lambda: sha256(content).hexdigest())
        now, size = self.clock.now(), len(content)
        kept = KeptFile(ref=ref, digest=digest, name=file.name, mime=file.mime, size=size, at=now)
        return await self._tried(lambda: self.store.keep_file(key, kept, content), "keep")

    async def _tried(self, step: Callable[[], Awaitable[T]], what: str) -> T:
        """The result of a step that is tried a few times and then given up: a disk without room for a file may have
        some for the answer. Raises AdapterError, StoreUnavailable."""
        backoff = Backoff(*_PAUSES)
        while True:
            try:
                return await step()
            except FileRefused:
                raise
            except (AdapterError, StoreUnavailable) as error:
                wait = backoff.pause()
                log.info("file_attempt_failed", step=what, error=str(error), attempts=backoff.failures)
                if backoff.failures == _ATTEMPTS:
                    raise
                if isinstance(error, RateLimited):
                    wait = error.retry_after
            await self.clock.sleep(wait)


def _unread(got: Received) -> str:
    """What the sender of a file is told of it; "": nothing."""
    return got.told or (UNREAD.format(name=_called(got.attachment), reason=got.unread) if got.unread else "")


def _called(file: Attachment) -> str:
    name = "" if file.kind == "image" else one_line(file.name)  # a picture's is its platform's
    return f'"{name}"' if name else f"your {'video' if file.is_video else _WHAT.get(file.kind, 'file')}"


def _lost(file: Attachment, platform: str, error: Exception) -> Received:
    """A file that could not be fetched; its sender is told."""
    reason = _reason(error, platform)
    got = _failed(file, reason, UNKEPT if isinstance(error, StoreUnavailable) else FAILED)
    return replace(got, told=UNFETCHED.format(name=_called(file), reason=reason))


def _reason(error: Exception, platform: str) -> str:
    late = isinstance(error, TimeoutError)
    return TOO_SLOW.format(platform=platform.capitalize()) if late else str(error).rstrip(".")


def _failed(file: Attachment, reason: str, problem: str = FAILED) -> Received:
    log.warning("file_not_received", kind=file.kind, reason=reason)
    return Received(attachment=file, problem=problem.format(reason=reason.rstrip(".")))


# -- the text of a file ------------------------------------------------------------------------------
# In a thread, because all of it is looked at. A document is a stranger's program as much as a text, and is read aside.


async def _reading(content: bytes, mime: str, most: int, aside: RunsAside) -> Reading:
    """Read a content, but at most `most` characters of its text."""
    if is_document(content):
        return reading_of(await text_of(content, aside), most)
    return await asyncio.to_thread(read, content, mime, most)


async def text_of(content: bytes, aside: RunsAside) -> FileText:
    """The whole text of a file."""
    if not is_document(content):
        return await asyncio.to_thread(text_in, content)
    try:
        return await aside(_document_text, content)
    except TookTooLong:
        return FileText(problem=TOO_STRANGE)


def _document_text(content: bytes) -> FileText:
    # By name: the libraries are for that process alone.
    found: FileText = import_module("gateway.agent.files.documents").document_text(content)
    return found
