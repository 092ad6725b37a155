"""Chat Completions, as OpenAI and everything compatible speak them: `model.provider: openai`."""

from collections.abc import Iterator

from gateway.providers.plugin import ProviderPlugin, ServedModel, Vendor


class OpenAIModel(ServedModel):
    """A model of OpenAI, or of any compatible server."""


def listed(model: str) -> Iterator[tuple[str | None, str]]:
    """OpenAI's own list comes first; a compatible server may have anybody's models. `vendor/model` is how OpenRouter
    names them."""
    yield "openai", model
    yield None, model
    if "/" in model:
        yield "openrouter", model
        yield None, model.rpartition("/")[2]


def marks_cache(model: str, base_url: str | None) -> bool:
    """Claude wants marks, which OpenRouter passes on; no other compatible server is known to."""
    return "claude" in model.lower() and "openrouter.ai" in (base_url or "")


PLUGIN = ProviderPlugin(
    name="openai",
    create="gateway.providers.openai.chat_completions:create",
    settings=OpenAIModel,
    examples=(
        "model: {provider: openai, name: gpt-5-mini}   # the key is in OPENAI_API_KEY",
        "model: {provider: ollama, name: qwen3}   # a server of your own",
    ),
    vendor=Vendor(
        name="openai",
        title="OpenAI",
        key="OPENAI_API_KEY",
        keys_at="https://platform.openai.com/api-keys",
        example="gpt-5-mini",
    ),
    listed=listed,
    marks_cache=marks_cache,
)
