"""The Markdown of models as a person reads it in Telegram."""

from __future__ import annotations

import random
import subprocess
import sys

import pyromark
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from adapters.telegram.formatting import Entity, Rendered, _trimmed, render, split
from gateway.delivery.markdown.page import Span
from gateway.delivery.markdown.reading import language
from tests.emulators.telegram.entities import read_entities, settle
from tests.support.hostile import within
from tests.support.markdown_pieces import BLOCKS, SHREDS, is_hidden, numbered, replies, shredded, words
from tests.support.telegram_rules import faults, in_units, marked


def fields(rendered: Rendered) -> list[dict[str, str | int]]:
    """The entities as the Bot API has them."""
    return [{name: value for name, value in asdict(each).items() if value is not None} for each in rendered.entities]


def looks(markdown: str) -> tuple[str, list[tuple[str, ...]]]:
    """The text, and each entity as its type, what it marks and where it leads or what language it is in."""
    rendered = render(markdown)
    entities = fields(rendered)
    assert faults(rendered.text, entities) == []
    return rendered.text, [
        (
            str(entity["type"]),
            marked(rendered.text, entity),
            *(str(entity[key]) for key in ("url", "language") if key in entity),
        )
        for entity in entities
    ]


# Letters


def test_styles_are_marked_and_their_signs_are_gone() -> None:
    assert looks("a **bold** *slanted* ~~gone~~ `code` ||hidden||") == (
        "a bold slanted gone code hidden",
        [
            ("bold", "bold"),
            ("italic", "slanted"),
            ("strikethrough", "gone"),
            ("code", "code"),
            ("spoiler", "hidden"),
        ],
    )


def test_a_style_leaves_out_the_code_in_it_and_a_link_or_a_spoiler_takes_it_in() -> None:
    assert looks("**a `b` c** [`d`](https://x.example) ||e `f`||")[1] == [
        ("bold", "a"),
        ("code", "b"),
        ("bold", "c"),
        ("text_link", "d", "https://x.example"),
        ("spoiler", "e f"),
    ]


def test_offsets_are_utf16_units() -> None:
    assert render("😀 **粗体** 👨‍👩‍👧 *é*").entities == (
        Entity(type="bold", offset=3, length=2),
        Entity(type="italic", offset=15, length=1),
    )
    assert looks("**שלום** 👍🏽 **مرحبا**")[1] == [("bold", "שלום"), ("bold", "مرحبا")]


@pytest.mark.parametrize(
    "text",
    [
        "if a || b || c",
        "it costs $5 and 10$ more, or $FOO_BAR/$BAZ",
        "~5 minutes to ~10",
        "between ~5~ and (~6~)",
        "vector<int> and <your name>",
        "2 * 3 * 4 and snake_case_name",
        "<!-- a note -->",
        "C:\\dir & co",
        "{{{ }}} || `",
        "[^1] [x] ![",
    ],
)
def test_what_only_looks_like_markup_stays(text: str) -> None:
    assert render(text) == Rendered(text=text, entities=())


def test_html_that_telegram_can_show_is_shown() -> None:
    assert looks(
        "<b>bold</b> <u>under</u> <code>x</code> H<sub>2</sub>O x<sup>2</sup> y<sup>ab</sup><br>z &amp; <i>open"
    ) == (
        "bold under x H₂O x² y^(ab)\nz & <i>open",
        [("bold", "bold"), ("underline", "under"), ("code", "x")],
    )
    assert looks('<a href="https://x.example/?a&amp;b">here</a>') == (
        "here",
        [("text_link", "here", "https://x.example/?a&b")],
    )
    assert looks("<details>\n<summary>More</summary>\n\nhidden **text**\n\n</details>") == (
        "More\n\nhidden text",
        [("bold", "More"), ("bold", "text")],
    )


