"""The table answers for models it knows and stays silent about others."""

import pytest

from gateway.app.plugins import providers
from gateway.domain.usage import CanonicalUsage
from gateway.providers.catalog import PriceTable
from gateway.providers.plugin import ModelPrices

USAGE = CanonicalUsage(input_tokens=1000, output_tokens=100)


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("openai", "gpt-4o"),
        ("openai-responses", "gpt-5"),
        ("anthropic", "claude-sonnet-4-5"),
        ("openai", "anthropic/claude-sonnet-4.5"),
        ("openai", "deepseek-chat"),
    ],
)
def test_known_models_have_a_price_and_a_window(provider: str, model: str) -> None:
    table = PriceTable(providers())
    cost = table.cost_usd(provider, model, USAGE)
    assert cost is not None
    assert 0 < cost < 1
    window = table.context_window(model)
    assert window is not None
    assert window >= 8_000


@pytest.mark.parametrize("model", ["", "my-own-model", "a/b/c", "…", "\x00"])
def test_unknown_models_have_neither(model: str) -> None:
    table = PriceTable(providers())
    assert table.cost_usd("openai", model, USAGE) is None
    assert table.cost_usd("no-such-provider", model, USAGE) is None
    assert table.context_window(model) is None


def test_a_price_of_ones_own_comes_before_the_tables() -> None:
    table = PriceTable(providers(), {"gpt-4o": ModelPrices(input=1, output=2)})
    assert table.cost_usd("openai", "gpt-4o", USAGE) == pytest.approx(0.0012)
    assert table.cost_usd("openai", "gpt-4o-mini", USAGE) != pytest.approx(0.0012)


def test_cached_tokens_are_cheaper() -> None:
    table = PriceTable(providers())
    plain = table.cost_usd("openai", "gpt-4o", CanonicalUsage(input_tokens=1000))
    cached = table.cost_usd("openai", "gpt-4o", CanonicalUsage(cache_read_tokens=1000))
    assert plain is not None
    assert cached is not None
    assert 0 < cached < plain


def test_the_offline_model_is_free() -> None:
    assert PriceTable(providers()).cost_usd("offline", "anything", USAGE) == 0.0


def test_what_the_table_lacks_stays_unpriced_and_costs_no_second_search():
    table = PriceTable(providers())
    assert table.cost_usd("openai", "a-model-nobody-lists", USAGE) is None
    assert table.cost_usd("openai", "a-model-nobody-lists", USAGE) is None
    assert table.cost_usd("openai", "gpt-4o", USAGE) is not None
