"""The policies in comparison: ways to keep a conversation inside its window."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gateway.app.config import Config
from gateway.app.config.models import Context
from gateway.context.engine import ContextEngine, Outcome
from gateway.context.policy import CompressionSettings
from gateway.domain.message import Message, note_of
from gateway.providers.plugin import ModelSettings as ModelEntry
from tests.support.gateway import config_in

WINDOW: Final = 64_000  # tokens: half of what the commonest models have, so that conversations may be shorter
_THRESHOLD: Final = 0.5


class TailOnly(ContextEngine):
    """Forgets everything before the newest messages: a fifth of the threshold, from a person's words on."""

    name = "tail-only"
    threshold_percent = _THRESHOLD

    def update_from_response(self, usage: Mapping[str, int]) -> None:
        """Learn the prompt's size."""
        self.last_prompt_tokens = usage["prompt_tokens"]

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """From the threshold on."""
        return (prompt_tokens or self.last_prompt_tokens) >= self.threshold_tokens

    async def compress(self, messages: Sequence[Message], current_tokens: int | None = None) -> list[Message]:
        """The newest messages that begin with a person's; the newest request at least."""
        left, start, newest = self.threshold_tokens // 5, len(messages), True
        for index in range(len(messages) - 1, -1, -1):
            left -= note_of(messages[index]).get("tokens", 0)
            if left < 0 and not newest:
                break
            if messages[index]["role"] == "user":
                start, newest = index, False
        self.compression_count += 1
        self.last_outcome = Outcome(dropped=start)
        return list(messages[start:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A configuration, made for a folder and a window in tokens. `engine`: one that is not built in."""

    name: str
    config: Callable[[Path, int], Config]
    engine: Callable[[], ContextEngine] | None = None


def _config(folder: Path, window: int, **sections: Any) -> Config:
    model = ModelEntry(provider="offline", name="scripted", context_length=window)
    sections.setdefault("compression", CompressionSettings(threshold=_THRESHOLD, min_threshold_tokens=0))
    return config_in(folder, model=model, **sections)


POLICIES: Final = {
    policy.name: policy
    for policy in (
        Policy(
            name="none",
            config=lambda folder, window: _config(folder, window, compression=CompressionSettings(enabled=False)),
        ),
        Policy(name="tail-only", config=_config, engine=TailOnly),
        Policy(
            name="window",
            config=lambda folder, window: _config(folder, window, context=Context(engine="window")),
        ),
        Policy(name="compressor", config=_config),
    )
}
