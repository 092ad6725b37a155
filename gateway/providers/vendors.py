"""Vendors of models, and servers of one's own, by the names that people write into `model.provider`.

A row of `vendors.json` says at which address a vendor is, which API it speaks, where people keep its key and get one,
and what it lacks. Everything else is the API's own package. Another package adds rows: under the entry-point group
`legato.vendors` it registers a tuple of them. Addresses and variables are those of the vendors' own documentation, read
in November 2026.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import json

from gateway.providers.plugin import ProviderPlugin, Vendor, anywhere
from gateway.runtime.structs import replace

GROUP: Final = "legato.vendors"
USUAL_API: Final = "openai"  # which nearly all of them speak

VENDORS: Final = json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=tuple[Vendor, ...])


def as_provider(vendor: Vendor, api: ProviderPlugin) -> ProviderPlugin:
    """A vendor as a provider of its API, with its own price list."""

    def listed(model: str) -> Iterator[tuple[str | None, str]]:
        if vendor.prices:
            yield vendor.prices, model
        yield from anywhere(model)

    return replace(api, name=vendor.name, vendor=vendor, listed=listed, examples=(), free=vendor.free)
