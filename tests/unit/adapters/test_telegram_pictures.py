"""The files that Telegram takes as photos, by their bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.telegram.formatting import caption, fits_caption
from adapters.telegram.pictures import is_photo, sides
from tests.emulators.telegram.people import PIXEL
from tests.support.pictures import FORMATS, Make, png

MEGABYTE = 1024 * 1024


@pytest.mark.parametrize("make", FORMATS)
def test_sides_are_read_from_the_head(make: Make) -> None:
    for size in ((1, 1), (640, 480), (3, 9_000)):
        assert sides(make(*size)) == size


@pytest.mark.parametrize("make", FORMATS)
@pytest.mark.parametrize(
    ("size", "taken"),
    [((5_000, 5_000), True), ((5_001, 5_000), False), ((400, 20), True), ((401, 20), False), ((20, 401), False)],
)
def test_only_what_has_sides_that_telegram_takes_is_a_photo(make: Make, size: tuple[int, int], taken: bool) -> None:
    assert is_photo(make(*size)) is taken


def test_ten_megabytes_are_the_most() -> None:
    assert is_photo(PIXEL + bytes(10 * MEGABYTE - len(PIXEL)))
    assert not is_photo(PIXEL + bytes(10 * MEGABYTE - len(PIXEL) + 1))


@pytest.mark.parametrize(
    "content", [b"", b"text", b"GIF89a" + bytes(99), b"\xff\xd8" + b"\xff" * 99, png(0, 5), PIXEL[:20]]
)
def test_anything_else_is_a_document(content: bytes) -> None:
    assert not is_photo(content)


@given(st.sampled_from([make(640, 480) for make in FORMATS]), st.integers(0, 60), st.binary(max_size=60))
def test_a_damaged_picture_is_a_document_at_worst(whole: bytes, kept: int, rest: bytes) -> None:
    is_photo(whole[:kept] + rest)


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
