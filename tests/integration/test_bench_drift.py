"""The bench of a conversation's first hour: what it holds is kept by the default engine, without any model."""

from __future__ import annotations

import pytest

from tests.bench.context import drift


@pytest.mark.slow
def test_what_was_said_once_in_the_first_hour_stays_in_view() -> None:
    found = drift.measure([3], 16_000)
    table = list(drift.render(found))
    assert len(table) == 2 + len(drift.JUDGED)
    kept = found["ours, empty: by rule"]
    for kind, least in {"facts": 0.8, "changed": 0.75, "rules": 0.8, "identifiers": 0.8}.items():
        told = kept[kind, 24]
        assert len(told) >= 4
        assert sum(told) / len(told) >= least, kind
        assert sum(found["window engine"][kind, 24]) / len(told) < 0.5  # the bench tells engines apart


@pytest.mark.slow
def test_what_was_dropped_into_ordinary_talk_stays_in_view() -> None:
    found = drift.measure([3], 16_000, drift.CHAT)
    for name in ("ours, empty: by rule", "ours, extractive"):
        for kind in ("of oneself", "in passing", "other languages"):
            told = found[name][kind, 24]
            assert len(told) == 10
            assert sum(told) >= 8, (name, kind)
            assert sum(found["window engine"][kind, 24]) < 5
