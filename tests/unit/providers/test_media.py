"""Calls of a server of pictures or speech: when one is repeated."""

from __future__ import annotations

from unittest.mock import AsyncMock

import pytest

from gateway.providers.media import MediaServer
from gateway.runtime.errors import MediaFailed


@pytest.mark.parametrize(
    ("asked", "waited"),
    [
        ([None], []),
        ([0.0], [1.0]),  # the seconds that the server asks for, and those that pass
        ([7.0, 0.0], [7.0, 2.0]),
        ([0.0, 0.0, 0.0], [1.0, 2.0]),
        ([61.0], []),
    ],
)
async def test_a_call_is_repeated_after_a_while_and_no_sooner_than_the_server_wants(
    monkeypatch: pytest.MonkeyPatch, asked: list[float | None], waited: list[float]
) -> None:
    clock = AsyncMock()
    made = MediaServer(
        base_url="http://127.0.0.1/v1", model="m", api_key=None, clock=clock, does="writes", section="audio"
    )
    answers = [MediaFailed("it is busy", again=each) for each in asked]
    monkeypatch.setattr(made, "_asked", AsyncMock(side_effect=[*answers, b"done"]))
    if len(waited) == len(asked):
        assert await made.ask("speech", 10, dict) == b"done"
    else:
        with pytest.raises(MediaFailed, match="it is busy"):
            await made.ask("speech", 10, dict)
    assert [call.args[0] for call in clock.sleep.await_args_list] == waited
