"""Replies as Matrix shows them: HTML of the elements that it knows, with the Markdown beside it."""

from __future__ import annotations

import json
import random
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given

from adapters.matrix.formatting import content, html, load, plain, split
from tests.support.markdown_pieces import BLOCKS, fuzzed, numbered, replies, shredded, words

# https://spec.matrix.org/v1.15/client-server-api/#mroommessage-msgtypes
_ALLOWED = re.compile("h[1-6]|blockquote|p|a|[uo]l|li|su[pb]|strong|em|u|del|code|[hb]r|div|table|t[rd]|pre|span")
_ATTRIBUTES = re.compile(
    r"a href=(https?|ftp|mailto|magnet):.*|ol start=\d+|code class=language-\S+"
    r"|span data-mx-(spoiler=None|maths=.*)|div data-mx-maths=.*",
    re.DOTALL | re.IGNORECASE,
)


class _Seen(HTMLParser):
    """The words of a page; fails where an element or its attribute is not known, or it is not closed in its place."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self._open = "", list[str]()
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert _ALLOWED.fullmatch(tag), tag
        assert all(_ATTRIBUTES.fullmatch(f"{tag} {name}={value}") for name, value in attrs), (tag, attrs)
        if tag not in ("br", "hr"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def messages(markdown: str) -> list[str]:
    """The words of the messages that a reply becomes, each of which fits into an event."""
    found = [content(part) for part in split(markdown)]
    assert all(len(json.dumps(each, ensure_ascii=False).encode()) < 60_000 and each["body"] for each in found)
    return [_Seen(each["formatted_body"]).text if "format" in each else each["body"] for each in found]


@given(replies)
def test_every_word_of_a_reply_is_shown_once_and_in_its_place(markdown: str) -> None:
    assert words(*messages(markdown)) == words(markdown)


@given(shredded)
def test_whatever_is_written_is_shown(markdown: str) -> None:
    assert all(messages(markdown))


@pytest.mark.slow
def test_ten_thousand_answers_are_taken() -> None:
    for markdown in fuzzed(7):
        assert all(messages(markdown))
        assert plain(markdown)["body"]


def test_a_reply_may_be_of_any_length() -> None:
    dice = random.Random(5)
    for _ in range(3):
        markdown = numbered([dice.choice(BLOCKS) for _ in range(300)], "\n\n")
        assert words(*messages(markdown)) == words(markdown)


def test_elements() -> None:
    shown = html("1. a\n2. b\n\n```py\nx<1\n```\n\n| a |\n|---|\n| *1* |\n\n[l](https://x.y/?a=1&b) [p](/q) $x^2$ <T>")
    assert shown == (
        '<ol start="1"><li>a</li><li>b</li></ol><pre><code class="language-py">x&lt;1\n</code></pre>'
        "<table><tr><td>a</td></tr><tr><td><em>1</em></td></tr></table>"
        '<p><a href="https://x.y/?a=1&amp;b">l</a> p (/q) <span data-mx-maths="x^2"><code>x²</code></span>'
        " &lt;T&gt;</p>"
    )
    assert content("Plain words.") == {"body": "Plain words."}
    assert not re.search("[\ud800-\udfff]", content("a \ud800 **b**")["formatted_body"])


@pytest.mark.parametrize(
    ("text", "full"), [("a" * 6_000, 0.5), ("a" * 12_000, 1.0), ("\u8a9e" * 12_000, 1.8), ("**a** " * 1_000, 0.625)]
)
def test_a_message_is_full_by_its_characters_or_by_the_bytes_of_both_forms(text: str, full: float) -> None:
    assert load(text) == pytest.approx(full, abs=0.001)
    assert all(load(each) <= 1.0 for each in split(text))
