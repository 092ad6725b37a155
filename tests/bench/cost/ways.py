"""The ways to keep a conversation in its window whose prices are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gateway.app.config import Config
from gateway.app.plugins import providers
from gateway.context.engine import ContextEngine, Outcome
from gateway.context.policy import CompressionSettings
from gateway.domain.expiry import ExpiryPolicy
from gateway.domain.message import Message, noted_tokens
from gateway.domain.turn import SessionSettings
from gateway.providers.plugin import ModelSettings
from tests.bench.cost.peer import Theirs
from tests.support.gateway import config_in

MODEL: Final = "claude-sonnet-4-5"
USABLE: Final = 0.85  # of the window


class Sliding(ContextEngine):
    """Forgets the oldest messages as soon as the window is full, as many as must go: from a person's words on."""

    name = "sliding"

    def update_from_response(self, usage: Mapping[str, int]) -> None:
        self.last_prompt_tokens = usage["prompt_tokens"]

    def update_model(
        self, model: str, context_length: int, base_url: str = "", api_key: str = "", provider: str = ""
    ) -> None:
        self.context_length, self.threshold_tokens = context_length, int(context_length * USABLE)

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        return (prompt_tokens or self.last_prompt_tokens) >= self.threshold_tokens

    async def compress(self, messages: Sequence[Message], current_tokens: int | None = None) -> list[Message]:
        excess = (current_tokens or self.last_prompt_tokens) - self.threshold_tokens
        starts = [place for place, message in enumerate(messages) if place and message["role"] == "user"]
        start = next((place for place in starts if noted_tokens(messages[:place]) > 1.1 * excess), starts[-1])
        self.compression_count += 1
        self.last_outcome = Outcome(dropped=start)
        return list(messages[start:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A name, settings of `model` and `compression`, and an engine that is not built in. `lasts`: the window in tokens,
    where another one than that of the comparison is meant."""

    name: str
    model: Mapping[str, Any] = field(default_factory=dict)
    compression: Mapping[str, Any] = field(default_factory=dict)
    engine: Callable[[list[int]], ContextEngine] | None = None
    lasts: int | None = None

    def config(self, folder: Path, window: int) -> Config:
        """The configuration for a folder and a window in tokens."""
        own = providers()["anthropic"].settings
        model = own(provider="anthropic", name=MODEL, api_key="none", context_length=self.lasts or window, **self.model)
        assert isinstance(model, ModelSettings)
        compression = CompressionSettings(**self.compression)
        sessions = SessionSettings(expiry=ExpiryPolicy(mode="none"))
        return config_in(folder, model=model, compression=compression, sessions=sessions)


WAYS: Final = {
    way.name: way
    for way in (
        Way(name="ours", model={"cache_ttl": "5m"}),
        Way(name="ours, auto", compression={"threshold": "auto"}),
        Way(name="hermes-agent", model={"cache_ttl": "5m"}, engine=Theirs),
        Way(name="sliding", model={"cache_ttl": "5m"}, engine=lambda left: Sliding()),
        Way(name="none", model={"cache_ttl": "5m"}, compression={"enabled": False}, lasts=1_000_000),
    )
}
