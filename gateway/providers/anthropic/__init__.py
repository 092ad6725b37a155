"""The Messages API, as Anthropic and its imitators speak it: `model.provider: anthropic`."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from gateway.domain.settings import Contradiction, Count
from gateway.providers.plugin import ProviderPlugin, ServedModel, Vendor, anywhere

LEAST_THINKING = 1_024  # tokens; the API refuses a smaller budget


class AnthropicModel(ServedModel):
    """A model of Anthropic, or of a server with the same API."""

    thinking: Literal["auto", "adaptive", "off"] = Field(
        "auto", description="auto: the model's own default; adaptive: as long as it likes; off: not at all"
    )
    thinking_tokens: Count | None = Field(
        None, description="tokens for thinking, for models that want a budget; 1,024 at least"
    )

    def contradictions(self) -> Iterator[Contradiction]:
        """A budget of thinking is a part of the answer's."""
        yield from super().contradictions()
        budget, most = self.thinking_tokens, self.max_output_tokens
        if budget is None:
            return
        if budget < LEAST_THINKING:
            yield ("thinking_tokens",), f"({budget:,}) must be at least {LEAST_THINKING:,}"
        if most is not None and budget >= most:
            yield ("thinking_tokens", "max_output_tokens"), f"({budget:,}) must be below max_output_tokens ({most:,})"
        if self.thinking != "auto":
            yield ("thinking_tokens", "thinking"), f"is a way to think of its own: leave thinking: {self.thinking} out"


def listed(model: str) -> Iterator[tuple[str | None, str]]:
    """Anthropic's own list comes first; a compatible server may have anybody's models."""
    yield "anthropic", model
    yield from anywhere(model)


def marks_cache(model: str, _: str | None) -> bool:
    """Claude keeps marked prompts; other models of compatible servers cache as they like."""
    return "claude" in model.lower()


PLUGIN = ProviderPlugin(
    name="anthropic",
    create="gateway.providers.anthropic.messages:create",
    settings=AnthropicModel,
    examples=("model: {provider: anthropic, name: claude-sonnet-4-5}",),
    vendor=Vendor(
        name="anthropic",
        title="Anthropic",
        key="ANTHROPIC_API_KEY",
        keys_at="https://console.anthropic.com/settings/keys",
        example="claude-sonnet-4-5",
        note="tools, pictures, thinking, caching; for other servers with this API, set base_url",
    ),
    listed=listed,
    marks_cache=marks_cache,
    marks_results=True,
    takes=frozenset({"temperature", "top_p", "top_k", "stop", "response_format", "reasoning_effort"})
    | {"parallel_tool_calls"},
)
