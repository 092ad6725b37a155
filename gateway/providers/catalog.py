"""The prices and windows of models, from the table that `genai-prices` ships, and from our own rows (`known`).

The table takes about 35 MB and a third of a second, so this is the only module that imports the
library, and it is only imported when a model that costs something is configured. Nothing is fetched: the
table is as old as the installed library, and the configuration says the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from genai_prices import Usage, calc_price, data_snapshot
from genai_prices.types import ModelInfo

from gateway.domain.usage import CanonicalUsage
from gateway.providers.base import ModelSpec
from gateway.providers.known import known
from gateway.providers.plugin import ModelPrices, ProviderPlugin, anywhere
from gateway.providers.windows import is_near
from gateway.runtime.structs import replace

_HOUR_DEARER: Final = 2.0 / 1.25
"""The price of writing for an hour beside that for five minutes, which the table has."""

Place = tuple[str, str | None, str]
"""A provider, an address and a model."""


class PriceTable:
    """`Windows` and `Prices` of the models of these providers; `own` are prices of one's own, by provider, address and
    model. Remembers the gaps of the table: the library looks through all of it, every time, to find out."""

    def __init__(
        self, providers: Mapping[str, ProviderPlugin], own: Mapping[Place, ModelPrices] = MappingProxyType({})
    ) -> None:
        self._providers = providers
        self._own = own
        self._unlisted: set[tuple[str, str]] = set()

    def context_window(self, model: str, base_url: str | None = None) -> int | None:
        """The model's window in tokens, or None if the table does not know it, or it runs on somebody's own server."""
        if is_near(base_url):
            return None
        row = known(model)
        if row is not None and row.window:
            return row.window
        for provider_id, name in (place for each in (*self._providers, "") for place in self._places(each, model)):
            found = _find(provider_id, name)
            if found is not None and found.context_window:
                return found.context_window
        return None

    def cost_usd(self, spec: ModelSpec, usage: CanonicalUsage) -> float | None:
        """Return the cost of a call in US dollars, or None if no price is known. What runs near by is free, unless its
        server has prices or passes calls on."""
        provider, model = spec.provider, spec.name
        if spec.cache_ttl == "1h" and spec.cache_marks and usage.cache_write_tokens:
            usage = replace(usage, cache_write_tokens=int(usage.cache_write_tokens * _HOUR_DEARER))
        if own := self._own.get((provider, spec.base_url, model)):
            return own.cost_usd(usage)
        plugin = self._providers.get(provider)
        if plugin is not None and (plugin.free or (is_near(spec.base_url) and not self._charges(plugin, spec))):
            return 0.0
        row = known(model)
        stated = row.cost_usd(usage) if row is not None else None
        theirs = row is not None and (provider == row.of or plugin is None or not plugin.is_vendor)
        if stated is not None and theirs:
            return stated
        listed = self._listed(provider, model, usage)
        return stated if listed is None else listed

    def _charges(self, plugin: ProviderPlugin, spec: ModelSpec) -> bool:
        """Whether a server near by wants money: it passes calls on, or another model of its has a price."""
        return plugin.passes_on or any(place[:2] == (spec.provider, spec.base_url) for place in self._own)

    def _listed(self, provider: str, model: str, usage: CanonicalUsage) -> float | None:
        """The cost by the library's table."""
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
        name, plugin = model.strip().lower(), self._providers.get(provider)
        if name:
            yield from plugin.listed(name) if plugin else anywhere(name)


def _find(provider_id: str | None, name: str) -> ModelInfo | None:
    try:
        return data_snapshot.get_snapshot().find_provider_model(name, None, provider_id, None)[1]
    except LookupError:
        return None