def test_formulas_are_written_as_people_write_them() -> None:
    assert looks(r"$\frac{a}{b}$, \(\alpha \le \sqrt{x+1}\) and $x^2$ but `\(\alpha\)`") == (
        r"a/b, α ≤ √(x+1) and x² but \(\alpha\)",
        [("code", "a/b"), ("code", "α ≤ √(x+1)"), ("code", "x²"), ("code", r"\(\alpha\)")],
    )
    assert looks("so\n\\[ \\sum_{i=1}^n x_i \\]\nthen") == ("so\n∑ᵢ₌₁ⁿ xᵢ\nthen", [("pre", "∑ᵢ₌₁ⁿ xᵢ")])
    assert render(r"$\unknown{abc}$").text == r"\unknown{abc}"
    braces = "{" * 490 + r"\alpha" + "}" * 490
    assert render(f"${braces}$").text in ("α", braces)  # as deep as the stack allows


# Links


def test_links_lead_where_telegram_can_follow() -> None:
    assert looks("[a](https://x.example/y_z) <https://x.example> https://x.example/q_r_s") == (
        "a https://x.example https://x.example/q_r_s",
        [("text_link", "a", "https://x.example/y_z")],
    )
    assert looks("[b *c*](http://x.example:8080/?q=ä) ![d](https://x.example/e.png)")[1] == [
        ("text_link", "b c", "http://x.example:8080/?q=ä"),
        ("italic", "c"),
        ("text_link", "🖼 d", "https://x.example/e.png"),
    ]


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("[readme](docs/readme.md)", "readme (docs/readme.md)"),
        ("[here](http://localhost:80/x)", "here (http://localhost:80/x)"),
        ("[me](tg://user?id=1)", "me (tg://user?id=1)"),
        ("[mail](mailto:a@b.example)", "mail (a@b.example)"),
        ("<a@b.example>", "a@b.example"),
        ("[up](#top)", "up"),
        ("[x]()", "x"),
        ("[](file.txt)", "file.txt"),
        ("[p](https://x.example:99999/)", "p (https://x.example:99999/)"),
        ("![](plot.png)", "🖼 plot.png"),
    ],
)
def test_a_target_that_telegram_would_refuse_is_shown_instead(markdown: str, text: str) -> None:
    assert looks(markdown) == (text, [])


def test_a_link_may_have_a_blank_in_it_and_text_need_not() -> None:
    assert looks("[a](<https://x.example/b c>)")[1] == [("text_link", "a", "https://x.example/b%20c")]
    assert looks("[](https://x.example/b)") == ("https://x.example/b", [])


def test_sources_that_nothing_refers_to_are_shown() -> None:
    assert looks("see [one][1]\n\n[1]: https://x.example\n[2]: https://y.example") == (
        "see one\n[2]: https://y.example",
        [("text_link", "one", "https://x.example")],
    )
    assert render("a[^1]\n\n[^1]: the note").text == "a[1]\n\n[1] the note"


# Blocks


def test_headings_are_bold_and_close_to_what_they_head() -> None:
    assert looks("# One `x`\n\ntext\n\n## Two\ntext\n##### Three") == (
        "One x\n\ntext\n\nTwo\ntext\nThree",
        [("bold", "One"), ("underline", "One"), ("code", "x"), ("bold", "Two"), ("bold", "Three"), ("italic", "Three")],
    )


def test_lists_are_indented_and_keep_their_numbers() -> None:
    nested = "3. one\n   - two\n     - three\n\n       more of it\n4. four\n"
    assert looks(f"{nested}   ```py\n   x = [1]\n   ```\n   five\n\n- [ ] six\n- [x] seven") == (
        "3. one\n   ◦ two\n      ▪ three\n\n         more of it\n4. four\nx = [1]\n   five\n\n☐ six\n☑ seven",
        [("pre", "x = [1]", "py")],
    )
    assert render("- a\n\n- b\n- c").text == "• a\n\n• b\n• c"
    assert render("- - - a\n-\n- b").text == "• ◦ ▪ a\n• \n• b"


