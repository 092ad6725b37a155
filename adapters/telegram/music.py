"""Music, which Telegram plays with its title and its performer: MP3 and M4A
(https://core.telegram.org/bots/api#sendaudio). They stand in the file's own tag (https://id3.org/id3v2.3.0), else in
its name. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from gateway.domain.chat import one_line

_ENCODINGS: Final = ("latin-1", "utf-16", "utf-16-be", "utf-8")
_NAMES: Final = {b"TIT2": "title", b"TPE1": "performer"}
_LONGEST: Final = 64  # characters: Telegram cuts longer ones


def is_music(content: bytes) -> bool:
    """Whether these bytes begin as an MP3 or M4A."""
    return content.startswith((b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")) or content[4:11] == b"ftypM4A"


def titles(content: bytes, name: str) -> dict[str, Any]:
    """The title, and the performer if one is known."""
    told = {_NAMES[kind]: text for kind, text in _texts(content) if text}
    if "title" not in told:
        performer, dash, title = name.rpartition(".")[0].partition(" - ")
        told = {"title": title, "performer": performer} if dash else {**told, "title": performer or name}
    return {what: one_line(text, _LONGEST) for what, text in told.items()}


def _texts(content: bytes) -> Iterator[tuple[bytes, str]]:
    """The frames of the tag that are wanted; what is damaged ends it."""
    version = content[3] if content.startswith(b"ID3") and len(content) > 10 else 0
    if version not in (3, 4):
        return
    bits = 7 if version == 4 else 8  # of each byte of a frame's size
    at, end = 10, 10 + _number(content[6:10], 7)
    while at + 10 < min(end, len(content)):
        kind, size = content[at : at + 4], _number(content[at + 4 : at + 8], bits)
        if not size or not kind.strip(b"\0"):
            return
        if kind in _NAMES and content[at + 10] < len(_ENCODINGS):
            text = content[at + 11 : at + 10 + min(size, 1_000)].decode(_ENCODINGS[content[at + 10]], "replace")
            yield kind, text.split("\0")[0].strip()
        at += 10 + size


def _number(four: bytes, bits: int) -> int:
    total = 0
    for byte in four:
        total = (total << bits) + byte
    return total
