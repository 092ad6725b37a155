"""The files that Telegram takes as photos and as music, by their bytes."""

from __future__ import annotations

import pytest

from adapters.telegram.files import is_music, is_photo
from adapters.telegram.formatting import caption, fits_caption
from tests.emulators.telegram.people import PIXEL
from tests.support.pictures import FORMATS, Make

MEGABYTE = 1024 * 1024


@pytest.mark.parametrize("make", FORMATS)
def test_a_picture_is_worth_a_try_as_a_photo(make: Make) -> None:
    assert is_photo(make(640, 480))


def test_ten_megabytes_are_the_most() -> None:
    assert is_photo(PIXEL + bytes(10 * MEGABYTE - len(PIXEL)))
    assert not is_photo(PIXEL + bytes(10 * MEGABYTE - len(PIXEL) + 1))


@pytest.mark.parametrize("content", [b"", b"text", b"GIF89a" + bytes(99), PIXEL[:7], b"RIFF....WAVE"])
def test_anything_else_is_a_document(content: bytes) -> None:
    assert not is_photo(content)


@pytest.mark.parametrize("begin", [b"ID3\4", b"\xff\xfb", b"\0\0\0\x20ftypM4A "])
def test_an_mp3_and_an_m4a_are_music(begin: bytes) -> None:
    assert is_music(begin + bytes(9))
    assert not any(map(is_music, (b"", b"ftypM4A", b"OggS", b"\0\0\0\x20ftypisom", b"RIFF")))


@pytest.mark.parametrize("text", ["", " \n", "\u200b", "\u2060\u00ad"])
def test_a_caption_of_which_nothing_is_to_be_seen_is_none(text: str) -> None:
    assert caption(text).text == ""


def test_a_caption_is_counted_as_it_is_written_and_as_it_is_shown() -> None:
    assert fits_caption("")
    assert fits_caption("x" * 1_024)
    assert not fits_caption("x" * 1_025)
    assert fits_caption("\U0001f600" * 512)
    assert not fits_caption("\U0001f600" * 513)
    assert not fits_caption("**" + "x" * 1_022 + "**")
