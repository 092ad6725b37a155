"""Files from Telegram and to it.

Limits: https://core.telegram.org/bots/api#getfile (20 MB) and https://core.telegram.org/bots/api#sending-files
(50 MB; photos 10 MB). The library asks where a file is; the file itself is read here, because the library reads
whatever it is sent into memory, however long that is. A file's address holds the bot's token: it is in no error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import httpx
import structlog
from telegram import (
    Bot,
    InputFile,
    InputMediaAudio,
    InputMediaDocument,
    InputMediaPhoto,
    InputMediaVideo,
)
from telegram.error import TelegramError

from adapters.telegram import failures
from gateway.domain.chat import Attachment, KeptFile
from gateway.domain.speech import recorded_seconds
from gateway.runtime.connections import at_most, seconds_in
from gateway.runtime.errors import AdapterError, DeliveryRefused, FileRefused, RateLimited

log = structlog.get_logger(__name__)

LARGEST_FETCHED: Final = 20 * 1024 * 1024
LARGEST_SENT: Final = 50 * 1024 * 1024
_LARGEST_PHOTO: Final = 10 * 1024 * 1024
_VOICES: Final = ("audio/ogg", "audio/mpeg", "audio/mp4")  # https://core.telegram.org/bots/api#sendvoice
_HOW: Final[Mapping[str, Any]] = {
    "photo": InputMediaPhoto, "video": InputMediaVideo, "audio": InputMediaAudio, "document": InputMediaDocument
}  # fmt: skip
_CONNECTIONS: Final = 16  # files read at once
_WAIT: Final = 5.0  # seconds after a 429 that does not say how long

TOO_LARGE: Final = f"it is larger than the {LARGEST_FETCHED // 1024**2} MB that Telegram lets bots fetch"
GONE: Final = "Telegram no longer has the file"


class Downloads:
    """Reads files, over connections of its own, which are made as `how` says: a long download holds up no call.
    `patience`: seconds without a byte."""

    def __init__(self, patience: float, how: Callable[[int], dict[str, Any]]) -> None:
        self._patience = patience
        self._how = how
        self._client: httpx.AsyncClient | None = None  # made when first needed: it takes a while

    async def fetch(self, bot: Bot, file: Attachment) -> bytes:
        """A file's content. Raises FileRefused, or AdapterError if another try may succeed."""
        if file.size is not None and file.size > LARGEST_FETCHED:
            raise FileRefused(TOO_LARGE)
        try:
            found = await bot.get_file(file.ref)
        except TelegramError as error:
            raise _mapped(error) from error
        if not found.file_path:
            raise FileRefused(GONE)
        if (found.file_size or 0) > LARGEST_FETCHED:
            raise FileRefused(TOO_LARGE)
        try:
            async with self._opened().stream("GET", found.file_path) as response:
                _check(response)
                content = await at_most(response.aiter_raw(), LARGEST_FETCHED)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise AdapterError(f"Telegram's file server could not be read ({type(error).__name__})") from None
        if content is None:
            raise FileRefused(TOO_LARGE)
        return content

    def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            timeout = httpx.Timeout(self._patience, pool=None)
            plain = {"Accept-Encoding": "identity"}
            self._client = httpx.AsyncClient(timeout=timeout, headers=plain, **self._how(_CONNECTIONS))
        return self._client

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()


def _mapped(error: TelegramError) -> AdapterError:
    found = failures.mapped_edit(error)  # asking twice does no harm
    if not isinstance(found, DeliveryRefused):
        return found
    return FileRefused(TOO_LARGE if "too big" in error.message.lower() else GONE)


def _check(response: httpx.Response) -> None:
    if response.status_code == 429:
        raise RateLimited("Telegram asks to wait", retry_after=seconds_in(response.headers, _WAIT))
    if response.status_code in (400, 401, 403, 404, 410):
        raise FileRefused(GONE)
    if not response.is_success:
        raise AdapterError(f"Telegram's file server answered {response.status_code}")
    if response.headers.get("content-encoding", "identity") != "identity":
        raise AdapterError(
            "Telegram's file server sent the file compressed"
        )  # unpacked, a little of it may fill the memory


