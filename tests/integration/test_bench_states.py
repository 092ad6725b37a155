"""The bench of things whose state changes: the last state of each is in view, and none of the older without its day."""

from __future__ import annotations

import pytest

from tests.bench.context import states


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "current", "undated"),
    [(states.STATES, 0.98, 0.02), (states.UNSEEN, 0.96, 0.0), (states.HELD_OUT, 0.95, 0.02)],
    ids=["known", "once unseen", "held out"],
)
def test_the_last_state_of_each_thing_is_in_view(path: object, current: float, undated: float) -> None:
    found = states.measure(path, 16_000, [1])  # type: ignore[arg-type]
    for (name, passes), counts in found.items():
        assert len(counts["current"]) >= 60
        share = {kind: sum(told) / len(told) for kind, told in counts.items()}
        if name == "window engine":
            assert share["current"] < 0.5, "the bench tells engines apart"
            continue
        assert share["current"] >= current, (name, passes)
        assert share["undated"] <= undated, (name, passes)
        assert not share["wrong"], (name, passes)
