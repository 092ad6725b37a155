"""A long time in short: many messages and compactions leave nothing behind in memory (`make soak` is the long form)."""

from __future__ import annotations

import pytest

from tests.bench.soak import Kind, soak

_MORE = 0.03  # MB a message in the second half: transcripts in view grow until their windows are compacted


@pytest.mark.parametrize(
    ("kind", "most"),
    [("sqlite", 400), *(pytest.param(kind, 1_000, marks=pytest.mark.slow) for kind in ("sqlite", "redis"))],
)
async def test_many_messages_with_compactions_leave_memory_as_it_was(kind: Kind, most: int) -> None:
    samples = [sample async for sample in soak(kind, most, most // 100)]
    assert samples[-1].messages >= most
    assert samples[-1].compactions >= most // 100
    assert samples[-1].memory < samples[len(samples) // 2].memory + _MORE * most / 2
