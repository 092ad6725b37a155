"""Commands, and texts that merely begin with a slash."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.command import CommandCall, parse_command


@pytest.mark.parametrize(
    ("text", "name", "argument"),
    [
        ("/new", "new", ""),
        ("  /New  ", "new", ""),
        ("/title\u3000会议 记录", "title", "会议 记录"),
        ("/queue one\ntwo three", "queue", "one\ntwo three"),
        ("/queue\none two\nthree", "queue", "one two\nthree"),
        ("/status@legato_bot now", "status", "now"),
        ("/帮助", "帮助", ""),
        ("/a-b_c1", "a-b_c1", ""),
    ],
)
def test_a_command_is_a_slash_and_a_word(text: str, name: str, argument: str) -> None:
    assert parse_command(text) == CommandCall(name=name, argument=argument)


@pytest.mark.parametrize("text", ["", "/", "/ new", "//new", "/usr/bin", "/1st", "/_x", "/new!", "hi /new", "new"])
def test_everything_else_is_text(text: str) -> None:
    assert parse_command(text) is None


@settings(max_examples=100)
@given(st.text())
def test_any_text_is_judged(text: str) -> None:
    parse_command(text)
    parse_command("/" + text)


def test_a_megabyte_is_judged_at_once() -> None:
    assert parse_command("/" + "a" * 1_000_000 + "!") is None
    assert parse_command(" " * 1_000_000) is None
    assert parse_command("/x" + " " * 1_000_000 + "y") == CommandCall(name="x", argument="y")
