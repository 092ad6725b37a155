"""The prices and windows of models, from the table that `genai-prices` ships.

The table takes about 35 MB and a third of a second, so this is the only module that imports the
library, and it is only imported when a model that costs something is configured. Nothing is fetched: the
table is as old as the installed library, and the configuration says the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from genai_prices import Usage, calc_price, data_snapshot
from genai_prices.types import ModelInfo

from gateway.domain.usage import CanonicalUsage
from gateway.providers.plugin import ModelPrices, ProviderPlugin, anywhere


class PriceTable:
    """`Windows` and `Prices` of the models of these providers; `own` are prices of one's own, by model. Remembers the
    gaps of the table: the library looks through all of it, every time, to find out."""

    def __init__(
        self,
        providers: Mapping[str, ProviderPlugin],
        own: Mapping[str, ModelPrices] = MappingProxyType({}),
    ) -> None:
        self._providers = providers
        self._own = own
        self._unlisted: set[tuple[str, str]] = set()

    def context_window(self, model: str) -> int | None:
        """The model's window in tokens, or None if the table does not know it."""
        for provider_id, name in (place for each in (*self._providers, "") for place in self._places(each, model)):
            found = _find(provider_id, name)
            if found is not None and found.context_window:
                return found.context_window
        return None

    def cost_usd(self, provider: str, model: str, usage: CanonicalUsage) -> float | None:
        """Return the cost of a call in US dollars, or None if no price is known."""
        if model in self._own:
            return self._own[model].cost_usd(usage)
        if provider in self._providers and self._providers[provider].free:
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
        for provider_id, name in self._places(provider, model):
            try:
                return float(calc_price(counted, name, provider_id=provider_id).total_price)
            except LookupError:
                continue
            except ValueError:  # listed, but not for a usage like this
                listed = True
        if not listed:
            self._unlisted.add((provider, model))
        return None

    def _places(self, provider: str, model: str) -> Iterator[tuple[str | None, str]]:
        """Yield the places of the table where a provider's model may be listed."""
        name, known = model.strip().lower(), self._providers.get(provider)
        if name:
            yield from known.listed(name) if known else anywhere(name)


def _find(provider_id: str | None, name: str) -> ModelInfo | None:
    try:
        return data_snapshot.get_snapshot().find_provider_model(name, None, provider_id, None)[1]
    except LookupError:
        return None
