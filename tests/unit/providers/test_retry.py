"""The repetitions of a call: when there is one, when not, and how long that takes: on virtual time."""

import asyncio
import random
from collections.abc import AsyncGenerator

import pytest

from gateway.providers.base import Completed, ModelEvent, ModelRequest, ModelSpec, Restarted, TextDelta
from gateway.providers.retry import FIRST_DELAY, LONGEST_DELAY, Retrying
from gateway.runtime.errors import (
    ContextOverflow,
    ProviderError,
    ProviderRateLimited,
    ProviderRejected,
    ProviderUnavailable,
    QuotaExceeded,
)
from gateway.runtime.structs import replace
from tests.support.fakes import ManualClock

SPEC = ModelSpec(provider="fake", name="fake")
REQUEST = ModelRequest(messages=[])


class Flaky:
    """Fails as it is told, then answers. `began_at` holds the time of each attempt."""

    name = "flaky"

    def __init__(self, clock: ManualClock, *failures: ProviderError, after: int = 0) -> None:
        self._clock = clock
        self._failures = list(failures)
        self._after = after
        self.began_at: list[float] = []
        self.closed = False

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.began_at.append(self._clock.monotonic())
        for _ in range(self._after):
            yield TextDelta(text="x")
        if self._failures:
            raise self._failures.pop(0)
        yield Completed(text="done")

    async def aclose(self) -> None:
        self.closed = True


async def collected(provider: Retrying, request: ModelRequest = REQUEST, spec: ModelSpec = SPEC) -> list[ModelEvent]:
    return [event async for event in provider.stream(spec, request)]


async def run(clock: ManualClock, provider: Retrying) -> list[ModelEvent]:
    task = asyncio.create_task(collected(provider))
    for _ in range(300):
        await clock.advance(1)
        if task.done():
            break
    return await task


def retrying(clock: ManualClock, flaky: Flaky, seed: int = 1, **more: float) -> Retrying:
    return Retrying(flaky, clock=clock, rng=random.Random(seed), **more)  # type: ignore[arg-type]


async def test_what_may_work_later_is_tried_again() -> None:
    clock = ManualClock()
    flaky = Flaky(clock, ProviderUnavailable("a"), ProviderRateLimited("b"))
    assert await run(clock, retrying(clock, flaky)) == [Completed(text="done")]
    assert len(flaky.began_at) == 3


async def test_each_pause_is_told_before_it_begins() -> None:
    clock, told = ManualClock(), list[tuple[float, float]]()
    flaky = Flaky(clock, ProviderRateLimited("a", retry_after=20), ProviderUnavailable("b"))
    request = replace(REQUEST, pausing=lambda seconds: told.append((clock.monotonic(), seconds)))
    task = asyncio.create_task(collected(retrying(clock, flaky), request))
    await clock.advance(60)
    assert await task == [Completed(text="done")]
    assert [at + seconds for at, seconds in told] == flaky.began_at[1:]
    assert 20 <= told[0][1] <= 21


@pytest.mark.parametrize("error", [ProviderRejected("x"), QuotaExceeded("x"), ContextOverflow("x")])
async def test_what_cannot_work_is_not(error: ProviderError) -> None:
    clock = ManualClock()
    flaky = Flaky(clock, error)
    with pytest.raises(type(error)):
        await run(clock, retrying(clock, flaky))
    assert len(flaky.began_at) == 1


async def test_a_silent_attempt_that_may_be_billed_is_told() -> None:
    clock = ManualClock()
    flaky = Flaky(clock, ProviderUnavailable("x", timed_out=True, billable=True), ProviderUnavailable("x"))
    assert await run(clock, retrying(clock, flaky)) == [Restarted(broke_off=True), Completed(text="done")]


async def test_an_answer_that_breaks_off_begins_anew() -> None:
    clock = ManualClock()
    flaky = Flaky(clock, ProviderUnavailable("x"), after=1)
    said = TextDelta(text="x")
    assert await run(clock, retrying(clock, flaky)) == [said, Restarted(broke_off=True), said, Completed(text="done")]


async def test_an_answer_that_always_breaks_off_is_given_up() -> None:
    clock = ManualClock()
    flaky = Flaky(clock, *[ProviderUnavailable("x")] * 9, after=1)
    with pytest.raises(ProviderUnavailable):
        await run(clock, retrying(clock, flaky, attempts=3))
    assert len(flaky.began_at) == 3


