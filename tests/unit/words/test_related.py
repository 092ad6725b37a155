"""Words that people say where others ask."""

from __future__ import annotations

import pytest

from gateway.words.languages import ENGLISH
from gateway.words.related import _terms, kin


def test_a_head_stands_for_its_line_and_a_member_for_the_heads_alone() -> None:
    assert {"vehicl", "volvo"} <= {*kin(["car"], ENGLISH)}
    assert {"car", "vehicl"} <= {*kin(["volvo"], ENGLISH)}
    assert "toyota" not in kin(["volvo"], ENGLISH)
    assert "car" not in kin(["car"], ENGLISH)


@pytest.mark.parametrize(("terms", "language"), [([], ENGLISH), (["xyzzy"], ENGLISH), (["car"], "klingon")])
def test_what_no_table_holds_has_none(terms: list[str], language: str) -> None:
    assert kin(terms, language) == ()


def test_words_that_say_nothing_are_no_terms_of_a_field() -> None:
    assert _terms(["the", "cars", "of", "a", "x", "nurses"], ENGLISH) == ["car", "nurs"]
