"""Commands, and texts that merely begin with a slash."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.command import CommandCall, as_typed, parse_command


@pytest.mark.parametrize(
    ("text", "name", "argument"),
    [
        ("/new", "new", ""),
        ("  /New  ", "new", ""),
        ("/title\u3000会议 记录", "title", "会议 记录"),
        ("/queue one\ntwo three", "queue", "one\ntwo three"),
        ("/queue\none two\nthree", "queue", "one two\nthree"),
        ("/Status@Legato_bot now", "status", "now"),
        ("/recall /usr/bin", "recall", "/usr/bin"),
        ("/compress  train tickets ", "compress", "train tickets"),
        ("/帮助", "帮助", ""),
        ("/a-b_c1", "a-b_c1", ""),
    ],
)
def test_a_command_is_a_slash_and_a_word(text: str, name: str, argument: str) -> None:
    assert parse_command(text) == CommandCall(name=name, argument=argument)


@pytest.mark.parametrize(
    "text", ["", "/", "/ new", "//new", "/usr/bin", "/1st", "/_x", "/-x", "/a.b", "/new!", "hi /new", "new"]
)
def test_everything_else_is_text(text: str) -> None:
    assert parse_command(text) is None


@given(st.sampled_from(["", "/"]), st.text(max_size=60))
def test_a_command_is_read_again_as_it_was_written(slash: str, text: str) -> None:
    call = parse_command(slash + text)
    if call is None:
        return
    assert (slash + text).lstrip().startswith("/")
    assert call.name == call.name.lower()
    assert call.argument == call.argument.strip()
    assert call.argument in text
    assert parse_command(f"/{call.name} {call.argument}") == call


def test_a_megabyte_is_judged_at_once() -> None:
    assert parse_command("/" + "a" * 1_000_000 + "!") is None
    assert parse_command(" " * 1_000_000) is None
    assert parse_command("/x" + " " * 1_000_000 + "y") == CommandCall(name="x", argument="y")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/new starts a fresh conversation, /help lists more.", "!new starts a fresh conversation, !help lists more."),
        ("Send: /new", "Send: !new"),
        ("(`/new`) “/new” /new. /new.txt", "(`!new`) “!new” !new. /new.txt"),
        (
            "/newer, /usr/new, https://x.example/new, a/new and /new/x",
            "/newer, /usr/new, https://x.example/new, a/new and /new/x",
        ),
        ("发送 /new 重新开始", "发送 !new 重新开始"),
    ],
)
def test_a_text_names_commands_as_they_are_typed_there(text: str, shown: str) -> None:
    assert as_typed(text, {"new", "help"}, "!") == shown
