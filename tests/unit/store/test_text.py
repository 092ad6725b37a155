"""Search terms: words of spaced scripts, pairs of dense ones."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.store.shared.text import MAX_TERM, holds_runs, normalised, passage, query, terms

TEXT = st.text(alphabet="ab Z_-上下文窗口タ가ไ。,\n1é", max_size=30)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, hello world", ["hello", "world"]),
        ("上下文", ["上下", "下文", "文"]),
        ("上", ["上"]),
        ("用GPT-5写", ["用", "gpt", "5", "写"]),
        ("snake_case", ["snake", "case"]),
        ("ＦＵＬＬ", ["full"]),
        ("cafe\u0301", ["café"]),
        ("... 。！ \ud83d", []),
        ("x" * 100, ["x" * MAX_TERM]),
    ],
)
def test_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_a_query_asks_for_pairs_runs_and_single_characters() -> None:
    wanted = query("Plan 窗口 上下文 大")
    assert wanted.terms == ("plan", "窗口", "上下", "下文")
    assert wanted.runs == ("上下文",)
    assert wanted.prefixes == ("大",)
    assert not query(" ?!")


@settings(max_examples=150)
@given(TEXT, st.data())
def test_any_part_of_a_dense_run_is_found_in_its_text(text: str, data: st.DataObject) -> None:
    dense = [character for character in normalised(text) if character in "上下文窗口タ가ไ"]
    if not dense:
        return
    plain = normalised(text)
    start = data.draw(st.sampled_from([i for i, c in enumerate(plain) if c in dense]))
    end = start
    while end < len(plain) and plain[end] in dense:
        end += 1
    part = plain[start : data.draw(st.integers(start + 1, end))]
    wanted, held = query(part), terms(text)
    assert set(wanted.terms) <= set(held)
    assert all(any(term.startswith(prefix) for term in held) for prefix in wanted.prefixes)
    assert holds_runs(text, wanted)


@settings(max_examples=150)
@given(TEXT)
def test_a_text_holds_its_own_query(text: str) -> None:
    wanted = query(text)
    assert set(wanted.terms) <= set(terms(text))
    assert holds_runs(text, wanted)


@given(st.text(max_size=200))
def test_terms_hold_nothing_that_a_query_language_could_misread(text: str) -> None:
    assert all(not set(term) & set(" \"'*():^+-\x00\n") for term in terms(text))


def test_a_passage_is_sought_by_the_longest_of_very_many_words() -> None:
    text = f"{'x ' * 2_000}needle {'x ' * 2_000}"
    longer = [f"missing{number}" for number in range(64)]
    assert "needle" in passage(text, " ".join(["needle", *longer[1:]]), 100)
    assert "needle" not in passage(text, " ".join(["needle", *longer]), 100)
