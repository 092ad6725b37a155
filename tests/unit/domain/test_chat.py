"""Keys never collide, and commands are told from text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.chat import SessionKey, Source, session_key
from gateway.domain.command import parse_command

SHARING = ("shared", "per_user")
part = st.text(st.characters(exclude_categories=("Cs",)), max_size=12) | st.sampled_from(
    ["a", "a/b", "chat=a", "a/user=b", "user=b", "%2F", "a%2Fuser=b", "/", "=", ""]
)
keys = st.builds(SessionKey, platform=part.filter(bool), chat=part, thread=st.none() | part, user=st.none() | part)


@given(keys, keys)
@settings(max_examples=300)
def test_two_keys_are_never_written_alike(one: SessionKey, other: SessionKey) -> None:
    assert (str(one) == str(other)) == (one == other)


@given(keys)
def test_a_written_key_is_read_back(key: SessionKey) -> None:
    assert SessionKey.parse(str(key)) == key


@pytest.mark.parametrize("text", ["", "console", "console/chat", "/chat=a", "console/chat=a/chat=b", "console/who=a"])
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a session key"):
        SessionKey.parse(text)


@given(
    st.sampled_from(["direct", "group", "thread"]),
    st.sampled_from(SHARING),
    st.sampled_from(SHARING),
    part,
    part,
    st.none() | part,
)
def test_a_user_is_part_of_the_key_exactly_where_the_chat_is_split_by_user(
    chat_type: str, groups: str, threads: str, chat: str, user: str, thread: str | None
) -> None:
    source = Source(platform="p", chat=chat, chat_type=chat_type, user=user, thread=thread)  # type: ignore[arg-type]
    key = session_key(source, groups=groups, threads=threads)  # type: ignore[arg-type]
    split = {"direct": "shared", "group": groups, "thread": threads}[chat_type] == "per_user"
    assert key == SessionKey(platform="p", chat=chat, thread=thread, user=user if split else None)
    assert source.address.chat == key.chat
    assert source.address.thread == key.thread


@given(st.text(max_size=60))
def test_any_text_is_a_command_or_it_is_not(text: str) -> None:
    call = parse_command(text)
    if call is None:
        return
    assert text.lstrip().startswith("/")
    assert call.name == call.name.lower()
    assert call.argument == call.argument.strip()
    assert call.argument in text
    assert parse_command(f"/{call.name} {call.argument}") == call


@pytest.mark.parametrize("text", ["", "hello", "/", "//x", "/1", "/usr/bin", "/a.b", "a /new", "/-x", "/!"])
def test_ordinary_text(text: str) -> None:
    assert parse_command(text) is None


@pytest.mark.parametrize(
    ("text", "name", "argument"),
    [
        ("/new", "new", ""),
        ("/New@Legato_bot", "new", ""),
        ("/compress  train tickets ", "compress", "train tickets"),
        ("/title one\ntwo", "title", "one\ntwo"),
        ("/queue\nwith a line break", "queue", "with a line break"),
        ("/recall /usr/bin", "recall", "/usr/bin"),
    ],
)
def test_commands(text: str, name: str, argument: str) -> None:
    call = parse_command(text)
    assert call is not None
    assert (call.name, call.argument) == (name, argument)
