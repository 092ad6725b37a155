"""The files that Telegram takes as photos: JPEG, PNG and WebP of a size that
https://core.telegram.org/bots/api#sendphoto allows. What a file is, its bytes say; its name may be wrong.
Pure."""

from __future__ import annotations

from struct import error as StructError
from struct import unpack_from
from typing import Final

_MOST_BYTES: Final = 10 * 1024 * 1024
_MOST_SIDES: Final = 10_000  # width and height together
_MOST_RATIO: Final = 20
_HEAD: Final = 1024 * 1024  # bytes of a JPEG in which its frame is looked for

# Markers of a JPEG's frame, which tells its size; the three left out are tables.
# https://www.w3.org/Graphics/JPEG/itu-t81.pdf, table B.1
_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_ALONE: Final = frozenset((0x01, *range(0xD0, 0xD9)))  # markers that nothing follows


def is_photo(content: bytes) -> bool:
    """Say whether Telegram should take this as a photo."""
    size = sides(content) if len(content) <= _MOST_BYTES else None
    if size is None:
        return False
    short, long = sorted(size)
    return short > 0 and short + long <= _MOST_SIDES and long <= _MOST_RATIO * short


def sides(content: bytes) -> tuple[int, int] | None:
    """Width and height of a picture in pixels; None if it is none, or ends before it says so."""
    try:
        if content.startswith(b"\x89PNG\r\n\x1a\n") and content[12:16] == b"IHDR":
            return _pair(">II", content, 16)
        if content.startswith(b"\xff\xd8"):
            return _of_jpeg(content)
        if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
            return _of_webp(content)
    except (IndexError, StructError):
        return None
    return None


def _of_jpeg(content: bytes) -> tuple[int, int] | None:
    at = 2
    while at < _HEAD and content[at] == 0xFF:
        marker = content[at + 1]
        if marker in _FRAMES:
            height, width = _pair(">HH", content, at + 5)
            return width, height
        if marker == 0xFF:  # filling
            at += 1
        elif marker in _ALONE:
            at += 2
        else:
            at += 2 + int.from_bytes(content[at + 2 : at + 4], "big")
    return None


def _of_webp(content: bytes) -> tuple[int, int] | None:
    """https://developers.google.com/speed/webp/docs/riff_container"""
    match content[12:16]:
        case b"VP8 ":
            width, height = _pair("<HH", content, 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L":
            (packed,) = unpack_from("<I", content, 21)
            return 1 + (packed & 0x3FFF), 1 + (packed >> 14 & 0x3FFF)
        case b"VP8X":
            low_width, high_width, low_height, high_height = unpack_from("<HBHB", content, 24)
            return 1 + low_width + (high_width << 16), 1 + low_height + (high_height << 16)
    return None


def _pair(form: str, content: bytes, at: int) -> tuple[int, int]:
    first, second = unpack_from(form, content, at)
    return first, second
