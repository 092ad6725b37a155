"""The Responses API, as OpenAI and its imitators speak it: `model.provider: openai-responses`."""

from collections.abc import Iterator

from gateway.providers.plugin import SETTINGS, ProviderPlugin, ServedModel, Vendor, anywhere


class ResponsesModel(ServedModel):
    """A model of OpenAI, or of a server with the same API. Reasoning models work best with this one."""


def listed(model: str) -> Iterator[tuple[str | None, str]]:
    """OpenAI's own list comes first; a compatible server may have anybody's models."""
    yield "openai", model
    yield from anywhere(model)


PLUGIN = ProviderPlugin(
    name="openai-responses",
    create="gateway.providers.openai_responses.responses:create",
    settings=ResponsesModel,
    examples=("model: {provider: openai-responses, name: gpt-5}   # thinks between calls",),
    vendor=Vendor(
        name="openai-responses",
        title="OpenAI (Responses API)",
        key="OPENAI_API_KEY",
        keys_at="https://platform.openai.com/api-keys",
        traced_as="openai",
        example="gpt-5",
        note="for models that think: Legato returns their thoughts between calls",
    ),
    listed=listed,
    takes=SETTINGS - {"stop", "seed", "presence_penalty", "frequency_penalty", "top_k", "min_p", "repetition_penalty"},
)
