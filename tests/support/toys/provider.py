"""A model that gives back in capitals what it is told."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from pydantic import Field

from gateway.domain.message import text_of
from gateway.domain.settings import Natural
from gateway.providers.base import Completed, ModelEvent, ModelRequest, ModelSpec, TextDelta
from gateway.providers.plugin import ModelSettings, ProviderHost, ProviderPlugin


class ShoutingModel(ModelSettings):
    """A model that shouts."""

    loudness: Natural = Field(1, description="how many exclamation marks it ends with")


class Shouting:
    """`Provider`."""

    name = "shouting"

    def __init__(self, host: ProviderHost) -> None:
        self._count = host.count

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Shout the last message."""
        text = text_of(request.messages[-1]).upper() + "!" * spec.settings.loudness
        yield TextDelta(text=text)
        yield Completed(text=text)

    async def aclose(self) -> None:
        """Nothing is open."""


PLUGIN = ProviderPlugin(
    name="shouting",
    create="toys.provider:Shouting",
    settings=ShoutingModel,
    only_model="the shouting model",
    free=True,
    window=16_000,
)
