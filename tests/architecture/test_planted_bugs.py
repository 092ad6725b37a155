"""The table of planted bugs follows the source: `make planted` takes long, so this says at once what a change broke."""

from types import SimpleNamespace
from typing import cast

import pytest

from tests.planted import trial
from tests.planted.bugs import BUGS
from tests.support.source_tree import ROOT


def test_the_text_that_a_bug_replaces_stands_once():
    moved = [bug.name for bug in BUGS if (ROOT / bug.file).read_text(encoding="utf-8").count(bug.old) != 1]
    assert moved == [], "say in tests/planted/bugs.py what to replace now"
    assert [test for bug in BUGS for test in bug.tests if not (ROOT / test).exists()] == []


def test_a_test_that_always_fails_hides_none_that_finds_the_bug(monkeypatch: pytest.MonkeyPatch):
    def failing(_, tests, bug=None, known=None):
        return next((each.nodeid for each in tests if each.nodeid == "broken" or (bug and each.nodeid == "finds")), "")

    monkeypatch.setattr(trial, "_forked", failing)
    tests = [cast(pytest.Item, SimpleNamespace(nodeid=name)) for name in ("passes", "broken", "finds")]
    assert trial._found(None, tests, {"file": ""}, None) == "finds"
    assert trial._found(None, tests[:2], {"file": ""}, None) == ""
