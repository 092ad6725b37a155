"""The words of a recording, and its length."""

from __future__ import annotations

import struct

import pytest

from gateway.domain.speech import LONGEST, Transcript, recorded_seconds
from tests.emulators.transcription import opus


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (" Hello,\n  there. ", "Hello, there."),
        ("你好，\u200b世界", "你好， 世界"),
        ("Thanks for watching!", ""),
        ("Thanks for watching the cat.", "Thanks for watching the cat."),
        ("Thank you.", "Thank you."),
        ("[MUSIC] (applause)", ""),
        ("[Ann] come here", "[Ann] come here"),
        ("...", ""),
        ("3", "3"),
        ("a" * (LONGEST + 5), "a" * LONGEST),
        ("[" * 200_000, ""),
        ("(" * 200_000 + "x", ""),
    ],
)
def test_what_was_said(text: str, words: str) -> None:
    assert Transcript(text=text).words == words


def test_a_voice_message_says_how_long_it_is() -> None:
    assert recorded_seconds(opus(12.5), "ogg") == 12.5
    vorbis = b"OggS" + bytes(24) + b"\x01vorbis" + struct.pack("<IBI", 0, 2, 44_100) + bytes(30)
    last = b"OggS" + bytes([0, 4]) + struct.pack("<q", 88_200) + bytes(20)
    assert recorded_seconds(vorbis + last, "ogg") == 2
    wav = b"RIFF" + bytes(4) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8_000, 16_000, 2, 16) + bytes(8 + 16_000)
    assert recorded_seconds(wav, "wav") == 1


@pytest.mark.parametrize("content", [b"", b"OggS", b"RIFF", b"OggS" + b"\xff" * 40, b"RIFF" + bytes(60)])
def test_a_broken_recording_says_nothing(content: bytes) -> None:
    assert recorded_seconds(content, "ogg") is None
    assert recorded_seconds(content, "wav") is None
    assert recorded_seconds(content, "mp3") is None
