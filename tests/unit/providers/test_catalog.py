"""The table answers for models it knows and stays silent about others."""

from datetime import timedelta

import pytest

from gateway.app.plugins import providers
from gateway.cli.models import known_rows
from gateway.domain.usage import CanonicalUsage
from gateway.providers.base import ModelSpec
from gateway.providers.catalog import PriceTable
from gateway.providers.known import KNOWN, OLD_AFTER
from gateway.providers.plugin import ModelPrices
from gateway.runtime.structs import replace

USAGE = CanonicalUsage(input_tokens=1000, output_tokens=100)


def spec(provider: str, name: str, base_url: str | None = None) -> ModelSpec:
    return ModelSpec(provider=provider, name=name, base_url=base_url)


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
    cost = table.cost_usd(spec(provider, model), USAGE)
    assert cost is not None
    assert 0 < cost < 1
    window = table.context_window(model)
    assert window is not None
    assert window >= 8_000


@pytest.mark.parametrize("model", ["", "my-own-model", "a/b/c", "…", "\x00"])
def test_unknown_models_have_neither(model: str) -> None:
    table = PriceTable(providers())
    assert table.cost_usd(spec("openai", model), USAGE) is None
    assert table.cost_usd(spec("no-such-provider", model), USAGE) is None
    assert table.context_window(model) is None


def test_a_price_of_ones_own_comes_before_the_tables() -> None:
    table = PriceTable(providers(), {("openai", None, "gpt-4o"): ModelPrices(input=1, output=2)})
    assert table.cost_usd(spec("openai", "gpt-4o"), USAGE) == pytest.approx(0.0012)
    assert table.cost_usd(spec("openai", "gpt-4o-mini"), USAGE) != pytest.approx(0.0012)


def test_cached_tokens_are_cheaper() -> None:
    table = PriceTable(providers())
    plain = table.cost_usd(spec("openai", "gpt-4o"), CanonicalUsage(input_tokens=1000))
    cached = table.cost_usd(spec("openai", "gpt-4o"), CanonicalUsage(cache_read_tokens=1000))
    assert plain is not None
    assert cached is not None
    assert 0 < cached < plain


def test_what_runs_near_by_is_free_and_its_window_is_its_own() -> None:
    near = "http://127.0.0.1:11434/v1"
    own = {("openai", near, "priced"): ModelPrices(input=1, output=2)}
    table = PriceTable(providers(), own)
    for provider in ("anthropic", "ollama", "vllm"):
        assert table.cost_usd(spec(provider, "deepseek-chat", near), USAGE) == 0.0
    assert table.cost_usd(spec("openai", "priced", near), USAGE) == pytest.approx(0.0012)
    assert table.cost_usd(spec("openai", "nobody-knows", near), USAGE) is None  # a server that charges for others
    passed_on = table.cost_usd(spec("litellm", "gpt-4o", "http://127.0.0.1:4000/v1"), USAGE)
    assert passed_on == table.cost_usd(spec("openai", "gpt-4o"), USAGE)
    assert table.context_window("deepseek-chat", near) is None
    assert table.context_window("deepseek-chat") == 128_000


def test_a_price_belongs_to_an_address_and_not_to_a_name_alone() -> None:
    table = PriceTable(providers(), {("openai", "https://a.example/v1", "gpt-4o"): ModelPrices(input=1, output=2)})
    here = table.cost_usd(spec("openai", "gpt-4o", "https://a.example/v1"), USAGE)
    assert here == pytest.approx(0.0012)
    assert table.cost_usd(spec("openai", "gpt-4o", "https://b.example/v1"), USAGE) != here


def test_a_vendors_own_list_comes_before_those_of_others() -> None:
    table = PriceTable(providers())
    million = CanonicalUsage(input_tokens=1_000_000)
    assert table.cost_usd(spec("groq", "openai/gpt-oss-120b"), million) == pytest.approx(0.15)
    assert table.cost_usd(spec("cerebras", "gpt-oss-120b"), million) == pytest.approx(0.35)


@pytest.mark.parametrize(("prompt", "dollars"), [(32_000, 1.2), (32_001, 2.4), (200_000, 3.0)])
def test_a_long_prompt_may_be_dearer(prompt: int, dollars: float) -> None:
    cost = PriceTable(providers()).cost_usd(spec("qwen", "qwen3-max"), CanonicalUsage(input_tokens=prompt))
    assert cost == pytest.approx(prompt * dollars / 1_000_000)


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("gpt-5", 272_000),  # of input
        ("openai/gpt-5-mini", 272_000),
        ("gpt-5.2-2025-12-11", 272_000),
        ("gpt-5.4", 922_000),
        ("gemini-2.5-pro", 1_048_576),
        ("gemini-3-pro-preview", 1_048_576),
        ("qwen3-max", 258_048),
        ("zai/glm-4.6", 200_000),
        ("claude-sonnet-4-6", 1_000_000),
        ("claude-haiku-4-5-20251001", 200_000),
        ("meta-llama/llama-4-scout-17b-16e-instruct", 131_072),
    ],
)
def test_the_windows_of_present_models(model: str, window: int) -> None:
    assert PriceTable(providers()).context_window(model) == window


def test_each_row_of_our_own_says_where_and_when_it_was_read() -> None:
    rows = known_rows(KNOWN[0].seen + timedelta(days=OLD_AFTER))
    assert all(row["source"].startswith("https://") and not row["old"] for row in rows)
    assert all(row["old"] for row in known_rows(KNOWN[0].seen + timedelta(days=OLD_AFTER + 1)))


def test_the_offline_model_is_free() -> None:
    assert PriceTable(providers()).cost_usd(spec("offline", "anything"), USAGE) == 0.0


def test_what_the_table_lacks_stays_unpriced_and_costs_no_second_search():
    table = PriceTable(providers())
    assert table.cost_usd(spec("openai", "a-model-nobody-lists"), USAGE) is None
    assert table.cost_usd(spec("openai", "a-model-nobody-lists"), USAGE) is None
    assert table.cost_usd(spec("openai", "gpt-4o"), USAGE) is not None


def test_writing_for_an_hour_costs_more() -> None:
    table = PriceTable(providers())
    written = CanonicalUsage(input_tokens=0, cache_write_tokens=1_000_000, output_tokens=0)
    marked = ModelSpec(provider="anthropic", name="claude-haiku-4-5", cache_marks=True)
    assert table.cost_usd(marked, written) == pytest.approx(1.25)
    assert table.cost_usd(replace(marked, cache_ttl="1h"), written) == pytest.approx(2.0)
