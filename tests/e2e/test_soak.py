"""A long time in short: many messages and compactions leave nothing behind in memory (`make soak` is the long form)."""

from __future__ import annotations

import pytest

from tests.bench.soak import Kind, soak

_MORE = 15.0  # MB in the second half, 30 KB a message: transcripts in view grow until their windows are compacted


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("redis", marks=pytest.mark.slow)])
async def test_many_messages_with_compactions_leave_memory_as_it_was(kind: Kind) -> None:
    samples = [sample async for sample in soak(kind, 1_000, 10)]
    assert samples[-1].messages >= 1_000
    assert samples[-1].compactions >= 10
    assert samples[-1].memory < samples[len(samples) // 2].memory + _MORE
