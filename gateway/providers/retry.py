"""Trying again, in one place. An answer that breaks off after its first words begins again: `Restarted` says that the
words so far are void. Nobody can continue half an answer, because no API continues a stream."""

from __future__ import annotations

import math
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from gateway.providers.base import ModelEvent, ModelRequest, ModelSpec, Provider, Restarted, anew
from gateway.runtime.backoff import Backoff
from gateway.runtime.clock import Clock
from gateway.runtime.errors import ProviderRateLimited, ProviderUnavailable

FIRST_DELAY: Final = 1.0  # seconds; the ceiling of the first pause, doubled for each further one
LONGEST_DELAY: Final = 30.0  # seconds


class Retrying:
    """A `Provider` around another one. It repeats calls that may work later.

    `attempts` counts the first one too. No attempt begins later than `deadline` seconds after the first one, or after
    the end of one that said something. If a wait would end after that, the error goes up at once. A model that was
    silent as long as its `silence` or `whole_answer` allows is not asked again."""

    def __init__(
        self, provider: Provider, *, clock: Clock, rng: random.Random, attempts: int = 4, deadline: float = 120.0
    ) -> None:
        self.name = provider.name
        self._provider = provider
        self._clock = clock
        self._rng = rng
        self._attempts = attempts
        self._deadline = deadline

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """As the inner provider's, with ProviderUnavailable and ProviderRateLimited retried. Yields `Restarted` before
        the pause where words came before the failure, or the vendor may bill the attempt."""
        latest = self._clock.monotonic() + self._deadline
        backoff = Backoff(FIRST_DELAY, LONGEST_DELAY)
        while True:
            begun, began = False, self._clock.monotonic()
            try:
                async with aclosing(self._provider.stream(spec, request)) as events:
                    async for event in events:
                        begun = not (isinstance(event, Restarted) and event.broke_off)
                        yield event
                return
            except (ProviderUnavailable, ProviderRateLimited) as error:
                pause, now = self._pause(backoff.pause(), error), self._clock.monotonic()
                if begun:
                    latest = now + self._deadline
                failed = error
                timed_out = not begun and isinstance(error, ProviderUnavailable) and error.timed_out
                was_silent = timed_out and now - began >= min(spec.silence or math.inf, spec.whole_answer)
                if was_silent or backoff.failures >= self._attempts or now + pause > latest:
                    raise
            for event in anew(failed, begun=begun):
                yield event
            if request.pausing is not None:
                request.pausing(pause)
            await self._clock.sleep(pause)

    def _pause(self, ceiling: float, error: ProviderUnavailable | ProviderRateLimited) -> float:
        """Seconds until the next attempt: full jitter spreads a crowd that failed together. A wait
        that the provider stated is kept to, and jitter only adds to it."""
        if error.retry_after is None:
            return self._rng.uniform(0, ceiling)
        return error.retry_after + self._rng.uniform(0, min(1.0, ceiling))

    async def aclose(self) -> None:
        await self._provider.aclose()
