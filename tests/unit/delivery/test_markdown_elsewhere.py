"""Markdown for a platform with limits of its own: 2,000 code points, narrow tables, no links."""

from __future__ import annotations

from gateway.delivery.markdown.layout import Medium, laid_out
from gateway.delivery.markdown.splitting import Splitter

LIMIT = 2_000
SPLITTER = Splitter(limit=LIMIT, unit="codepoints", load=lambda part: len(part) / LIMIT)
NARROW = Medium(cleaned=str, linked=lambda target: None, table_columns=10)
TABLE = "| Name | Count |\n|--|--|\n| one | 1 |\n| two | 2 |"


def test_parts_fill_the_limit_in_its_own_units() -> None:
    parts = SPLITTER.split("😀" * 5_000)
    assert "".join(parts) == "😀" * 5_000
    assert len(parts) == 3
    assert all(len(part) <= LIMIT for part in parts)


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
