"""Formulas and HTML in an answer, as a chat can show them."""

from __future__ import annotations

import pytest

from gateway.delivery.markdown.formulas import is_formula, readable, script
from gateway.delivery.markdown.layout import Medium, laid_out

LONG = r"\alpha +" + " " * 991 + "x"  # as long as one that is read may be
CHAT = Medium(cleaned=str, linked=lambda target: None, table_columns=40)


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        (r"\frac{a}{b}", "a/b"),
        (r"\alpha_1", "α₁"),
        (r"\mathbb{R}", "ℝ"),
        (r"\sqrt{2}", "√2"),
        (r"\sqrt{ab}", "√(ab)"),
        (r"\sqrt[3]{x}", "∛x"),
        (" x^2 ", "x²"),
        ("x^{n+1}", "xⁿ⁺¹"),
        ("x_{ij}", "x_(ij)"),
        ("x^y", "x^y"),
        ("a = b", "a = b"),
        (r"\begin{matrix}a & b\\c & d\end{matrix}", "a  b\nc  d"),
        ("a||b^2", "a||b^2"),
        ("a$b^2", "a$b^2"),
        (LONG, "α + x"),
        (LONG.replace("+", " +"), LONG.replace("+", " +")),
    ],
)
def test_a_formula_is_written_as_people_write_it(latex: str, shown: str) -> None:
    assert readable(latex) == shown


@pytest.mark.parametrize(
    ("text", "formula"),
    [("x", True), ("O(n)", True), ("a = b", True), ("x^2", True), ("5", False), ("plain", False), ("10 and ", False)],
)
def test_two_prices_are_no_formula(text: str, formula: bool) -> None:
    assert is_formula(text) is formula


@pytest.mark.parametrize(
    ("sign", "text", "shown"), [("^", "12", "¹²"), ("_", "a1", "ₐ₁"), ("^", "q", "^q"), ("_", "bc", "_(bc)")]
)
def test_a_script_is_raised_if_all_of_it_can_be(sign: str, text: str, shown: str) -> None:
    assert script(sign, text) == shown


@pytest.mark.parametrize(
    ("written", "text", "names"),
    [
        ("a <b>c</b> d", "a c d", ["bold"]),
        ("a <B>c</B>", "a c", ["bold"]),
        ("<u>a <i>b</i></u>", "a b", ["italic", "underline"]),
        ("a <u>b <i>c</u> d</i>", "a b <i>c d</i>", ["underline"]),
        ("a<br>b", "a\nb", []),
        ("use vector<int> here", "use vector<int> here", []),
        ("a <b>c", "a <b>c", []),
        ("a <b>c\n\nd</b>", "a <b>c\n\nd</b>", []),
        ("a <span>b</span>", "a b", []),
        ("<div>\na &amp; <b>c</b>\n</div>", "a & c", ["bold"]),
        ("<details>\n<summary>More</summary>\nthis\n</details>", "More\nthis", ["bold"]),
    ],
)
def test_tags_in_pairs_mean_what_a_chat_can_show(written: str, text: str, names: list[str]) -> None:
    found, spans = laid_out(written, CHAT)
    assert found.strip() == text
    assert sorted(span.kind for span in spans) == names
