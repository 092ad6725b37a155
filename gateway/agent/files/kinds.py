"""The kind of a file, by its bytes: its name and declared type may be wrong or a lie. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway.domain.chat import Attachment

# The types that models take: https://platform.openai.com/docs/guides/images-vision ("image input requirements").
_PICTURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_SOUNDS: Final = ((b"OggS", "ogg"), (b"fLaC", "flac"), (b"ID3", "mp3"))
_SOUND_TYPES: Final[Mapping[str, str]] = {
    "audio/ogg": "ogg", "audio/opus": "ogg", "audio/mpeg": "mp3", "audio/mp3": "mp3", "audio/wav": "wav",
    "audio/x-wav": "wav", "audio/wave": "wav", "audio/flac": "flac", "audio/x-flac": "flac", "audio/mp4": "m4a",
    "audio/x-m4a": "m4a", "audio/m4a": "m4a", "audio/aac": "aac", "audio/aiff": "aiff", "audio/x-aiff": "aiff",
}  # fmt: skip
# Types that are certainly neither text nor a picture nor sound, so that nobody need fetch them to know.
_OPAQUE: Final = re.compile(
    r"video/.*|font/.*|application/(?:pdf|zip|gzip|x-(?:7z-compressed|rar-compressed|tar|bzip2?|xz|msdownload|iso9660-image)"
    r"|vnd\.rar|msword|vnd\.ms-.*|vnd\.openxmlformats-.*|vnd\.oasis\.opendocument.*|epub\+zip|java-archive"
    r"|vnd\.android\.package-archive)"
)
_UNSEEN: Final = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")  # never in a text, but for escapes of a terminal
_SAMPLE: Final = 4_096  # bytes by which UTF-16 without a mark is told


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A content as far as a message may show it, so that the content need not stay in memory. `sound`: its format.
    `text`: its beginning, "" if it is blank; `length`: all of its characters."""

    picture: bool = False
    sound: str | None = None
    text: str | None = None
    length: int = 0


NOTHING: Final = Reading()


def read(content: bytes, mime: str, most: int) -> Reading:
    """Read a content, but at most `most` characters of its text."""
    if picture_type(content) is not None:
        return Reading(picture=True)
    sound = sound_format(content, mime)
    if sound is not None:
        return Reading(sound=sound)
    text = text_in(content)
    if text is None:
        return NOTHING
    return Reading(text="" if text.isspace() else text[:most], length=len(text))


def picture_type(content: bytes) -> str | None:
    """The MIME type of a picture that models take; None for anything else."""
    for start, mime in _PICTURES:
        if content.startswith(start):
            return mime
    return "image/webp" if content[:4] == b"RIFF" and content[8:12] == b"WEBP" else None


def sound_format(content: bytes, mime: str) -> str | None:
    """The name by which providers know a sound's format; None for anything else."""
    for start, name in _SOUNDS:
        if content.startswith(start):
            return name
    if content[:4] == b"RIFF" and content[8:12] == b"WAVE":
        return "wav"
    if content[:4] == b"FORM" and content[8:12] in (b"AIFF", b"AIFC"):
        return "aiff"
    return _SOUND_TYPES.get(_plain(mime))


def is_sound(file: Attachment) -> bool:
    """Say whether its sender declares it as a sound."""
    return file.kind == "voice" or _plain(file.mime).startswith("audio/")


def is_opaque(file: Attachment) -> bool:
    """Say whether it is declared as a type that no model is shown."""
    return _OPAQUE.fullmatch(_plain(file.mime)) is not None


def text_in(content: bytes) -> str | None:
    """The text of a text file, without a mark of its encoding; None for another file. UTF-8 and UTF-16 are read
    strictly: a guess would show a model words that nobody wrote."""
    if content.startswith(b"%PDF"):
        return None
    for encoding in _encodings(content):
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if not _UNSEEN.search(text):
            return text.removeprefix("\ufeff").replace("\r\n", "\n")
    return None


def _encodings(content: bytes) -> tuple[str, ...]:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ("utf-16",)
    sample = content[:_SAMPLE]
    if len(content) % 2 == 0 and b"\x00" in sample:  # no UTF-8 text has one, and every line end of UTF-16 does
        return ("utf-16-le",) if sample[1::2].count(0) >= sample[::2].count(0) else ("utf-16-be",)
    return ("utf-8",)


def _plain(mime: str) -> str:
    return mime.partition(";")[0].strip().lower()
