"""Single characters: counted as a platform counts them, and never torn."""

from __future__ import annotations

from gateway.delivery.markdown.characters import last_boundary, length, reach


def test_a_text_reaches_as_far_as_it_has_units_for() -> None:
    assert [reach("a😀b", limit, "utf16") for limit in range(6)] == [0, 1, 1, 2, 3, 3]
    assert [reach("a😀b", limit, "codepoints") for limit in range(5)] == [0, 1, 2, 3, 3]
    assert (length("a😀b", "utf16"), length("a😀b", "codepoints")) == (4, 3)


def test_an_escaped_character_keeps_its_backslash() -> None:
    assert last_boundary("aaa\\*", 4) == 3
    assert last_boundary("aaa\\中", 4) == 4
