"""One value changed in the text of a file of settings: all else stays."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.app.config.editing import with_value, without
from gateway.runtime.errors import UserError

FILE = """\
# my settings
model: {provider: groq, name: a}   # the best
log:
  level: info  # for now

access:
  allow:
    - telegram:1   # Anna
    - telegram:2
# the end
"""


@pytest.mark.parametrize(
    ("key", "value", "before", "after"),
    [
        ("log.level", "debug", "level: info  # for now", "level: debug  # for now"),
        ("log.format", "json", "  level: info  # for now\n", "  level: info  # for now\n  format: json\n"),
        ("model.name", "b c", "name: a}   # the best", "name: b c}   # the best"),
        ("model.stream", False, "name: a}   # the best", "name: a, stream: false}   # the best"),
        ("turns.max_steps", 9, "    - telegram:2\n", "    - telegram:2\nturns:\n  max_steps: 9\n"),
        ("access.admins", ["x"], "    - telegram:2\n", "    - telegram:2\n  admins: [x]\n"),
        ("access.allow", ["telegram:1", "b: c"], "    - telegram:2\n", "    - 'b: c'\n"),
        ("access.allow", ["telegram:1", "telegram:2", "x:3"], "    - telegram:2\n", "    - telegram:2\n    - 'x:3'\n"),
        ("access.allow", ["telegram:2"], "    - telegram:1   # Anna\n", ""),
    ],
)
def test_nothing_else_changes(key: str, value: Any, before: str, after: str) -> None:
    assert with_value(FILE, key.split("."), value) == FILE.replace(before, after)


@pytest.mark.parametrize(
    "text", ["", "# nothing yet\n", "model:\n", "model:\naccess: {}\n", "access: {}", "a: 1\n\n\n"]
)
def test_sections_are_made_where_they_are_missing(text: str) -> None:
    changed = with_value(text, ["model", "provider"], "groq")
    assert yaml.safe_load(changed) == {**(yaml.safe_load(text) or {}), "model": {"provider": "groq"}}
    assert text.strip() == "" or text.splitlines()[0].rstrip() in changed


@pytest.mark.parametrize(
    ("text", "key"),
    [("model: groq\n", "model.name"), ("- a\n", "model.name"), ("x: &a {n: 1}\nmodel: *a\n", "model.name")],
)
def test_what_cannot_be_changed_safely_is_refused(text: str, key: str) -> None:
    with pytest.raises(UserError, match="by hand"):
        with_value(text, key.split("."), 1)


words = st.text(alphabet="abcé你 :#-'\"{}[],&*!|>%@`\n", max_size=12)
names = st.sampled_from(["model", "log", "access", "new"])


@example(value=":>", path=["model", "model"])
@given(
    value=st.one_of(words, st.integers(), st.booleans(), st.lists(words, max_size=3)),
    path=st.lists(names, min_size=1, max_size=3),
)
def test_the_value_is_what_is_read_back(value: Any, path: list[str]) -> None:
    try:
        changed = with_value(FILE, path, value)
    except UserError:
        return
    read: Any = yaml.safe_load(changed)
    for name in path:
        read = read[name]
    assert read == value
    assert "# my settings" in changed


@pytest.mark.parametrize("text", ["", "# mine\n", "log: {level: info}\n", "chats: {}\n", "chats:\n  a: {}\n"])
@pytest.mark.parametrize(
    "name",
    [
        "telegram:1",
        "*",
        "a: b",
        "on",
        "12",
        "2024-13-45",
        "#a",
        "中文",
        "x:\n  y: 1\ntools: {topics: true}\nprompt",
        " ",
        "",
    ],
)
def test_a_name_is_a_name_and_nothing_more(text: str, name: str) -> None:
    try:
        changed = with_value(text, ["chats", name, "persona"], "hi")
    except UserError:
        assert name == "" or "\n" in name
        return
    read = yaml.compose(changed, Loader=yaml.SafeLoader)
    chats = next(value for key, value in read.value if key.value == "chats")
    assert name in {key.value for key, _ in chats.value}
    assert {key.value for key, _ in read.value} <= {"chats", "log"}
    assert "persona" not in without(changed, ["chats", name])


def test_what_an_alias_repeats_is_not_changed_with_it() -> None:
    text = "a: &x\n  url: here\n  timeout: 5\nb: *x\n"
    with pytest.raises(UserError, match="by hand"):
        without(text, ["b", "timeout"])
