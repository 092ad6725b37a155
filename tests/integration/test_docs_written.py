"""The pictures and tables of docs/ show today's program: `make docs` writes them again."""

import pytest

from tests.docs.__main__ import ROOT, WRITTEN


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_drawn_from_the_program_is_as_it_was_drawn(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == WRITTEN[name](), "`make docs` writes it again"
