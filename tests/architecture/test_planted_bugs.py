"""The table of planted bugs follows the source: `make planted` takes long, so this says at once what a change broke."""

import pytest

from tests.planted.bugs import BUGS
from tests.support.source_tree import ROOT


@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_the_text_that_a_bug_replaces_stands_once(bug):
    assert (ROOT / bug.file).read_text(encoding="utf-8").count(bug.old) == 1, (
        f"say in tests/planted/bugs.py what to replace in {bug.file} now"
    )
    assert [test for test in bug.tests if not (ROOT / test).exists()] == []
