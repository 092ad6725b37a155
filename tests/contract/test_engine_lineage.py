"""Every built-in engine through whole lives of sessions: compacted ten times and more, restarted in between,
on transcripts of any shape. A new engine is found by its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.context.engine import ContextEngine
from gateway.context.policy import CompressionSettings
from gateway.context.registry import EngineRegistry, builtin_engines
from gateway.domain.message import Message, is_request, text_of
from gateway.runtime.errors import ProviderUnavailable, QuotaExceeded
from gateway.runtime.redaction import Redactor
from tests.support.examples import one_of
from tests.support.fakes import ManualClock
from tests.support.lineage import OVERHEAD, SECRET, Life
from tests.support.transcripts import COUNTER, Extractive, Failing, call, exchange, step, tokens

ROUNDS = 12
WINDOWS = st.sampled_from([2_500, 6_000, 16_000])
MODELS: dict[str, Callable[[], Any]] = {
    "extractive": Extractive,
    "failing": lambda: Failing(ProviderUnavailable("down")),
    "without credit": lambda: Failing(QuotaExceeded("no credit")),
    "parrot": lambda: Extractive(100_000),
    "curt": lambda: _Curt(),
    "none": lambda: None,
}
CLOCK = ManualClock()


class _Curt:
    """Drops nearly everything, and tells a secret."""

    async def __call__(self, messages: Sequence[Message], max_tokens: int) -> str:
        """Two lines."""
        return f"## Goal\nUse {SECRET} for it."


def _registry() -> EngineRegistry:
    settings_ = CompressionSettings(min_threshold_tokens=0)
    return EngineRegistry(builtin_engines(settings_, counter=COUNTER, clock=CLOCK, redact=Redactor([])), None, Path())


NAMES = _registry().names()


def _factory(name: str) -> Callable[[], ContextEngine]:
    return _registry().factory(name)


async def _lead(
    name: str, parts: Sequence[Sequence[Any]], summariser: str, window: int, forced: Sequence[bool]
) -> Life:
    """A life of one round for each of `parts`."""
    model = MODELS[summariser]()
    life = Life(make=_factory(name), info={"context_length": window, "model": "m", "call_model": model})
    await life.begin()
    for number, (part, force) in enumerate(zip(parts, forced, strict=True)):
        life.say(
            [*exchange(number * 2, window // 400), *part, {"role": "user", "content": f"use {SECRET} in {number}"}]
        )
        life.say(exchange(number * 2 + 1, window // 400))
        await life.compact(force=force)
        await life.restart()
        await life.guard.learn({"prompt_tokens": OVERHEAD + tokens(life.transcript), "completion_tokens": 9})
    return life


PARTS = st.lists(
    st.lists(step(), max_size=4).map(lambda steps: [m for s in steps for m in s]), min_size=ROUNDS, max_size=ROUNDS
)
FORCED = st.lists(st.booleans(), min_size=ROUNDS, max_size=ROUNDS)


@pytest.mark.parametrize("name", NAMES)
@one_of(4, suppress_health_check=list(HealthCheck))
@given(PARTS, st.sampled_from(sorted(MODELS)), WINDOWS, FORCED)
async def test_a_life_of_twelve_rounds(name: str, parts: Any, summariser: str, window: int, forced: list[bool]) -> None:
    await _lead(name, parts, summariser, window, forced)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("hundred", range(10))  # no test may take longer than the run's own limit
# Ten hundreds of the same lives would be one hundred: where CI is set, Hypothesis draws the same every time.
@settings(max_examples=100, derandomize=False, suppress_health_check=list(HealthCheck))
@given(PARTS, st.sampled_from(sorted(MODELS)), WINDOWS, FORCED)
async def test_a_thousand_lives(
    name: str, hundred: int, parts: Any, summariser: str, window: int, forced: list[bool]
) -> None:
    await _lead(name, parts, summariser, window, forced)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("summariser", sorted(MODELS))
async def test_ten_compactions_in_a_row(name: str, summariser: str) -> None:
    life = await _lead(name, [[] for _ in range(ROUNDS)], summariser, 2_500, [True] * ROUNDS)
    assert life.compactions >= (0 if summariser == "without credit" else 10)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("parallel", "summariser"), [(1, "curt"), (10, "none")])
async def test_one_request_and_three_hundred_results_converges(name: str, summariser: str, parallel: int) -> None:
    """The loop as the agent runs it: before every call the engine is asked, and no prompt ever overflows."""
    window = 8_000
    life = Life(make=_factory(name), info={"context_length": window, "call_model": MODELS[summariser]()})
    await life.begin()
    life.say([{"role": "user", "content": "Do the whole long task, all of it."}])
    largest = 0
    for number in range(0, 300, parallel):
        calls: Any = [call(f"k{n}", command=f"step {n} of dir/{n}.py") for n in range(number, number + parallel)]
        life.say(
            [
                {"role": "assistant", "content": None, "tool_calls": calls},
                *({"role": "tool", "tool_call_id": c["id"], "content": f"{c['id']} done\n" * 40} for c in calls),
            ]
        )
        if await life.guard.wants(OVERHEAD + tokens(life.transcript)):
            assert await life.compact(force=False)
        largest = max(largest, OVERHEAD + tokens(life.transcript))
        await life.restart()
        await life.guard.learn({"prompt_tokens": OVERHEAD + tokens(life.transcript), "completion_tokens": 9})
    assert life.compactions >= 5
    assert largest < window - 800, "every request fits"
    assert not life.guard.automatic_blocked
    [request] = [m for m in life.transcript if is_request(m)]
    assert text_of(request).endswith("Do the whole long task, all of it.")


GIANTS: dict[str, list[Any]] = {
    "a result": [
        {"role": "assistant", "content": None, "tool_calls": [call("g1")]},
        {"role": "tool", "tool_call_id": "g1", "content": "one line of a log\n" * 20_000},
    ],
    "ten results": [
        {"role": "assistant", "content": None, "tool_calls": [call(f"g{n}") for n in range(10)]},
        *({"role": "tool", "tool_call_id": f"g{n}", "content": f"line {n} of a log\n" * 2_000} for n in range(10)),
    ],
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", sorted(GIANTS))
async def test_one_giant_last_turn_fits_afterwards(name: str, kind: str) -> None:
    window = 16_000
    life = Life(make=_factory(name), info={"context_length": window})
    await life.begin()
    for number in range(5):
        life.say(exchange(number))
    life.say([{"role": "user", "content": "Read the log."}, *GIANTS[kind]])
    assert await life.compact(force=True)
    assert OVERHEAD + tokens(life.transcript) < window - 1_600
    assert [text_of(m) for m in life.transcript if is_request(m)][-1].endswith("Read the log.")
    shown = sum(len(text_of(m)) for m in life.transcript if m["role"] == "tool")
    assert shown > window // 2, "as much of it as there is room for"
