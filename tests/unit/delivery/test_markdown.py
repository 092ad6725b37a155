"""Markdown for any platform: single characters, tables, and a platform with limits of its own."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.delivery.markdown import reading
from gateway.delivery.markdown.characters import last_boundary, length, reach
from gateway.delivery.markdown.events import events
from gateway.delivery.markdown.layout import Medium, laid_out
from gateway.delivery.markdown.reading import OPTIONS, PLAIN
from gateway.delivery.markdown.splitting import Splitter
from gateway.delivery.markdown.tables import without_columns

LIMIT = 2_000
SPLITTER = Splitter(limit=LIMIT, unit="codepoints", load=lambda part: len(part) / LIMIT)
NARROW = Medium(cleaned=str, linked=lambda target: None, table_columns=10)
SHREDS = st.sampled_from(
    [
        *"aé1²中.,:;!?()'\"/%^{}@#=+-😀\u00a0\u200b\u0301\u202e\u3164",
        " a",
        "\na",
        "\n\n中",
        "\n1",
        "\n1.",
        "\n=",
        "\nx.de: ",
    ]
)
TABLE = "| Name | Count |\n|--|--|\n| one | 1 |\n| two | 2 |"


def test_parts_fill_the_limit_in_its_own_units() -> None:
    parts = SPLITTER.split("😀" * 5_000)
    assert "".join(parts) == "😀" * 5_000
    assert len(parts) == 3
    assert all(len(part) <= LIMIT for part in parts)


@given(st.lists(SHREDS, max_size=10).map("".join))
def test_what_is_taken_for_plain_is_laid_out_as_it_is_written(text: str) -> None:
    assume(PLAIN.fullmatch(text := f"a{text}"))
    assert laid_out(text, NARROW) == (text, [])


@pytest.mark.parametrize(
    "name",
    [
        "__init__.py",
        "src/__tests__/a",
        "__private__()",
        "call __init__ first",
        "__name__ == '__main__'",
        "a.__b__[0]",
    ],
)
def test_the_underscores_of_a_name_are_no_emphasis(name: str) -> None:
    text, spans = laid_out(f"{name}, **bold** and __also bold__", NARROW)
    assert text == f"{name}, bold and also bold"
    assert [text[span.start : span.end] for span in spans if span.kind == "bold"] == ["bold", "also bold"]


@pytest.mark.parametrize("text", ["__wichtig__", "**__x__**", "**__init__.py** is", "__two words__.", "__so__, then"])
def test_other_underscores_are(text: str) -> None:
    shown, spans = laid_out(text, NARROW)
    assert any(span.kind == "bold" for span in spans)
    assert ("__" in shown) is ("init" in shown)


def test_code_that_is_cut_goes_on_as_code() -> None:
    parts = SPLITTER.split("```python\n" + "print(1)\n" * 600 + "```")
    assert len(parts) == 3
    assert all(part.startswith("```python\n") and part.endswith("\n```") for part in parts)
    assert "".join(parts).count("print(1)") == 600


def test_a_table_wider_than_the_screen_is_told_line_by_line() -> None:
    assert laid_out(TABLE, NARROW)[0] == "Name: one\nCount: 1\n\nName: two\nCount: 2"


def test_a_table_that_fits_stands_in_columns() -> None:
    wide = Medium(cleaned=str, linked=lambda target: None, table_columns=12)
    text, spans = laid_out(TABLE.replace("Count", "Number"), wide)
    assert text == "Name  Number\n────────────\none   1\ntwo   2"
    assert [span.kind for span in spans] == ["pre"]


def test_a_target_that_cannot_be_linked_to_stands_in_brackets() -> None:
    assert laid_out("[docs](https://docs.example/a)", NARROW) == ("docs (https://docs.example/a)", [])


@pytest.mark.parametrize("unit", ["||a ", "||a||\n\n", "||*a* "])
def test_strokes_that_hide_nothing_are_each_looked_at_a_few_times(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, closes = list[str](), reading._closes
    monkeypatch.setattr(reading, "_closes", lambda *strokes: looks.append("") or closes(*strokes))
    laid_out(unit * 2_000, NARROW)
    assert len(looks) <= 3 * 4_000


@pytest.mark.parametrize("unit", [">", "> ", "- >", "1. > ", "\t>"])
def test_a_line_of_thousands_of_quotes_is_read_as_a_few_and_nothing_of_it_is_lost(unit: str) -> None:
    """The parser nests a quote for each; a line of 20,000 took 1.3 s to be cut and shown."""
    deep = unit * 5_000 + "a"
    assert len(events(f"{deep}\n\n{deep}", OPTIONS)) < 300
    shown = laid_out(f"{deep}\n\nb", NARROW)[0]
    assert shown.count(">") >= 5_000 - 1, "the outermost quote is marked instead"
    assert shown.endswith("a\n\nb")


@pytest.mark.parametrize("taken", ["", "\x1a", "\x1a\x1b\x1c\x1d\x1e\x1f\x7f"])
def test_many_quote_signs_in_code_stay_as_they_are(taken: str) -> None:
    code = f"{taken}\n{'>' * 60}\nx"
    assert laid_out(f"```\n{code}\n```", NARROW)[0] == code


def test_a_text_reaches_as_far_as_it_has_units_for() -> None:
    assert [reach("a😀b", limit, "utf16") for limit in range(6)] == [0, 1, 1, 2, 3, 3]
    assert [reach("a😀b", limit, "codepoints") for limit in range(5)] == [0, 1, 2, 3, 3]
    assert (length("a😀b", "utf16"), length("a😀b", "codepoints")) == (4, 3)


def test_an_escaped_character_keeps_its_backslash() -> None:
    assert last_boundary("aaa\\*", 4) == 3
    assert last_boundary("aaa\\中", 4) == 4


def test_columns_become_dashes() -> None:
    text = "Conversation\n  /new          start afresh\n\n[██░░] 2%  ~636 of 32,000 tokens\n  one word"
    assert without_columns(text) == ("Conversation\n/new — start afresh\n\n[██░░] 2% — ~636 of 32,000 tokens\none word")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("[a]: note for later", "[a]: note for later"),
        ("text\n\n[1]: the first source", "text\n\n[1]: the first source"),
        ("See [a].\n\n[a]: https://x.y", "See a (https://x.y)."),
        ("See [a].\n\n[a]: nowhere", "See [a].\n\n[a]: nowhere"),
    ],
)
def test_a_definition_that_no_link_needs_is_shown(written: str, shown: str) -> None:
    assert laid_out(written, NARROW)[0] == shown
