"""Chat Completions, as OpenAI and everything compatible speak them: `model.provider: openai`."""

from collections.abc import Iterator

from gateway.providers.plugin import ProviderPlugin, ServedModel


class OpenAIModel(ServedModel):
    """A model of OpenAI's, or of any compatible server."""

    key_variable = "OPENAI_API_KEY"


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
        'model: {provider: openai, name: gpt-5-mini, api_key: "${OPENAI_API_KEY}"}',
        'model: {provider: openai, name: qwen3, base_url: "http://127.0.0.1:11434/v1"}   # a server of your own',
    ),
    servers={
        "ollama": "http://127.0.0.1:11434/v1",
        "lmstudio": "http://127.0.0.1:1234/v1",
        "llama.cpp": "http://127.0.0.1:8080/v1",
        "vllm": "http://127.0.0.1:8000/v1",
        "openrouter": "https://openrouter.ai/api/v1",
        "deepseek": "https://api.deepseek.com/v1",
        "mistral": "https://api.mistral.ai/v1",
        "groq": "https://api.groq.com/openai/v1",
        "together": "https://api.together.xyz/v1",
        "xai": "https://api.x.ai/v1",
        "gemini": "https://generativelanguage.googleapis.com/v1beta/openai",
    },
    listed=listed,
    marks_cache=marks_cache,
)