def test_lists_as_deep_as_one_likes_stay_on_the_screen() -> None:
    deepest = render("".join("  " * depth + "- x\n" for depth in range(40))).text.rpartition("\n")[2]
    assert len(deepest) - len(deepest.lstrip(" ")) <= 24


def test_quotes_are_quotes_and_long_ones_are_folded() -> None:
    assert looks("> a *b*\n> > c\n>\n> ```\n> d\n> ```\n\nafter") == (
        "a b\n> c\n\nd\n\nafter",
        [("blockquote", "a b\n> c\n\nd"), ("italic", "b"), ("pre", "d")],
    )
    assert looks("> [!WARNING]\n> hot") == ("Warning\nhot", [("blockquote", "Warning\nhot"), ("bold", "Warning")])
    assert looks("> " + "word " * 300)[1][0][0] == "expandable_blockquote"


@pytest.mark.parametrize(
    "info", ["x " + "a=b," * 40 + '"', "a=b," * 50_000 + '"', "x" + " {a} b=" * 30_000, "{" * 200_000]
)
def test_no_words_behind_a_fence_take_long_to_read(info: str) -> None:
    with within(1.0):
        assert language(info) is None


def test_code_keeps_its_indents_and_says_its_language() -> None:
    code = '```python title="a.py"\n\tdef f():\n\t\treturn 1\n\n\n    # end\n```'
    assert looks(code) == (
        "    def f():\n        return 1\n\n\n    # end",
        [("pre", "    def f():\n        return 1\n\n\n    # end", "python")],
    )
    assert looks("~~~\n```\n~~~")[1] == [("pre", "```")]
    assert looks("```not a language\nx\n```") == ("not a language\nx", [("pre", "not a language\nx")])
    assert looks("a\n```\n```\nb") == ("a\nb", [])
    assert looks("a\n```py title='x'\n```\nb") == ("a\npy title='x'\nb", [("pre", "py title='x'")])
    assert looks("Yours is:\n~~~ B7-204") == ("Yours is:\nB7-204", [("pre", "B7-204")])
    assert looks("```js\nunfinished")[1] == [("pre", "unfinished", "js")]


def test_a_diagram_is_code_and_nothing_is_fetched() -> None:
    assert looks("```mermaid\ngraph TD; A-->B\n```")[1] == [("pre", "graph TD; A-->B", "mermaid")]


# Tables


def test_a_narrow_table_has_columns() -> None:
    assert looks("| Name | 数量 |\n|:--|--:|\n| `a` | 5 |\n| **苹果** | 12 |") == (
        "Name  数量\n──────────\na        5\n苹果    12",
        [("pre", "Name  数量\n──────────\na        5\n苹果    12")],
    )
    assert render("|a|\n|-|\n").text == "a\n─"


def test_a_wide_table_has_a_block_for_each_row() -> None:
    headers = "| Name | What it is for, in ever so many words |\n|---|---|\n"
    assert looks(f"{headers}| *x* | all of the things that there are |\n| y | |") == (
        "Name: x\nWhat it is for, in ever so many words: all of the things that there are\n\n"
        "Name: y\nWhat it is for, in ever so many words: –",
        [
            ("bold", "Name:"),
            ("italic", "x"),
            ("bold", "What it is for, in ever so many words:"),
            ("bold", "Name:"),
            ("bold", "What it is for, in ever so many words:"),
        ],
    )


def test_a_wide_table_begins_below_what_stands_before_it() -> None:
    headers = "| Name | What it is for, in ever so many words |\n|---|---|\n"
    table = f"{headers}| x | all of the things that there are |"
    shown = "Name: x\nWhat it is for, in ever so many words: all of the things that there are"
    assert render(f"So:\n\n{table}\n\nEnd.").text == f"So:\n\n{shown}\n\nEnd."
    assert render(f"## So\n{table}").text == f"So\n{shown}"
    assert render(f"- so\n\n{table}").text == f"• so\n\n{shown}"