def is_photo(content: bytes) -> bool:
    """Whether this is worth a try as a photo: a JPEG, a PNG or a WebP, which its bytes say; its name may be wrong.
    Telegram refuses those that are too wide or too narrow."""
    is_picture = content.startswith((b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n"))
    return len(content) <= _LARGEST_PHOTO and (is_picture or (content[:4], content[8:12]) == (b"RIFF", b"WEBP"))


def is_music(content: bytes) -> bool:
    """Whether these bytes begin as an MP3 or M4A, of which Telegram reads the title by itself."""
    return content.startswith((b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")) or content[4:11] == b"ftypM4A"


async def upload(
    bot: Bot, where: Mapping[str, Any], file: KeptFile, content: bytes, caption: Mapping[str, Any]
) -> tuple[int, int]:
    """Send a file: a picture as a photo, a video, music and an answer said aloud as such, where Telegram takes them,
    all else as a document. Gives the numbers of the chat and the message. Raises TelegramError."""
    given, shown = InputFile(content, filename=file.name, attach=False), {**where, **caption}
    kind = "voice" if file.is_voice and file.mime in _VOICES else _kind(file, content)
    more = {"duration": round(recorded_seconds(content, "ogg") or 0) or None} if kind == "voice" else {}
    try:
        if kind != "document":
            sends: Mapping[str, Any] = {
                "photo": bot.send_photo, "video": bot.send_video, "audio": bot.send_audio, "voice": bot.send_voice
            }  # fmt: skip
            sent = await sends[kind](**{kind: given}, **shown, **more)
            return sent.chat.id, sent.message_id
    except TelegramError as error:
        if not failures.may_be_of_picture(error):
            raise
        log.warning("shown_as_document", file=file.digest, error=error.message)
    sent = await bot.send_document(document=given, disable_content_type_detection=True, **shown)
    return sent.chat.id, sent.message_id


async def upload_album(
    bot: Bot,
    where: Mapping[str, Any],
    files: Sequence[tuple[KeptFile, bytes]],
    caption: Mapping[str, Any],
    own: Sequence[Mapping[str, Any]],
) -> tuple[int, int]:
    """The same of several in one album, whose kinds Telegram does not mix: photos with videos or music, if all are,
    else documents. `own` are their own captions, if there are several: of photos Telegram would then show none, so
    `caption` holds all. Gives the numbers of the chat and of the first message."""
    kinds = [_kind(*each) for each in files]
    if not ({*kinds} <= {"photo", "video"} or {*kinds} == {"audio"}):
        kinds = ["document"] * len(files)
    try:
        shown = await bot.send_media_group(media=_items(kinds, files, caption, own), **where)
    except TelegramError as error:
        if "document" in kinds or not failures.may_be_of_picture(error):
            raise
        log.warning("shown_as_document", file=files[0][0].digest, error=error.message)
        documents = _items(["document"] * len(files), files, caption, own)
        shown = await bot.send_media_group(media=documents, **where)
    return shown[0].chat.id, shown[0].message_id


def _kind(file: KeptFile, content: bytes) -> str:
    if is_photo(content):
        return "photo"
    return "audio" if is_music(content) else "video" if file.mime == "video/mp4" else "document"


def _items(
    kinds: Sequence[str],
    files: Sequence[tuple[KeptFile, bytes]],
    caption: Mapping[str, Any],
    own: Sequence[Mapping[str, Any]],
) -> list[Any]:
    words = own if own and kinds[0] == "document" else [caption, *[{}] * (len(files) - 1)]
    return [
        _HOW[kind](media=content, filename=file.name, **said)
        for kind, (file, content), said in zip(kinds, files, words, strict=True)
    ]
