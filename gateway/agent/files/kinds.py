"""The kind of a file, by its bytes: its name and declared type may be wrong or a lie. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from typing import Final

from msgspec import Struct

from gateway.domain.chat import Attachment
from gateway.runtime.patterns import late

# The types that models take: https://platform.openai.com/docs/guides/images-vision ("image input requirements").
_PICTURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_VIDEOS: Final = (b"isom", b"iso2", b"iso4", b"iso5", b"iso6", b"mp41", b"mp42", b"avc1", b"M4V ", b"dash", b"MSNV")
_SOUNDS: Final = (
    (b"OggS", "ogg"),
    (b"fLaC", "flac"),
    *((mark, "mp3") for mark in (b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")),
)
_SOUND_TYPES: Final[Mapping[str, str]] = {
    "audio/ogg": "ogg", "audio/opus": "ogg", "audio/mpeg": "mp3", "audio/mp3": "mp3", "audio/wav": "wav",
    "audio/x-wav": "wav", "audio/wave": "wav", "audio/flac": "flac", "audio/x-flac": "flac", "audio/mp4": "m4a",
    "audio/x-m4a": "m4a", "audio/m4a": "m4a", "audio/aac": "aac", "audio/aiff": "aiff", "audio/x-aiff": "aiff",
}  # fmt: skip
# Types that are certainly neither text nor a picture nor sound, so that nobody need fetch them to know.
_OPAQUE: Final = late(
    r"font/.*|application/(?:gzip|x-(?:7z-compressed|rar-compressed|tar|bzip2?|xz|msdownload|iso9660-image)"
    r"|vnd\.rar|msword|vnd\.ms-(?!excel|(?:word|powerpoint)\.).*|java-archive|vnd\.android\.package-archive)"
)
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")
_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # old files of Office, and locked new ones
_HTML: Final = re.compile(rb"\s*(?:<!--.{0,2000}?-->\s*)?<(?:!doctype\s+html|html)[\s>]", re.IGNORECASE | re.DOTALL)
_LONG_PAGE: Final = 30_000  # bytes; the source of a shorter page says all, also to whoever wrote it
_HEADER: Final = rb"[!-9;-~]++:[^\n]*+\n|[ \t][^\n]*+\n"  # RFC 5322, 2.2
_MAIL: Final = re.compile(  # a sender and a trace of a mail program among the headers
    rb"(?=(?:%b){0,200}?From:)(?:%b){0,200}?(?:Received|Message-ID|MIME-Version):" % (_HEADER, _HEADER), re.IGNORECASE
)
_LONGEST_HEAD: Final = 65_536  # bytes
_UNSEEN: Final = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")  # never in a text, but for escapes of a terminal
_UNSEEN_BYTES: Final = re.compile(_UNSEEN.pattern.encode("latin-1"))
_SAMPLE: Final = 4_096  # bytes by which UTF-16 without a mark is told


NOT_TEXT: Final = (
    "it is not of a kind that I can read: text, PDF, Word, Excel, PowerPoint, OpenDocument, EPUB, e-mail, web page, ZIP"
)
GUESSED: Final = "its encoding guessed to be {encoding}"


class FileText(Struct, frozen=True, kw_only=True):
    """The text of a file, or the `problem`, a clause, that keeps it from being read. `how`: what a reader should know
    of the text, such as its pages; "" is nothing."""

    text: str | None = None
    how: str = ""
    problem: str = ""


class Reading(Struct, frozen=True, kw_only=True):
    """A content, as far as a message may show it, so that it need not stay in memory. `sound`: its format. `text`: its
    beginning, "" if it is blank; `length`: the number of its characters; `how`, `problem`: as in a `FileText`."""

    picture: bool = False
    sound: str | None = None
    text: str | None = None
    length: int = 0
    how: str = ""
    problem: str = ""


def read(content: bytes, mime: str, most: int) -> Reading:
    """Read a content that is no document, but at most `most` characters of its text."""
    if picture_type(content) is not None:
        return Reading(picture=True)
    sound = sound_format(content, mime)
    return Reading(sound=sound) if sound is not None else reading_of(text_in(content), most)


def reading_of(found: FileText, most: int) -> Reading:
    """At most `most` characters of a text."""
    if found.text is None:
        return Reading(problem=found.problem)
    text = "" if found.text.isspace() else found.text[:most]
    return Reading(text=text, length=len(found.text), how=found.how)


def is_document(content: bytes) -> bool:
    """Whether it is a file whose words are read by `documents.document_text`."""
    return is_pdf(content) or content.startswith((*_ZIP, _OLE)) or is_long_page(content) or is_mail(content)


def is_ole(content: bytes) -> bool:
    """Whether it is a file of an old Office, or a locked one of a new Office."""
    return content.startswith(_OLE)


def is_long_page(content: bytes) -> bool:
    """Whether it is an HTML page whose source has too much besides its words."""
    return len(content) > _LONG_PAGE and _HTML.match(content) is not None


def is_mail(content: bytes) -> bool:
    """Whether it is an e-mail."""
    return _MAIL.match(content[:_LONGEST_HEAD]) is not None


def is_pdf(content: bytes) -> bool:
    """Whether it is a PDF, whose mark may come after something else (ISO 32000, implementation note 13)."""
    return b"%PDF-" in content[:1_024]


def picture_type(content: bytes) -> str | None:
    """The MIME type of a picture that models take; None for anything else."""
    for start, mime in _PICTURES:
        if content.startswith(start):
            return mime
    return "image/webp" if content[:4] == b"RIFF" and content[8:12] == b"WEBP" else None


def video_type(content: bytes) -> str | None:
    """The MIME type of a video that platforms play; None for anything else."""
    return "video/mp4" if content[4:8] == b"ftyp" and content[8:12] in _VIDEOS else None


def album_of(content: bytes) -> str:
    """With what a file is shown in one message: pictures with videos, sounds, and all else."""
    if video_type(content) or picture_type(content) not in (None, "image/gif"):
        return "seen"
    return "heard" if sound_format(content, "") or content[4:11] == b"ftypM4A" else ""


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
    """Whether its sender declares it as a sound."""
    return file.kind == "voice" or _plain(file.mime).startswith("audio/")


def is_opaque(file: Attachment) -> bool:
    """Whether it is declared as a type that no model can see."""
    return _OPAQUE.fullmatch(_plain(file.mime)) is not None


def text_in(content: bytes) -> FileText:
    """The text of a text file, without a mark of its encoding. UTF-8 and UTF-16 are known; of another encoding the
    likeliest is taken, and that it was guessed is said."""
    known = _encodings(content)
    for encoding in known or _guesses(content):
        try:
            text = content.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
        if not _UNSEEN.search(text):
            how = "" if known else GUESSED.format(encoding=encoding)
            return FileText(text=text.removeprefix("\ufeff").replace("\r\n", "\n"), how=how)
    return FileText(problem=NOT_TEXT)


def _encodings(content: bytes) -> tuple[str, ...]:
    """The encoding that the bytes show, if it is one of Unicode's."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ("utf-16",)
    sample = content[:_SAMPLE]
    if len(content) % 2 == 0 and b"\x00" in sample:  # no UTF-8 text has one, and every line end of UTF-16 does
        return ("utf-16-le",) if sample[1::2].count(0) >= sample[::2].count(0) else ("utf-16-be",)
    try:
        content.decode()
    except UnicodeDecodeError:
        return ()
    return ("utf-8",)


def _guesses(content: bytes) -> tuple[str, ...]:
    """Encodings to try. What the library wrongly takes for UTF-8 is Korean if possible: there a letter has two bytes,
    while in Western texts most are single."""
    # By name: the library takes 3 MB, and nearly every text is UTF-8.
    likeliest: str = import_module("resiliparse.parse.encoding").detect_encoding(content) or ""
    return () if _UNSEEN_BYTES.search(content) else (likeliest, "euc_kr", "cp1252")


def _plain(mime: str) -> str:
    return mime.partition(";")[0].strip().lower()