async def test_a_long_answer_that_breaks_off_has_its_time_anew() -> None:
    """The deadline is for waiting: a provider that speaks is not waited for."""
    clock = ManualClock()

    class Slow(Flaky):
        async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
            async for event in super().stream(spec, request):
                if isinstance(event, TextDelta):
                    await clock.sleep(130)
                yield event

    flaky = Slow(clock, ProviderUnavailable("x"), after=1)
    assert (await run(clock, retrying(clock, flaky)))[-1] == Completed(text="done")


async def test_attempts_are_counted() -> None:
    clock = ManualClock()
    flaky = Flaky(clock, *[ProviderUnavailable("x")] * 9)
    with pytest.raises(ProviderUnavailable):
        await run(clock, retrying(clock, flaky, attempts=4))
    assert len(flaky.began_at) == 4


@pytest.mark.parametrize("error", [ProviderRateLimited("x", retry_after=42), ProviderUnavailable("x", retry_after=42)])
async def test_a_stated_wait_is_kept_to(error: ProviderError) -> None:
    clock = ManualClock()
    flaky = Flaky(clock, error)
    await run(clock, retrying(clock, flaky))
    first, second = flaky.began_at
    assert 42 <= second - first <= 43 + 1


@pytest.mark.parametrize("wait", [121, 100_000_000])
async def test_a_wait_beyond_the_deadline_is_not_begun(wait: float) -> None:
    clock = ManualClock()
    flaky = Flaky(clock, ProviderRateLimited("x", retry_after=wait))
    with pytest.raises(ProviderRateLimited):
        await run(clock, retrying(clock, flaky))
    assert len(flaky.began_at) == 1
    assert clock.monotonic() <= 1


@pytest.mark.parametrize("seed", range(5))
async def test_pauses_grow_and_are_jittered_up_to_a_ceiling(seed: int) -> None:
    clock = ManualClock()
    flaky = Flaky(clock, *[ProviderUnavailable("x")] * 7)
    await run(clock, retrying(clock, flaky, seed, attempts=8, deadline=1_000))
    pauses = [later - sooner for sooner, later in zip(flaky.began_at, flaky.began_at[1:], strict=False)]
    for number, pause in enumerate(pauses):
        assert pause <= min(LONGEST_DELAY, FIRST_DELAY * 2**number) + 1  # the test's clock ticks in seconds
    assert len(set(pauses)) > 1


async def test_it_passes_for_what_it_wraps() -> None:
    clock = ManualClock()
    flaky = Flaky(clock)
    wrapped = retrying(clock, flaky)
    assert wrapped.name == "flaky"
    await wrapped.aclose()
    assert flaky.closed


class Silent:
    """Says nothing for so many seconds, then gives up as a server's silence does."""

    name = "silent"

    def __init__(self, clock: ManualClock, seconds: float) -> None:
        self.calls = 0
        self._clock, self._seconds = clock, seconds

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.calls += 1
        await self._clock.sleep(self._seconds)
        if self.calls < 3:
            raise ProviderUnavailable("It did not answer in time.", timed_out=True)
        yield Completed(text="done")

    async def aclose(self) -> None: ...


@pytest.mark.parametrize(
    ("seconds", "calls", "spec"),
    [
        (10.0, 1, replace(SPEC, silence=10.0)),
        (10.0, 1, replace(SPEC, whole_answer=10.0)),
        (2.0, 3, replace(SPEC, silence=10.0)),
    ],
    ids=["silent", "not whole", "not reached"],
)
async def test_a_model_that_was_silent_as_long_as_it_may_be_is_not_asked_again(
    seconds: float, calls: int, spec: ModelSpec
) -> None:
    clock = ManualClock()
    silent = Silent(clock, seconds)
    made = Retrying(silent, clock=clock, rng=random.Random(1))
    task = asyncio.create_task(collected(made, spec=spec))
    for _ in range(60):
        await clock.advance(1)
    if calls == 1:
        with pytest.raises(ProviderUnavailable):
            await task
    else:
        assert await task == [Completed(text="done")]
    assert silent.calls == calls
