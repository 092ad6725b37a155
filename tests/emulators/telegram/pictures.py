"""The width and height of an uploaded picture, read from the head of its format.

https://www.w3.org/TR/png/#11IHDR, https://www.w3.org/Graphics/JPEG/itu-t81.pdf (B.2.2) and
https://developers.google.com/speed/webp/docs/riff_container.
"""

from __future__ import annotations

import re
from typing import Final

MOST_SIDES: Final = 10_000  # "The photo's width and height must not exceed 10000 in total.
MOST_RATIO: Final = 20  # Width and height ratio must be at most 20." https://core.telegram.org/bots/api#sendphoto

_PNG: Final = re.compile(rb"\x89PNG\r\n\x1a\n....IHDR(....)(....)", re.DOTALL)
_FRAME: Final = re.compile(rb"\xff+[\xc0-\xc3\xc5-\xc7\xc9-\xcb\xcd-\xcf]...(..)(..)", re.DOTALL)
_SEGMENT: Final = re.compile(rb"\xff+(?:[\x01\xd0-\xd8]|[\xc4\xc8\xcc\xda-\xfe](..))", re.DOTALL)
_WEBP: Final = re.compile(rb"RIFF....WEBPVP8(.)....(.{14})", re.DOTALL)


def is_too_odd(content: bytes) -> bool:
    """Say whether a picture is too large or too narrow for a photo; False of one whose size is not known."""
    found = _png(content) or _jpeg(content) or _webp(content)
    if found is None:
        return False
    narrow, wide = min(found), max(found)
    return narrow == 0 or narrow + wide > MOST_SIDES or wide / narrow > MOST_RATIO


def _png(content: bytes) -> tuple[int, int] | None:
    found = _PNG.match(content)
    return (int.from_bytes(found[1]), int.from_bytes(found[2])) if found else None


def _jpeg(content: bytes) -> tuple[int, int] | None:
    if not content.startswith(b"\xff\xd8"):
        return None
    place = 0
    while (frame := _FRAME.match(content, place)) is None:
        segment = _SEGMENT.match(content, place)
        if segment is None:
            return None
        place = segment.end() + (int.from_bytes(segment[1]) - 2 if segment[1] else 0)
    return int.from_bytes(frame[1]), int.from_bytes(frame[2])


def _webp(content: bytes) -> tuple[int, int] | None:
    found = _WEBP.match(content)
    if found is None:
        return None
    kind, head = found[1], found[2]
    if kind == b" ":
        return int.from_bytes(head[6:8], "little") % 2**14, int.from_bytes(head[8:10], "little") % 2**14
    if kind == b"L":
        packed = int.from_bytes(head[1:5], "little")
        return packed % 2**14 + 1, packed // 2**14 % 2**14 + 1
    return int.from_bytes(head[4:7], "little") + 1, int.from_bytes(head[7:10], "little") + 1
