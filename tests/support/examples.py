"""How many examples a property is tried with, where each takes long."""

from __future__ import annotations

from typing import Any

from hypothesis import settings


def one_of(part: int, **more: Any) -> settings:
    """One of so many of the profile's examples: of `make test` few, of `make slow` ten times as many."""
    default = settings.default
    assert default is not None
    return settings(max_examples=max(1, default.max_examples // part), **more)
