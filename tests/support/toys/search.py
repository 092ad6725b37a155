"""A search that finds one page for everything."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.agent.search.plugin import Hit, SearchHost, SearchPlugin, Wanted


class Almanac:
    """`Search` in a book."""

    def __init__(self, host: SearchHost) -> None:
        self._key = host.key

    async def find(self, wanted: Wanted) -> Sequence[Hit]:
        """Its only page."""
        return [Hit(title=f"All about {wanted.words}", address="https://almanac.example/1", text="It is known.")]


PLUGIN = SearchPlugin(
    name="almanac",
    title="The Almanac",
    create="toys.search:Almanac",
    key="ALMANAC_KEY",
    keys_at="https://almanac.example",
)
