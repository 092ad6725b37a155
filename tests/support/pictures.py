"""Pictures of any size, as far as their heads go: nobody here looks at a dot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from struct import pack
from typing import Final

Make = Callable[[int, int], bytes]


def png(width: int, height: int) -> bytes:
    """The head of a PNG."""
    return b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + pack(">II", width, height) + b"\x08\x06\x00\x00\x00"


def jpeg(width: int, height: int, *, progressive: bool = False) -> bytes:
    """The head of a JPEG with a comment and tables before its frame."""
    comment, tables = b"\xff\xe0\x00\x10JFIF" + bytes(10), b"\xff\xc4\x00\x05\xff\xc0\x00"
    frame = b"\xff\xff" + (b"\xc2" if progressive else b"\xc0")
    return b"\xff\xd8" + comment + tables + frame + pack(">HBHH", 17, 8, height, width) + bytes(10)


def webp(width: int, height: int, kind: bytes = b"VP8X") -> bytes:
    """The head of a WebP: with extras (VP8X), without loss (VP8L) or plain (VP8 )."""
    if kind == b"VP8X":
        body = bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    elif kind == b"VP8L":
        body = b"\x2f" + pack("<I", (width - 1) | (height - 1) << 14)
    else:
        body = b"\x50\x00\x00\x9d\x01\x2a" + pack("<HH", width, height)
    return b"RIFF" + pack("<I", len(body) + 12) + b"WEBP" + kind + pack("<I", len(body)) + body + bytes(16)


FORMATS: Final[Sequence[Make]] = (
    png,
    jpeg,
    partial(jpeg, progressive=True),
    webp,
    partial(webp, kind=b"VP8L"),
    partial(webp, kind=b"VP8 "),
)
