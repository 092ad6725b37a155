"""The Responses API, as OpenAI and its imitators speak it: `model.provider: openai-responses`."""

from collections.abc import Iterator

from gateway.providers.plugin import ProviderPlugin, ServedModel, anywhere


class ResponsesModel(ServedModel):
    """A model of OpenAI's, or of a server with the same API. Models that think do so best here."""

    key_variable = "OPENAI_API_KEY"


def listed(model: str) -> Iterator[tuple[str | None, str]]:
    """OpenAI's own list comes first; a compatible server may have anybody's models."""
    yield "openai", model
    yield from anywhere(model)


PLUGIN = ProviderPlugin(
    name="openai-responses",
    create="gateway.providers.openai_responses.responses:create",
    settings=ResponsesModel,
    examples=(
        'model: {provider: openai-responses, name: gpt-5, api_key: "${OPENAI_API_KEY}"}   # thinks between calls',
    ),
    listed=listed,
)
