"""Events are read whatever the chunks are, and a body that is no stream is kept whole."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.providers.sse import EventReader


def read(*chunks: bytes) -> tuple[list[tuple[str, str]], str | None]:
    reader = EventReader()
    return [event for chunk in chunks for event in reader.feed(chunk)], reader.body


STREAMS = [
    ("data: a\n\n", [("", "a")]),
    ("data:a\n\ndata: b\n\n", [("", "a"), ("", "b")]),
    ("event: error\ndata: a\ndata:  b\n\n", [("error", "a\n b")]),
    (": hello\r\n\r\ndata: é😀\r\n\r\n", [("", "é😀")]),
    ("data: a\r\rdata: b\r\r.", [("", "a"), ("", "b")]),
    ("id: 1\nretry: 5\nevent: ping\n\ndata: a\u2028b\x85c\n\n", [("", "a\u2028b\x85c")]),
    ("\ufeff\ndata: a\n\ndata: lost", [("", "a")]),
]


def test_what_waits_for_its_end_is_counted() -> None:
    reader = EventReader()
    held = []
    for chunk in (b"da", b"ta: 12", b"34\ndata: 5", b"\n", b"\n", b": 678", b"\r", b"\n"):
        reader.feed(chunk)
        held.append(reader.held)
    assert held == [2, 8, 12, 7, 0, 5, 5, 0]


BODIES = ['{"a": 1}', "<html>", "", "  \n", "d", "dat", "[1]", "datum"]


@pytest.mark.parametrize(("text", "events"), STREAMS)
@given(data=st.data())
def test_a_stream_cut_anywhere(text: str, events: list[tuple[str, str]], data: st.DataObject) -> None:
    raw = text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    found, body = read(*(raw[a:b] for a, b in itertools.pairwise([0, *cuts, len(raw)])))
    assert (found, body) == (events, None)


@pytest.mark.parametrize("text", BODIES)
def test_another_body_is_kept(text: str) -> None:
    assert read(text.encode()) == ([], text)
    assert read(*(bytes([byte]) for byte in text.encode())) == ([], text)


def test_bytes_that_are_no_utf8_become_a_sign() -> None:
    assert read(b"data: a\xff\xf0\x9f", b"\x98\x80b\n\n")[0] == [("", "a\ufffd😀b")]
