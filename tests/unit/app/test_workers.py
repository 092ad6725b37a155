"""What a terminal that goes away, and a signal to reload, mean to a process."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from gateway.app import workers


@pytest.mark.parametrize(
    ("at_first", "then", "done"), [(True, False, "stop"), (True, True, "reload"), (False, False, "reload")]
)
def test_a_hangup_stops_what_has_lost_its_terminal_and_reloads_the_rest(
    monkeypatch: pytest.MonkeyPatch, at_first: bool, then: bool, done: str
) -> None:
    on_signal, told = Mock(), Mock()
    monkeypatch.setattr(workers.posix, "on_signal", on_signal)
    monkeypatch.setattr(workers.os, "isatty", Mock(side_effect=[at_first, then]))
    workers.at_hangup(told.reload, told.stop)
    (_, hung_up), _ = on_signal.call_args
    hung_up()
    assert [name for name, *_ in told.method_calls] == [done]
