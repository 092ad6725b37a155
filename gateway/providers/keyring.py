"""The key for each call, if a model has several, or a program that gives them out.

One key is used until it is refused or limited, because a vendor's cache of prompts belongs to an account. Then it
rests, and the next one is used. What a program printed is used for ten minutes, and asked for again at once if it is
refused.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Final

import structlog

from gateway.providers.base import (
    Embedded,
    Embeds,
    KeepsBodies,
    ListsModels,
    ModelEvent,
    ModelRequest,
    ModelSpec,
    OfferedModel,
    Provider,
    ReportsWindow,
    Restarted,
    anew,
)
from gateway.providers.plugin import ServedModel
from gateway.runtime import program
from gateway.runtime.clock import Clock
from gateway.runtime.errors import (
    ProviderError,
    ProviderRateLimited,
    ProviderRejected,
    ProviderUnavailable,
    QuotaExceeded,
)
from gateway.runtime.structs import replace

log = structlog.get_logger(__name__)

_PRINTED_LASTS: Final = 600.0  # seconds; such tokens are good for an hour, and their programs keep them for a while
_PROGRAM: Final = 30.0  # seconds until a program that gives out keys is ended
_LIMITED: Final = 60.0  # seconds for which a limited key rests where the server states no wait
_REFUSED: Final = 300.0  # seconds; nobody mends an account sooner
_KEY_REFUSED: Final = (401, 403)


class Keyring:
    """A `Provider` around another one that names the key of each call; models with one key are called as they are."""

    def __init__(self, provider: Provider, clock: Clock) -> None:
        self.name = provider.name
        self._provider = provider
        self._clock = clock
        self._rests: dict[str, float] = {}  # until when, by key
        self._asking = asyncio.Lock()
        self._printed: dict[str, tuple[str, float]] = {}  # a program's key, and until when it is used

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """As the inner provider's. A key that is refused or limited before the first word is replaced by the next."""
        tried: set[str] = set()
        while True:
            chosen = await self._with_key(spec, tried)
            begun = False
            try:
                async with aclosing(self._provider.stream(chosen, request)) as events:
                    async for event in events:
                        begun = begun or not isinstance(event, Restarted)
                        yield event
                return
            except ProviderError as error:
                if not self._has_another(spec, chosen, tried, error) or begun:
                    raise
                log.warning("next_key", model=spec.name, cause=str(error), rests_seconds=_rest(error))
                for lost in anew(error):
                    yield lost

    async def reported_window(self, spec: ModelSpec) -> int | None:
        """As the inner provider's, if it reports windows."""
        inner = self._provider
        return await inner.reported_window(await self._with_key(spec)) if isinstance(inner, ReportsWindow) else None

    async def models(self, spec: ModelSpec) -> Sequence[OfferedModel]:
        """As the inner provider's, if it lists models."""
        inner = self._provider
        return await inner.models(await self._with_key(spec)) if isinstance(inner, ListsModels) else ()

    async def embed(self, spec: ModelSpec, texts: Sequence[str]) -> Embedded:
        """As the inner provider's, if it gives vectors. The next key is taken as for a stream."""
        inner, tried = self._provider, set[str]()
        if not isinstance(inner, Embeds):
            raise ProviderRejected(
                f"{spec.provider} gives no vectors. Name another provider in search.embeddings.provider."
            )
        while True:
            chosen = await self._with_key(spec, tried)
            try:
                return await inner.embed(chosen, texts)
            except ProviderError as error:
                if not self._has_another(spec, chosen, tried, error):
                    raise

    def rest(self) -> int:
        """As the inner provider's, if it keeps anything."""
        return self._provider.rest() if isinstance(self._provider, KeepsBodies) else 0

    async def aclose(self) -> None:
        """Close the inner provider."""
        await self._provider.aclose()

    async def _with_key(self, spec: ModelSpec, tried: set[str] | None = None) -> ModelSpec:
        """Raises ProviderUnavailable and ProviderRejected where a program gives no key."""
        command, keys = _sources(spec)
        if command:
            return replace(spec, api_key=await self._asked(command), key_header="")
        if not keys:
            return spec
        now = self._clock.monotonic()
        left = [key for key in keys if key not in (tried or ())] or keys
        # Where all rest, the one that wakes first.
        return replace(spec, api_key=min(left, key=lambda key: max(0.0, self._rests.get(key, 0.0) - now)))

    def _has_another(self, spec: ModelSpec, chosen: ModelSpec, tried: set[str], error: ProviderError) -> bool:
        """Let the key of a failed call rest if it is at fault, and say whether another one is worth a try."""
        key, seconds, (command, keys) = chosen.api_key, _rest(error), _sources(spec)
        if chosen is spec or key is None or not seconds:
            return False
        tried.add(key)
        if command:
            self._printed.pop(command, None)
            return len(tried) == 1
        self._rests[key] = self._clock.monotonic() + seconds
        return any(each not in tried for each in keys)

    async def _asked(self, command: str) -> str:
        """The key that a program prints."""
        async with self._asking:
            now = self._clock.monotonic()
            key, until = self._printed.get(command, ("", 0.0))
            if now >= until:
                key = await self._run(command)
                self._printed[command] = (key, now + _PRINTED_LASTS)
            return key

    async def _run(self, command: str) -> str:
        failed = "The program that gives out the key (model.api_key_command)"
        try:
            ended = await program.run(
                shlex.split(command),
                folder=Path.cwd(),
                environment=os.environ,
                seconds=_PROGRAM,
                clock=self._clock,
                apart=True,
            )
        except (OSError, ValueError) as error:
            raise ProviderRejected(f"{failed} cannot be run: {error}.") from error
        if ended.late:
            raise ProviderUnavailable(f"{failed} did not end within {_PROGRAM:.0f} seconds. Try again.")
        key = ended.output.strip()
        if ended.code or not key or len(key.split()) > 1:
            said = " ".join(ended.errors.split())[-200:]
            raise ProviderUnavailable(
                f"{failed} gave no key (exit code {ended.code}): {said or 'it did not print exactly one word'}."
            )
        return key


def has_more_than_a_key(settings: object) -> bool:
    """Whether a model's section names several keys, or a program that gives them out."""
    return isinstance(settings, ServedModel) and bool(settings.api_keys or settings.api_key_command)


def _sources(spec: ModelSpec) -> tuple[str | None, list[str]]:
    """The program that gives out a model's key, and the keys that it has."""
    settings = spec.settings
    if not isinstance(settings, ServedModel):
        return None, []
    return settings.api_key_command, [key.get_secret_value() for key in settings.api_keys]


def _rest(error: ProviderError) -> float:
    """The seconds for which a key is not used after an error; 0: it is not the key's fault."""
    if isinstance(error, ProviderRateLimited):
        return error.retry_after or _LIMITED
    refused = isinstance(error, ProviderRejected) and error.status in _KEY_REFUSED
    return _REFUSED if refused or isinstance(error, QuotaExceeded) else 0.0
