"""How records are read and moved: some together, and somebody who waits for many hears of it."""

from __future__ import annotations

import pytest

from gateway.store.kinds import CONTENT, NOTE
from gateway.store.shared import facts
from gateway.store.shared.facts import Milestones, in_pages
from gateway.store.space import grouped


def test_a_page_ends_by_its_number_or_by_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "PAGE", 3)
    monkeypatch.setattr(facts, "PAGE_TEXT", 10)
    texts = ["a", "b", "c", "d", "e" * 9, "f" * 20, "g"]
    assert list(in_pages(texts, len)) == [["a", "b", "c"], ["d", "e" * 9], ["f" * 20], ["g"]]
    assert list(in_pages([], len)) == []


def test_contents_are_read_one_by_one_and_others_some_together() -> None:
    assert list(grouped(NOTE, range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(grouped(CONTENT, range(2), 2)) == [[0], [1]]
    assert list(grouped(NOTE, (), 2)) == []


def test_who_waits_for_many_is_told_once_for_each_milestone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "TOLD_EACH", 100)
    milestones = Milestones()
    counted = (50, 99, 100, 150, 199, 430, 450, 500)
    assert [done for done in counted if milestones.reached(done)] == [100, 430, 500]
