"""The content of files."""

from __future__ import annotations

import pytest

from gateway.domain.chat import encoded

MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    ("name", "text", "is_marked"),
    [
        ("a.txt", "ağaç, ş, 中", True),
        ("A.CSV", "ş;1", True),
        ("a.md", "plain", False),
        ("a.md", "\ufeffş", True),
        ("a.json", '{"a": "ş"}', False),
        ("a.jsonl", '"ş"', False),
        ("a.py", "ş = 1", False),
        ("txt", "ş", False),
    ],
)
def test_what_people_read_says_that_it_is_utf_8(name: str, text: str, is_marked: bool) -> None:
    content = encoded(name, text)
    assert content.startswith(MARK) is is_marked
    assert content.count(MARK) <= 1
    assert content.decode("utf-8-sig") == text.removeprefix("\ufeff")


def test_half_a_character_loses_no_file() -> None:
    assert encoded("a.txt", "\ud83d").decode() == "\ufeff?"
