"""What vendors' lists say of their models, each in its own way."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.providers.base import OfferedModel
from gateway.providers.windows import offered

OPENROUTER: dict[str, Any] = {
    "id": "anthropic/claude-sonnet-4.5",
    "context_length": 1_000_000,
    "architecture": {"input_modalities": ["text", "image"], "output_modalities": ["text"]},
    "pricing": {"prompt": "0.000003", "completion": "0.000015", "image": "0.0048"},
    "supported_parameters": ["max_tokens", "tools", "tool_choice"],
}


@pytest.mark.parametrize(
    ("entry", "model"),
    [
        (
            OPENROUTER,
            OfferedModel(
                name=OPENROUTER["id"], window=1_000_000, pictures=True, tools=True, read_usd=3.0, write_usd=15.0
            ),
        ),
        (
            OPENROUTER | {"architecture": {"input_modalities": ["text"]}, "supported_parameters": ["stop"]},
            OfferedModel(
                name=OPENROUTER["id"], window=1_000_000, pictures=False, tools=False, read_usd=3.0, write_usd=15.0
            ),
        ),
        (  # Mistral
            {
                "id": "m",
                "max_context_length": 131_072,
                "capabilities": {"completion_chat": True, "function_calling": True, "vision": False},
            },
            OfferedModel(name="m", window=131_072, pictures=False, tools=True),
        ),
        (  # Anthropic
            {"id": "m", "max_input_tokens": 200_000, "capabilities": {"image_input": {"supported": True}}},
            OfferedModel(name="m", window=200_000, pictures=True),
        ),
        (  # LM Studio
            {"id": "m", "max_context_length": 8_192, "capabilities": ["tool_use"]},
            OfferedModel(name="m", window=8_192, tools=True),
        ),
        (  # Together
            {"id": "m", "context_length": 32_768, "pricing": {"input": 0.6, "output": 1.7, "hourly": 0}},
            OfferedModel(name="m", window=32_768, read_usd=0.6, write_usd=1.7),
        ),
        ({"id": "m", "object": "model", "owned_by": "openai"}, OfferedModel(name="m")),
        (  # a router's way to say that it depends
            {"id": "m", "pricing": {"prompt": "-1", "completion": "-1"}},
            OfferedModel(name="m"),
        ),
        ({"id": "m", "pricing": "free", "capabilities": 7, "architecture": []}, OfferedModel(name="m")),
        (
            {"id": "m", "pricing": {"prompt": "nan", "completion": None}, "capabilities": [[], 7]},
            OfferedModel(name="m"),
        ),
    ],
)
def test_a_list_is_read(entry: dict[str, Any], model: OfferedModel) -> None:
    (found,) = offered({"data": [entry]})
    assert (found.name, found.window, found.pictures, found.tools) == (
        model.name,
        model.window,
        model.pictures,
        model.tools,
    )
    assert found.read_usd == pytest.approx(model.read_usd)
    assert found.write_usd == pytest.approx(model.write_usd)
