"""Voice messages on Discord: https://discord.com/developers/docs/resources/message#voice-messages"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from typing import Any, Final

import discord

from gateway.domain.chat import KeptFile
from gateway.domain.speech import recorded_seconds

_OGG: Final = b"OggS"
_MOST: Final = 256  # points of a waveform, one for 100 ms at least
_PACKETS: Final = 5  # of 20 ms in such a point


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
