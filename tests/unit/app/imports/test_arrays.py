"""A JSON array of any size, read one element at a time: whole, damaged, oversize and cut off."""

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


def elements(data: bytes, *, most: int = arrays.MOST, drip: int = 1 << 20) -> tuple[list[Any], dict[str, int]]:
    tally = Tally()
    found = list(arrays.elements(Dripping(data, drip), tally, most))
    assert tally.read <= len(data)
    return found, dict(tally.left_out)


@given(
    st.lists(st.dictionaries(st.text(max_size=8), JSON, max_size=4), max_size=6),
    st.integers(1, 40),
    st.booleans(),
    st.sampled_from([None, 1]),
)
def test_it_gives_what_the_library_gives(value: list[Any], drip: int, ascii_: bool, indent: int | None) -> None:
    data = json.dumps(value, ensure_ascii=ascii_, indent=indent).encode(errors="surrogatepass")
    found, left_out = elements(data, drip=drip)
    if not left_out:
        assert found == value
    else:  # half a surrogate pair that is no escape is no UTF-8
        assert not ascii_
        assert len(found) + sum(left_out.values()) == len(value)


@pytest.mark.parametrize("drip", [1, 2, 3, 7, 1 << 20])
def test_texts_with_brackets_quotes_and_backslashes(drip: int) -> None:
    value = [{"a": '}]{["\\"'}, {"b": "\\\\"}, {"\\": '\\"'}, {"c": "数据库 مرحبا \x7f"}]
    assert elements(b"\xef\xbb\xbf \n" + json.dumps(value).encode() + b"\n ", drip=drip) == (value, {})


def test_one_object_is_an_array_of_one() -> None:
    assert elements(b' {"a": [1, {"b": "]"}]} ')[0] == [{"a": [1, {"b": "]"}]}]


@pytest.mark.parametrize("drip", [1, 5, 1 << 20])
@pytest.mark.parametrize("inner", ['"' + "x" * 500 + '"', "[" * 300 + "]" * 300, '"' + '\\\\\\"' * 200 + '"'])
def test_an_oversize_element_costs_itself_alone(drip: int, inner: str) -> None:
    data = f'[{{"a": 1}}, {{"b": {inner}}}, {{"c": 3}}]'.encode()
    found, left_out = elements(data, most=100, drip=drip)
    assert found == [{"a": 1}, {"c": 3}]
    assert list(left_out.values()) == [1]


@pytest.mark.parametrize("inner", ["nul", "1e", "\x00", "[" * 50_000 + "]" * 50_000, "9" * 5_000, '"\\x"', '"\\ud8"'])
def test_a_damaged_element_costs_itself_alone(inner: str) -> None:
    found, left_out = elements(f'[{{"a": 1}},{{"b": {inner}}},{{"c": 3}}]'.encode())
    assert found == [{"a": 1}, {"c": 3}]
    assert left_out == {"conversations that are damaged": 1}


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


@pytest.mark.parametrize("drip", [1, 1 << 20])
@pytest.mark.parametrize("other", ["null", "-1.5e3", "true", "undefined", "}", "x" * 300])
def test_an_entry_that_is_no_object_costs_itself_alone(other: str, drip: int) -> None:
    found, left_out = elements(f'[{other},{{"a": 1}}, {other} ,{{"c": 3}},{other}]'.encode(), drip=drip, most=100)
    assert found == [{"a": 1}, {"c": 3}]
    assert left_out == {"entries that are not conversations": 3}


@pytest.mark.parametrize("data", [b"[1, 2]", b'["text"]', b"[null]"])
def test_an_array_of_something_else_is_refused(data: bytes) -> None:
    with pytest.raises(UserError, match="not an array of conversations"):
        elements(data)


def test_the_bytes_are_read_a_few_times_at_most() -> None:
    """A text of many strides is not searched from its beginning at each."""
    asked: list[int] = []

    class Counting(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            asked.append(size or 0)
            return super().read(size)

    data = b'[{"a": "' + b"x" * 20_000_000 + b'"}]'
    assert len(list(arrays.elements(Counting(data), Tally()))) == 1
    assert len(asked) < 20
