"""Markdown made of Markdown's own pieces, with words in it that can be found again.

Every `@` in a piece becomes a word of its own, `q0z`, `q1z`, …, so that what was lost, doubled or
moved in a text is seen however the text was changed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from typing import Final

from hypothesis import strategies as st

_WORD = re.compile(r"q(\d+)z")

# Each is a block by itself, and shows all of its words in their order.
BLOCKS = (
    "# @ **@**",
    "@ @ @. @! @? 中文@。@，@",
    "@ **@ *@* @** __@__ ~~@~~ `@` ||@|| *@*",
    "[@](https://a.example/x) <https://b.example/> ![@](https://c.example/i.png) [@](file.md)",
    "- @\n- **@** @\n  - @\n    - @\n- [ ] @\n- [x] @",
    "1. @\n\n   @\n\n   > @\n2. @\n   ```py\n   @ = [@]\n   ```\n\n3. @",
    "9. @\n10. @\n    - @",
    "> @ *@*\n> > @\n>\n> - @\n> - @",
    "> [!NOTE]\n> @",
    "```python\ndef @():\n\treturn @\n\n    @\n```",
    "~~~\n@\n```\n@\n~~~",
    "    @\n\n    @",
    "| @ | @ |\n|---|--:|\n| @ | **@** |\n| `@` | @ |",
    "> | @ |\n> |:-:|\n> | @ |",
    "@\n===",
    "---",
    "@<T> < @ && @ > @ <b>@</b> x<sup>2</sup> <br>@ <unknown>@</unknown>",
    "<details>\n<summary>@</summary>\n\n@\n\n</details>",
    "@ $5 @ ~6 @ 10$ a || @ || b $x^2$ @",
    "@[^1] @\n\n[^1]: @",
    "👨‍👩‍👧 @ 🇩🇪🇫🇷 @ é̂ @ עברית @ العربية",
    "@  \n@\\\n@ \\* @ &amp; @",
    "@ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @",
)

# What a fuzzer puts together without sense.
SHREDS = (
    *BLOCKS,
    *("*", "**", "***", "_", "__", "`", "``", "```", "~~~", "~~", "[", "]", "](", ")", "![", "|", "||", "\\", "<", ">"),
    *(
        "\n",
        "\n\n",
        "\r\n",
        " ",
        "    ",
        "\t",
        "- ",
        "1. ",
        "> ",
        "# ",
        "---",
        "===",
        "|-|-|",
        "- [ ] ",
        "[^1]",
        "[^1]: ",
    ),
    *("$", "$$", r"\(", r"\)", r"\[", r"\]", r"\frac{a}{b}", "<b>", "</b>", "<a href=", "<!--", "-->", "<br>", "<sub>"),
    *("&", "&#8238;", "&nbsp;", "[x]: ", "https://x.example/", "tg://user?id=1", "http://localhost", "mailto:a@b.c"),
    *(
        "\u200b",
        "\u200d",
        "\u202e",
        "\ufe0f",
        "\u0301",
        "\u030a",
        "\u2028",
        "\x00",
        "\x0b",
        "\ud83d",
        "\ufeff",
        "\u3000",
    ),
    *("😀", "👩🏽‍🚀", "🇩🇪", "中", "한", "ا", "ﷺ", "\U000e0067", "\U0010ffff", "a" * 200, "@", "@ ", " @"),
)


def numbered(pieces: Sequence[str], joint: str) -> str:
    """The pieces as one text, its words numbered."""
    text = joint.join(pieces)
    numbers = iter(range(text.count("@")))
    return re.sub("@", lambda _: f"q{next(numbers)}z", text)


def words(*texts: str) -> list[int]:
    """The numbers of the words in `texts`, which may be torn between two of them."""
    return [int(number) for number in _WORD.findall(re.sub(r"\s", "", "".join(texts)))]


replies = st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=40).map(lambda pieces: numbered(pieces, "\n\n"))
"""What a model may write, whole blocks."""

shredded = st.lists(st.sampled_from(SHREDS), min_size=1, max_size=60).map(lambda pieces: numbered(pieces, ""))
"""What nobody would write."""


def is_hidden(source: str, number: int) -> bool:
    """Say whether a word stands where Markdown shows no text: behind a fence, in a target, a label or a tag."""
    at = source.index(f"q{number}z")
    before = source[max(0, at - 120) : at]
    language = re.search(r"(?:```|~~~)`*~*[^\S\n]*\S{0,32}$", before)
    return bool(language) or any(mark in before for mark in ("](", "]:", "<a href="))


_SIGNS: Final = (  # between two "¦" each
    "*¦**¦_¦~¦~~¦`¦```¦|¦||¦> ¦# ¦- ¦1. ¦\\¦a¦word ¦é¦😀¦漢字。¦עברית ¦<b>¦&lt;¦<!channel>¦<@U1|x>¦@here ¦[^1]¦[x](y)¦"
    "[d](https://example.org/a_b?c=*d*)¦https://example.org/a_(b)*c* ¦![p](https://e.org/p.png)¦\n¦\n\n¦```py\n¦$x^2$¦"
    "\n| a | b |\n|---|--:|\n| 1 | **2** |\n¦- [x] done\n¦\n[^1]: note\n¦\\[a\\]¦~~~\n¦  ¦\u200a¦\ud83d¦\x00"
)
_LONG: Final = ("word " * 300, "漢" * 900, "x" * 5_000, "> " * 40, "- a\n  " * 30, "<&>" * 200)


def fuzzed(seed: int, count: int = 10_000) -> Iterator[str]:
    """So many answers of scraps: what no model writes, and what a stranger may make it write."""
    rng, scraps = random.Random(seed), _SIGNS.split("¦")
    for _ in range(count):
        long = rng.choices(_LONG, k=rng.randrange(8) // 6)
        yield "".join([*rng.choices(scraps, k=rng.choice((3, 12, 40, 90))), *long])
