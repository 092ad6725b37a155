"""The rules that the tests of Telegram's texts go by are able to say no."""

from __future__ import annotations

import pytest

from tests.support.telegram_rules import faults


def entity(kind: str, offset: int, length: int, **more: str) -> dict:
    return {"type": kind, "offset": offset, "length": length, **more}


def test_what_may_be_nested_is_no_fault() -> None:
    assert (
        faults("quoted bold link code", [entity("blockquote", 0, 21), entity("bold", 7, 9), entity("code", 17, 4)])
        == []
    )
    assert faults("a link", [entity("text_link", 0, 6, url="https://a.b/c"), entity("italic", 2, 4)]) == []
    assert faults("both", [entity("bold", 0, 4), entity("italic", 0, 4)]) == []


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        (" \n", []),
        ("a" * 4097, []),
        ("😀" * 2049, []),
        ("a" * 101, [entity("bold", at, 1) for at in range(101)]),
        ("ab c", [entity("bold", 2, 1)]),
        ("abcd", [entity("bold", 0, 3), entity("italic", 2, 2)]),
        ("abcd", [entity("bold", 0, 4), entity("code", 1, 2)]),
        ("abcd", [entity("pre", 0, 4), entity("bold", 1, 2)]),
        ("abcd", [entity("blockquote", 0, 4), entity("blockquote", 1, 2)]),
        ("abcd", [entity("text_link", 0, 4, url="https://a.b"), entity("code", 0, 4)]),
        ("abcd", [entity("text_link", 0, 4, url="http://localhost/")]),
        ("abcd", [entity("text_link", 0, 4, url="javascript:alert(1)")]),
        ("abcd", [entity("bold", 0, 4, language="py")]),
        ("abcd", [entity("headline", 0, 4)]),
        ("abcd", [entity("text_link", 0, 4, url="https://a.b/" + "x" * 9_500)]),
    ],
)
def test_what_telegram_would_refuse_or_ignore_is_a_fault(text: str, entities: list[dict]) -> None:
    assert faults(text, entities)


@pytest.mark.parametrize("offset", [-1, 1, 4])
def test_an_entity_outside_the_text_or_within_a_character_is_a_fault(offset: int) -> None:
    with pytest.raises((AssertionError, UnicodeDecodeError)):
        faults("😀ab", [entity("bold", offset, 1)])