def test_a_table_with_links_keeps_them() -> None:
    assert looks("| a | b |\n|---|---|\n| 1 | [x](https://x.example) |") == (
        "a: 1\nb: x",
        [("bold", "a:"), ("bold", "b:"), ("text_link", "x", "https://x.example")],
    )


def test_cells_beyond_the_headers_are_not_lost() -> None:
    assert render("| a | b |\n|---|---|\n| 1 | 2 | 3 | 4 |").text == "a  b\n──────────\n1  2 3 | 4"


# Limits


def test_telegram_takes_characters_out_and_the_offsets_are_right_all_the_same() -> None:
    assert looks("a\u202eb **c\u2028d** e\x00\u030a A\u030a\r\nf\rg") == ("ab c\nd e  Å\nf\ng", [("bold", "c\nd")])
    assert render("half \ud83d **x**").text == "half \ufffd x"


@pytest.mark.parametrize(
    "invisible", ["", " \n\t", "\u200b\u200d", "\u2800", "\ufe0f", "\u3164", "&nbsp;", "\u202e", "\x00"]
)
def test_what_would_be_empty_says_so(invisible: str) -> None:
    text = render(invisible).text
    assert text == ("&nbsp;" if invisible == "&nbsp;" else "(empty message)")


@pytest.mark.parametrize("markdown", ["**", "> ", "- ", "#", "[x]: y", "```\n```"])
def test_what_shows_nothing_is_shown_as_it_was_written(markdown: str) -> None:
    assert render(markdown).text in (markdown.strip(), "•")


def test_of_too_many_entities_the_most_important_ones_stay() -> None:
    rendered = render("*a* " * 150 + "[b](https://x.example/) " * 30 + "||c|| **d**")
    kinds = [entity.type for entity in rendered.entities]
    assert (len(kinds), kinds.count("text_link"), kinds.count("spoiler"), kinds.count("bold")) == (100, 30, 1, 1)


def test_links_too_long_together_are_given_up_rather_than_the_message() -> None:
    rendered = render(" ".join(f"[{number}](https://x.example/{'ü' * 300})" for number in range(13)))
    assert 0 < len(rendered.entities) < 13
    assert faults(rendered.text, fields(rendered)) == []


def test_what_would_grow_beyond_a_message_is_sent_plain() -> None:
    markdown = f"| {'header ' * 60} | b |\n|---|---|\n" + "| 1 | 2 |\n" * 40
    assert render(markdown) == Rendered(text=markdown.strip(), entities=())


def test_a_parser_that_panics_costs_the_looks_and_not_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    panic = type("PanicException", (BaseException,), {"__module__": "pyo3_runtime"})

    def panicking(*_: object, **__: object) -> None:
        raise panic("index out of bounds")

    monkeypatch.setattr(pyromark, "events_with_range", panicking)
    assert render("**a**") == Rendered(text="**a**", entities=())
    assert "".join(split("a" * 5_000)) == "a" * 5_000


def test_only_a_panic_is_taken_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pyromark, "events_with_range", interrupted)
    with pytest.raises(KeyboardInterrupt):
        render("**a**")


