"""Voice messages on Discord: https://discord.com/developers/docs/resources/message#voice-messages"""

from __future__ import annotations

import base64
import io
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

import discord

from gateway.domain.chat import KeptFile
from gateway.domain.speech import recorded_seconds

_OGG: Final = b"OggS"
_MOST: Final = 256  # points of a waveform, one for 100 ms at least
_PACKETS: Final = 5  # of 20 ms in such a point
_TOGETHER: Final = 40  # packets of a page, which may name 255 lengths: the largest packet needs six
_HEAD: Final = b"OpusHead" + struct.pack("<BBHIhB", 1, 2, 0, 48_000, 0, 0)  # https://www.rfc-editor.org/rfc/rfc7845
_TAGS: Final = b"OpusTags" + bytes(8)
_LONGEST: Final = 5_760  # samples of a packet: 120 ms
_MIRRORED: Final = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


class VoiceFile(discord.File):
    """A recording as the only file of a voice message."""

    def to_dict(self, index: int) -> Any:
        """As the library's, with what a client draws before it has heard the recording."""
        content = self.fp.read()
        self.fp.seek(0)
        seconds = round(recorded_seconds(content, "ogg") or 0.0, 2)
        return {
            **super().to_dict(index),
            "duration_secs": seconds,
            "waveform": base64.b64encode(waveform(content)).decode(),
        }


def voice_of(file: KeptFile, content: bytes) -> VoiceFile | None:
    """An answer said aloud as a voice message; None for what can be none."""
    is_one = file.is_voice and content.startswith(_OGG)
    return VoiceFile(io.BytesIO(content), filename="voice-message.ogg") if is_one else None


def waveform(content: bytes) -> bytes:
    """How loud a recording is, in up to 256 points. Opus gives a quiet moment few bytes, so their number must do:
    nothing here hears sound."""
    sizes = [len(each) for each in packets_of(content)][2:]  # behind its two heads
    together = max(_PACKETS, -(-len(sizes) // _MOST))
    points = [max(sizes[at : at + together]) for at in range(0, len(sizes), together)]
    return bytes(255 * each // max(*points, 1) for each in points)


def packets_of(content: bytes) -> Iterator[bytes]:
    """An Ogg file's packets: https://www.rfc-editor.org/rfc/rfc3533"""
    at, packet = 0, b""
    while content.startswith(_OGG, at) and len(content) > at + 27:
        lengths = content[at + 27 : at + 27 + content[at + 26]]
        at += 27 + len(lengths)
        for length in lengths:
            packet += content[at : at + length]
            at += length
            if length < 255:
                yield packet
                packet = b""


def samples_of(packet: bytes) -> int:
    """How many samples of 48,000 a second a packet of Opus holds; 0: it is none.
    https://www.rfc-editor.org/rfc/rfc6716#section-3.1"""
    kind = packet[0] >> 3
    if kind < 12:
        frame = (480, 960, 1_920, 2_880)[kind & 3]
    else:
        frame = (480, 960)[kind & 1] if kind < 16 else (120, 240, 480, 960)[kind & 3]
    coded = packet[0] & 3
    frames = (1, 2, 2)[coded] if coded < 3 else packet[1] & 0x3F
    return frame * frames if frame * frames <= _LONGEST else 0


def ogg_of(packets: Sequence[bytes]) -> bytes:
    """An Ogg file of these packets of Opus."""
    pages, samples = [_page(0, 2, 0, [_HEAD]), _page(1, 0, 0, [_TAGS])], 0
    for at in range(0, len(packets), _TOGETHER):
        some = packets[at : at + _TOGETHER]
        samples += sum(map(samples_of, some))
        pages.append(_page(len(pages), 0 if at + _TOGETHER < len(packets) else 4, samples, some))
    return b"".join(pages)


def _page(number: int, kind: int, samples: int, packets: Sequence[bytes]) -> bytes:
    lengths = b"".join(b"\xff" * (len(each) // 255) + bytes([len(each) % 255]) for each in packets)
    head = _OGG + struct.pack("<BBqII", 0, kind, samples, 1, number)
    page = head + bytes(4) + bytes([len(lengths)]) + lengths + b"".join(packets)
    # The same sum as zlib's, but its bits are mirrored, and it begins and ends plainly.
    mirrored = zlib.crc32(page.translate(_MIRRORED), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return head + struct.pack("<I", int(f"{mirrored:032b}"[::-1], 2)) + page[len(head) + 4 :]
