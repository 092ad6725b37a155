"""Each session has an engine of its own, for as long as anybody needs it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest

from gateway.agent.engines import Engines
from gateway.context.engine import ContextEngine
from gateway.domain.message import Message
from gateway.providers.base import ModelSpec
from gateway.runtime.structs import replace
from tests.support.fakes import ManualClock
from tests.support.store_kit import new_session

LARGE, SMALL = (ModelSpec(provider="p", name=name, context_length=size) for name, size in (("large", 9), ("small", 5)))


class Noting(ContextEngine):
    """Notes what it is told."""

    name = "noting"

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.context_length = 0

    def update_from_response(self, usage: Any) -> None:
        """It does not count."""

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        return False

    def compress(  # type: ignore[override]
        self, messages: Sequence[Message], current_tokens: int | None = None, focus_topic: str | None = None
    ) -> list[Message]:
        return list(messages)

    def update_model(self, model: str, context_length: int, **_: Any) -> None:
        self.told.append(model)

    def on_session_start(self, session_id: str, **info: Any) -> None:
        self.told.append((session_id, info["reason"]))


@pytest.fixture
def engines(clock: ManualClock) -> Engines:
    """Room for two."""
    models = Mock(know_window=AsyncMock(), of=Mock(return_value=LARGE), helpers=Mock(return_value=[SMALL]), rates={})
    metering = cast(Any, Mock(models=models, clock=clock))
    return Engines(factory=Noting, builtin=Noting, metering=metering, home=Path("e"), capacity=2)


def told(held: Any) -> list[Any]:
    return cast(list[Any], held.engine.engine.told)


async def test_an_engine_goes_on_with_its_session_and_hears_of_another_model(engines: Engines) -> None:
    session = new_session("s1")
    held = await engines.of(session)
    assert told(held) == ["large", ("s1", "new")]
    assert await engines.of(session) is held
    engines.metering.models.of.return_value = SMALL  # type: ignore[attr-defined]
    assert (await engines.of(session)).spec is SMALL
    assert told(held)[2:] == ["small"]
    other = await engines.of(replace(session, rewritten=session.rewritten + 1))
    assert other is not held, "what was forgotten is not in this one"
    assert told(await engines.of(new_session("s2", message_count=1)))[1] == ("s2", "resume")


async def test_the_one_that_nobody_used_for_longest_goes_first(engines: Engines) -> None:
    first, second, third = (new_session(f"s{number}") for number in range(3))
    kept, gone = await engines.of(first), await engines.of(second)
    await engines.of(first)
    await engines.of(third)
    assert await engines.of(first) is kept
    assert await engines.of(second) is not gone
    assert len(engines._held) == 2
    await engines.move(first, new_session("s9", parent_id="s0"), "reset")
    assert len(engines._held) == 2


@pytest.mark.parametrize("reason", ["compression", "reset"])
async def test_a_continuation_has_the_engine_of_its_parent(engines: Engines, reason: Any) -> None:
    parent, child = new_session("s1"), new_session("s2", parent_id="s1")
    held = await engines.of(parent)
    await engines.move(parent, child, reason, spec=SMALL)
    assert await engines.of(child) is held
    assert ("s2", reason) in told(held)
    assert await engines.of(parent) is not held


async def test_an_engine_that_nobody_asked_for_rests(engines: Engines) -> None:
    used, idle = new_session("s1"), new_session("s2")
    held, other = await engines.of(used), await engines.of(idle)
    assert engines.rest() == 0
    await engines.of(used)
    assert engines.rest() == 1
    assert await engines.of(used) is held
    assert await engines.of(idle) is not other
    engines.drop("s1")
    assert await engines.of(used) is not held