def test_loading_it_says_nothing_and_starts_nothing() -> None:
    script = (
        "import sys, threading; from adapters.telegram import formatting; "
        "formatting.render('**a** $\\\\alpha$'); print(threading.active_count(), "
        "sorted({'PIL', 'aiohttp', 'asyncio', 'socket', 'telegram'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("1 []\n", "")


# Any Markdown: every part is a message that Telegram takes, and nothing is missing


SOLID = {"pre", "code", "text_link", "blockquote", "expandable_blockquote"}


def shown(markdown: str) -> list[str]:
    """The texts of all messages that `markdown` becomes, each of which Telegram takes and leaves as it is."""
    texts = []
    for part in split(markdown):
        rendered = render(part)
        entities = fields(rendered)
        assert faults(rendered.text, entities) == []
        assert len(part.encode("utf-16-le", "surrogatepass")) <= 2 * 4096
        text, settled = settle(rendered.text, read_entities(entities))
        assert text == rendered.text.lstrip(" ")  # what code at the beginning is indented by
        assert solid(settled) == solid(entities) or len(settled) == 100
        texts.append(text)
    return texts


def solid(entities: list[dict]) -> list[str]:
    """The entities that Telegram neither finds by itself nor cuts and joins as it likes."""
    return [entity["type"] for entity in entities if entity["type"] in SOLID]


@given(replies)
def test_every_word_of_a_reply_is_shown_once_and_in_its_place(markdown: str) -> None:
    assert words(*shown(markdown)) == words(markdown)


@given(replies)
def test_fences_are_balanced_in_every_part(markdown: str) -> None:
    assert [open_fence(part) for part in split(markdown)] == [""] * len(split(markdown))


def open_fence(part: str) -> str:
    """The fence that is not closed at the end of `part`."""
    fence = ""
    for line in part.split("\n"):
        marks = line.lstrip("> ")[:3]
        if marks in ("```", "~~~") and fence in ("", marks):
            fence = "" if fence else marks
    return fence


@given(shredded)
def test_nothing_that_somebody_might_write_is_refused_or_lost(markdown: str) -> None:
    found = set(words(*shown(markdown)))
    assert [number for number in words(markdown) if number not in found and not is_hidden(markdown, number)] == []


@given(st.text(min_size=1), st.integers(1, 400))
def test_absurd_characters_are_sent_as_well(text: str, times: int) -> None:
    assert all(len(in_units(message)) <= 2 * 4096 for message in shown(text * times))


@given(st.one_of(replies, shredded))
def test_the_same_part_is_always_laid_out_the_same_way(markdown: str) -> None:
    assert split(markdown) == split(markdown)
    assert [render(part) for part in split(markdown)] == [render(part) for part in split(markdown)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))  # ten thousand in all, and none of them runs long by itself
def test_a_thousand_fuzzed_replies(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(500):
        reply = numbered(chance.choices(BLOCKS, k=chance.randint(1, 80)), "\n\n")
        assert words(*shown(reply)) == words(reply)
        shreds = numbered(chance.choices(SHREDS, k=chance.randint(1, 80)), "")
        lost = set(words(shreds)).difference(words(*shown(shreds)))
        assert [word for word in lost if not is_hidden(shreds, word)] == []


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("2*3*4 = 24", "2*3*4 = 24"),
        ("2**3**4 and a*b*c", "2**3**4 and a*b*c"),
        ("**2*3*4** is *it*", "2*3*4 is it"),
        ("这是**重要**的", "这是重要的"),
        ("so *much*, **more**!", "so much, more!"),
    ],
)
def test_a_product_keeps_its_signs(written: str, shown: str) -> None:
    assert render(written).text == shown


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        (r"10^{-3}", "10⁻³"),
        (r"\hat{y}", "ŷ"),
        (r"\sqrt[3]{8}", "∛8"),
        (r"H_2O", "H₂O"),
        (r"a^{n+1}", "aⁿ⁺¹"),
        (r"x_{ij}", "x_(ij)"),
        (r"x^y", "x^y"),
    ],
)
def test_a_short_formula_is_readable(latex: str, shown: str) -> None:
    assert render(rf"so \({latex}\) it is").text == f"so {shown} it is"


@pytest.mark.parametrize("text", ["ab cd", "  ab cd", " ab cd \n", "\n\n ab cd"])
def test_marks_stay_on_their_words_where_white_space_goes_from_the_ends(text: str) -> None:
    spans = [Span(kind="bold", start=text.index(word), end=text.index(word) + 2) for word in ("ab", "cd")]
    trimmed, moved = _trimmed(text, spans)
    assert (trimmed, [trimmed[each.start : each.end] for each in moved]) == ("ab cd", ["ab", "cd"])


def test_code_keeps_the_indent_of_its_first_line() -> None:
    assert _trimmed("\n  x = 1", [Span(kind="pre", start=1, end=8)])[0] == "  x = 1"
