"""The host's knowledge of the configured models, and the providers that docs/providers.md shows."""

from __future__ import annotations

import re
from pathlib import Path
from unittest.mock import AsyncMock, Mock

import pytest

from gateway.app.config import Config, load_config
from gateway.app.models import NoTable, caching_note, model_in_full, model_spec, models_alone
from gateway.app.plugins import providers
from gateway.domain.usage import CanonicalUsage
from gateway.providers.base import ModelSpec
from gateway.providers.plugin import ModelSettings
from gateway.runtime.errors import ConfigError
from tests.support.installed import PROVIDERS


def test_where_no_model_costs_anything_no_table_is_needed() -> None:
    prices = NoTable()
    assert prices.cost_usd(ModelSpec(provider="offline", name="offline"), CanonicalUsage(input_tokens=9)) == 0.0
    assert prices.cost_usd(ModelSpec(provider="openai", name="gpt-4o"), CanonicalUsage(input_tokens=9)) is None
    assert prices.context_window("offline") is None


@pytest.mark.parametrize(
    ("provider", "model", "base_url", "marks_wanted"),
    [
        ("openai", "anthropic/claude-opus-4", "https://openrouter.ai/api/v1", True),
        ("openai", "claude-sonnet-4-5", "https://example.com/v1", False),
        ("openai", "gpt-5", "https://openrouter.ai/api/v1", False),
        ("offline", "offline", None, False),
    ],
)
def test_only_claude_wants_marks(provider: str, model: str, base_url: str | None, marks_wanted: bool) -> None:
    spec = model_spec(ModelSettings(provider=provider, name=model, base_url=base_url), NoTable())
    assert spec.cache_marks is marks_wanted
    assert caching_note(spec).startswith(
        f"on for {model}, kept 5m" if marks_wanted else f"off, because {model} takes no"
    )


def test_what_is_not_configured_is_what_the_provider_says() -> None:
    offline, hosted = ModelSettings(), ModelSettings(provider="openai", name="m")
    assert [model_spec(each, NoTable()).context_length for each in (offline, hosted)] == [32_000, 128_000]
    assert [model_spec(each, NoTable()).pictures for each in (offline, hosted)] == [False, None]
    assert model_in_full(Config()) == "the offline model (no key, no network)"
    assert model_in_full(Config(model=hosted)) == "m (openai)"
    claude = ModelSettings(provider="anthropic", name="claude-sonnet-4-5", cache_ttl="1h")
    assert model_in_full(Config(model=claude)) == "claude-sonnet-4-5 (anthropic, prompts cached 1h)"


def test_a_model_that_nobody_can_call_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="say which model of openai"):
        model_spec(ModelSettings(provider="openai"), NoTable())
    with pytest.raises(ConfigError, match=f"there is no 'opnai'; known are {PROVIDERS}"):
        model_spec(ModelSettings(provider="opnai", name="m"), NoTable())


PAGE = (Path(__file__).parents[3] / "docs" / "providers.md").read_text(encoding="utf-8")
LINES = re.findall(r"^\| .* \| `(\{provider:[^`]*\})` \|", PAGE, re.MULTILINE)
KEYS = {vendor.key: "k" for each in providers().values() if (vendor := each.vendor) and vendor.key}


@pytest.mark.parametrize("line", LINES)
def test_the_line_is_a_valid_section(line: str, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"model: {line}\n", encoding="utf-8")
    assert load_config(path, KEYS).model.name


def test_the_page_names_the_vendors_and_servers_that_people_ask_for() -> None:
    assert len(LINES) == len([each for each in providers().values() if each.vendor])
    assert {"openai", "openai-responses", "anthropic"} <= set(re.findall(r"provider: ([\w-]+)", " ".join(LINES)))


@pytest.mark.parametrize("error", [None, LookupError])
async def test_what_a_provider_alone_has_opened_is_closed(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception] | None
) -> None:
    models, closers = Mock(), [AsyncMock(), AsyncMock()]
    monkeypatch.setattr("gateway.app.models.configured_models", lambda *_: (models, closers))
    try:
        async with models_alone(Config(), str) as found:
            assert found is models
            closers[0].assert_not_awaited()
            if error is not None:
                raise error
    except LookupError:
        pass
    for close in closers:
        close.assert_awaited_once_with()
