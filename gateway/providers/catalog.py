"""What models cost and how much they can read, from the table that `genai-prices` ships.

The table takes about 35 MB and a third of a second, so this is the only module that imports the
library, and it is only imported when a real model is configured. Nothing is fetched: the table
is as old as the installed library, and what it lacks is said in the configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from genai_prices import Usage, calc_price, data_snapshot
from genai_prices.types import ModelInfo

from gateway.domain.usage import CanonicalUsage

# Whose price list a provider name of ours means. `openai` also stands for any compatible server,
# so a name that OpenAI does not know is looked up everywhere.
_PRICE_LISTS: Final = {"openai": "openai", "openai-responses": "openai", "anthropic": "anthropic"}


class PriceTable:
    """`Prices` for real models. Remembers what the table lacks: the library looks through all of it,
    every time, to find out."""

    def __init__(self) -> None:
        self._unlisted: set[tuple[str, str]] = set()

    def context_window(self, model: str) -> int | None:
        """The model's window in tokens, or None if the table does not know it."""
        for provider_id, name in _readings(model, provider=""):
            found = _find(provider_id, name)
            if found is not None and found.context_window:
                return found.context_window
        return None

    def cost_usd(self, provider: str, model: str, usage: CanonicalUsage) -> float | None:
        """What a call cost in US dollars, or None if no price is known. `offline` costs nothing."""
        if provider == "offline":
            return 0.0
        if (provider, model) in self._unlisted:
            return None
        counted = Usage(
            input_tokens=usage.prompt_tokens,  # the library counts cached tokens as part of the input
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            output_tokens=usage.output_tokens,
        )
        listed = False
        for provider_id, name in _readings(model, provider):
            try:
                return float(calc_price(counted, name, provider_id=provider_id).total_price)
            except LookupError:
                continue
            except ValueError:  # listed, but not for a usage like this
                listed = True
        if not listed:
            self._unlisted.add((provider, model))
        return None


class Priced(Protocol):
    """What one model costs, as somebody said."""

    def cost_usd(self, usage: CanonicalUsage) -> float:
        """What a call cost in US dollars."""


class OwnPrices:
    """The table with prices of one's own, by model, in front."""

    def __init__(self, table: PriceTable, own: Mapping[str, Priced]) -> None:
        self._table = table
        self._own = own

    def context_window(self, model: str) -> int | None:
        """As the table has it."""
        return self._table.context_window(model)

    def cost_usd(self, provider: str, model: str, usage: CanonicalUsage) -> float | None:
        """One's own price for this model, or else the table's."""
        price = self._own.get(model)
        return self._table.cost_usd(provider, model, usage) if price is None else price.cost_usd(usage)


def _readings(model: str, provider: str) -> Iterator[tuple[str | None, str]]:
    """Where a model may be listed, most telling first: (price list or None for any, name)."""
    name = model.strip().lower()
    if not name:
        return
    if provider in _PRICE_LISTS:
        yield _PRICE_LISTS[provider], name
    yield None, name
    if "/" in name:  # `vendor/model` is how OpenRouter writes it
        yield "openrouter", name
        yield None, name.rpartition("/")[2]


def _find(provider_id: str | None, name: str) -> ModelInfo | None:
    try:
        return data_snapshot.get_snapshot().find_provider_model(name, None, provider_id, None)[1]
    except LookupError:
        return None
