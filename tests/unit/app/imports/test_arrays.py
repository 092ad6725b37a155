"""A JSON array of any size, read one element at a time: whole, damaged and cut off."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.app.imports import arrays
from gateway.app.imports.past import Tally
from gateway.runtime.errors import UserError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)


class Dripping(io.BytesIO):
    """Gives a few bytes at a time, whatever it is asked for."""

    def __init__(self, data: bytes, most: int) -> None:
        super().__init__(data)
        self._most = most

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(self._most, size if size and size > 0 else self._most))


def elements(data: bytes, *, drip: int = 1 << 20) -> list[Any]:
    tally = Tally()
    found = list(arrays.elements(Dripping(data, drip), tally))
    assert tally.read <= len(data)
    return found


@given(
    st.lists(st.dictionaries(st.text(max_size=8), JSON, max_size=4), max_size=6),
    st.integers(1, 40),
    st.booleans(),
    st.sampled_from([None, 1]),
)
def test_it_gives_what_the_library_gives(value: list[Any], drip: int, ascii_: bool, indent: int | None) -> None:
    data = json.dumps(value, ensure_ascii=ascii_, indent=indent).encode(errors="replace")
    assert elements(data, drip=drip) == json.loads(data)


@pytest.mark.parametrize("drip", [1, 2, 3, 7, 1 << 20])
def test_texts_with_brackets_quotes_and_backslashes(drip: int) -> None:
    value = [{"a": '}]{["\\"'}, {"b": "\\\\"}, {"\\": '\\"'}, {"c": "数据库 مرحبا \x7f"}]
    assert elements(b"\xef\xbb\xbf \n" + json.dumps(value).encode() + b"\n ", drip=drip) == value


def test_one_object_is_an_array_of_one() -> None:
    assert elements(b' {"a": [1, {"b": "]"}]} ') == [{"a": [1, {"b": "]"}]}]


@pytest.mark.parametrize("inner", ["nul", "1e", "\x00", "[" * 50_000 + "]" * 50_000, "9" * 5_000, '"\\x"', '"\\ud8"'])
def test_what_comes_before_a_damaged_element_is_given(inner: str) -> None:
    found = arrays.elements(io.BytesIO(f'[{{"a": 1}},{{"b": {inner}}},{{"c": 3}}]'.encode()), Tally())
    assert next(found) == {"a": 1}
    with pytest.raises(UserError, match="damaged"):
        next(found)


@pytest.mark.parametrize("drip", [1, 1 << 20])
@pytest.mark.parametrize("tail", ["", ",", ", nul", ', {"b"', ', {"b": "x', ', {"b": "x\\'])
def test_a_file_that_was_cut_off_gives_what_came_before_and_says_so(tail: str, drip: int) -> None:
    found = arrays.elements(Dripping(f'[{{"a": 1}}{tail}'.encode(), drip), Tally())
    assert next(found) == {"a": 1}
    with pytest.raises(UserError, match="was cut off"):
        next(found)


@pytest.mark.parametrize("data", [b"", b" ", b"hello", b"\x00\x01", b"<html>", b"1", b'"text"'])
def test_a_foreign_file_is_refused(data: bytes) -> None:
    with pytest.raises(UserError, match="not a JSON array"):
        elements(data)


def test_the_bytes_are_read_a_few_times_at_most() -> None:
    """A text of many strides is not parsed from its beginning at each."""
    asked: list[int] = []

    class Counting(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            asked.append(size or 0)
            return super().read(size)

    data = b'[{"a": "' + b"x" * 20_000_000 + b'"}]'
    assert len(list(arrays.elements(Counting(data), Tally()))) == 1
    assert len(asked) < 20
