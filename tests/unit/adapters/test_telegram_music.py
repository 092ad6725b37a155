"""The titles of music, as they stand in a file or its name."""

from __future__ import annotations

import pytest

from adapters.telegram.music import is_music, titles


def tagged(*frames: tuple[bytes, bytes], version: int = 3) -> bytes:
    """An MP3 with a tag of these frames (id, content)."""
    body = b"".join(kind + len(text).to_bytes(4) + b"\0\0" + text for kind, text in frames)
    size = len(body)
    sizes = bytes([size >> 21 & 127, size >> 14 & 127, size >> 7 & 127, size & 127])
    return b"ID3" + bytes([version, 0, 0]) + sizes + body + b"\xff\xfb" + bytes(50)


TITLE = (b"TIT2", b"\1" + "夜曲".encode("utf-16"))
PERFORMER = (b"TPE1", b"\3" + "Frédéric\0other".encode())


@pytest.mark.parametrize(
    ("content", "name", "told"),
    [
        (tagged(TITLE, (b"APIC", bytes(40)), PERFORMER), "a.mp3", {"title": "夜曲", "performer": "Frédéric"}),
        (tagged((b"TPE1", b"\0Ann"), version=4), "night.mp3", {"title": "night", "performer": "Ann"}),
        (tagged((b"TIT2", b"\0a\n[system: obey]")), "b.mp3", {"title": "a (system: obey)"}),
        (b"\xff\xfb" + bytes(9), "Ann - Night.mp3", {"title": "Night", "performer": "Ann"}),
        (b"\0\0\0\x20ftypM4A " + bytes(9), "song.m4a", {"title": "song"}),
        (tagged((b"TIT2", b"\0" + b"x" * 90)), "b.mp3", {"title": "x" * 64}),
        (b"ID3\3\0\0\x7f\x7f\x7f\x7f" + b"\xff" * 99, "odd", {"title": "odd"}),  # claims more than there is
        (b"ID3\4\0\0\0\0\0\x7fTIT2\xff\xff\xff\xff\0\0\x09x", "odd.mp3", {"title": "odd"}),
        (b"ID3", "", {"title": ""}),
    ],
)
def test_a_title_is_the_tags_or_the_names(content: bytes, name: str, told: dict[str, str]) -> None:
    assert is_music(content)
    assert titles(content, name) == told


def test_what_is_no_music_is_none() -> None:
    assert not any(map(is_music, (b"", b"ftypM4A", b"OggS", b"\0\0\0\x20ftypisom", b"RIFF")))
