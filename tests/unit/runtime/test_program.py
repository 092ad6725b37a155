"""What is kept of a program's output, and which processes are its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.runtime.program import _KEPT, _BoundedOutput, _is_of


def output(*pieces: bytes) -> str:
    kept = _BoundedOutput()
    for piece in pieces:
        kept.add(piece)
    return kept.text()


def test_what_has_room_is_kept_as_it_is() -> None:
    assert output(b"one\n", b"two \xff\n\n") == "one\ntwo \N{REPLACEMENT CHARACTER}"
    whole = b"a" * _KEPT + b"b" * _KEPT
    assert output(whole[:5], whole[5:]) == whole.decode()


def test_of_more_the_beginning_and_the_end_stay_cut_between_lines() -> None:
    begin, end = b"first line\n" * 2_000, b"last line\n" * 2_000
    head, mark, tail = output(begin, b"in the middle\n", end).partition("\n[… ")
    assert mark
    assert head.split("\n") == ["first line"] * (_KEPT // 11)
    told, _, tail = tail.partition("]\n")
    assert tail.split("\n") == ["last line"] * ((_KEPT - 1) // 10)
    size = len(begin) + 14 + len(end)
    left = size - _KEPT // 11 * 11 - (_KEPT - 1) // 10 * 10
    assert told == f"{left:,} of {size:,} bytes left out …"


@pytest.mark.parametrize(
    ("facts", "its"),
    [
        ("7 (sh) S 1 7 42 0", True),
        ("7 (a) b (c) R 1 7 42 0", True),
        ("7 (sh) S 1 7 43 0", False),
        ("7 (sh) Z 1 7 42 0", False),
        ("7 (sh) X 1 7 42 0", False),
    ],
)
def test_a_process_of_a_session_is_one_that_has_not_ended(tmp_path: Path, facts: str, its: bool) -> None:
    stat = tmp_path / "stat"
    assert not _is_of(42, stat), "it has ended meanwhile"
    stat.write_text(facts)
    assert _is_of(42, stat) is its
