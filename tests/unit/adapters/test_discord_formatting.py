"""Replies, and texts that are none, as Discord shows them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given

from adapters.discord.formatting import fits_caption, plain, shown, split
from tests.emulators.discord.posting import text_of
from tests.support.markdown_pieces import BLOCKS, numbered, replies, words

LONGEST = 2_000


def units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def messages(markdown: str) -> list[str]:
    """The messages that a reply becomes, each of which Discord takes."""
    found = [shown(part) for part in split(markdown)]
    assert all(text.strip() and units(text) <= LONGEST for text in found)
    assert [text_of({"content": text}) for text in found] == [text.strip() for text in found]
    return found


@given(replies)
def test_every_word_of_a_reply_is_shown_once_and_in_its_place(markdown: str) -> None:
    assert words(*messages(markdown)) == words(markdown)


def test_a_reply_may_be_of_any_length() -> None:
    dice = random.Random(5)
    for _ in range(20):
        markdown = numbered([dice.choice(BLOCKS) for _ in range(60)], "\n\n")
        assert words(*messages(markdown)) == words(markdown)


def test_code_is_closed_and_opened_again_with_its_language() -> None:
    code = "\n".join(f"line({number})" for number in range(400))
    first, *others = messages(f"See:\n\n```python\n{code}\n```\n")
    assert first.startswith("See:\n\n```python\nline(0)")
    assert all(text.startswith("```python\n") and text.rstrip().endswith("```") for text in others)


def test_a_narrow_table_is_a_block_of_code() -> None:
    assert shown("Voices:\n\n| Voice | Who |\n|---|--:|\n| Alto | **Anna** |\n\nThat is all.") == (
        "Voices:\n\n```\nVoice   Who\n───────────\nAlto   Anna\n```\n\nThat is all."
    )


def test_a_wide_table_is_lines() -> None:
    table = f"| Voice | What |\n|---|---|\n| Alto | {'long ' * 20} |\n| Bass | [here](https://a.example/) |\n"
    said = shown(table)
    assert said.startswith("**Voice: **Alto\n**What: **long")
    assert "[here](https://a.example/)" in said
    assert "|" not in said


@pytest.mark.parametrize(
    ("markdown", "text"),
    [("#### Deep\ntext", "### Deep\ntext"), ("### Three", "### Three"), ("```\n#### no\n```", "```\n#### no\n```")],
)
def test_deep_headings_are_as_deep_as_discord_knows(markdown: str, text: str) -> None:
    assert shown(markdown) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a *b* _c_ `d` ~e~ |f|", r"a \*b\* \_c\_ \`d\` \~e\~ \|f\|"),
        ("# no heading\n> no quote\n- no list\n1. none", "\\# no heading\n\\> no quote\n\\- no list\n1\\. none"),
        ("see https://a.example/x_y_z now_", r"see https://a.example/x_y_z now\_"),
        ("  ", "(empty message)"),
    ],
)
def test_what_is_no_markdown_is_shown_as_it_is(text: str, said: str) -> None:
    assert plain(text) == said


def test_a_plain_text_that_signs_would_make_too_long_is_left_alone() -> None:
    assert plain("*" * 1_500) == "*" * 1_500


def test_nothing_to_see_is_said() -> None:
    assert shown("\n \n") == "(empty message)"
    assert fits_caption("x" * 2_000)
    assert not fits_caption("x" * 2_001)


@pytest.mark.slow
def test_ten_thousand_fuzzed_replies() -> None:
    for seed in range(10_000):
        dice = random.Random(seed)
        markdown = numbered([dice.choice(BLOCKS) for _ in range(dice.randrange(1, 40))], "\n\n")
        assert words(*messages(markdown)) == words(markdown), seed


@pytest.mark.parametrize(
    ("markdown", "sent"),
    [
        ("2*3*4 = 24", "2\\*3\\*4 = 24"),
        ("**2*3*4** is *it*", "**2\\*3\\*4** is *it*"),
        ("2**3**4 and 2*3 or 4*5", "2\\*\\*3\\*\\*4 and 2\\*3 or 4\\*5"),
        ("`2*3*4`\n```\na*b*c\n```", "`2*3*4`\n```\na*b*c\n```"),
        ("Area: a*b*c, costs $5 to $9", "Area: a\\*b\\*c, costs $5 to $9"),
        ("这是*重点*内容, *one* and **two**, 2 * 3 * 4", "这是*重点*内容, *one* and **two**, 2 * 3 * 4"),
        ("https://example.org/a*b*c", "https://example.org/a*b*c"),
    ],
)
def test_the_stars_of_a_product_are_no_emphasis(markdown: str, sent: str) -> None:
    assert shown(markdown) == sent


@pytest.mark.parametrize(
    ("markdown", "sent"),
    [
        ("So $E=mc^2$ holds", "So `E=mc²` holds"),
        ("- **so** $a_1$ and \\(x^2\\)\n> $x$ is", "- **so** `a₁` and `x²`\n> `x` is"),
        ("So\n$$E=mc^2$$\nholds", "So\n```\nE=mc²\n```\nholds"),
        ("So $$E=mc^2$$ holds", "So \n```\nE=mc²\n```\n holds"),
        ("- so $$E=\nmc^2$$", "- so `E= mc²`"),
        ("It costs $5, or $9", "It costs $5, or $9"),
        ("`$x$` and\n```\n$$y$$\n```", "`$x$` and\n```\n$$y$$\n```"),
        ("| a |\n|---|\n| $x^2$ |", "```\na\n──\nx²\n```\n"),
        ("see __init__.py of __foo__", "see \\_\\_init\\_\\_.py of __foo__"),
        ("https://a.example/__init__.py, 2*3*4", "https://a.example/__init__.py, 2\\*3\\*4"),
    ],
)
def test_formulas_are_code_and_names_keep_their_underscores(markdown: str, sent: str) -> None:
    assert shown(markdown) == sent


def test_a_product_that_would_be_too_long_with_its_signs_is_shown_as_it_is() -> None:
    text = "2*3*4 " * 333
    assert shown(text) == text


@pytest.mark.parametrize(("letters", "kept"), [(1_998, True), (1_999, False)])
def test_signs_are_kept_from_meaning_something_as_long_as_that_fits(letters: int, kept: bool) -> None:
    text = "a" * letters + "*"
    assert plain(text) == ("a" * letters + r"\*" if kept else text)
