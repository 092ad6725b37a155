"""The table of planted bugs follows the source: `make planted` takes long, so this says at once what a change broke."""

from tests.planted.bugs import BUGS
from tests.support.source_tree import ROOT


def test_the_text_that_a_bug_replaces_stands_once():
    moved = [bug.name for bug in BUGS if (ROOT / bug.file).read_text(encoding="utf-8").count(bug.old) != 1]
    assert moved == [], "say in tests/planted/bugs.py what to replace now"
    assert [test for bug in BUGS for test in bug.tests if not (ROOT / test).exists()] == []
