"""The port of searches of the web, the description of one, and those that are there.

A package registers a `SearchPlugin` under the entry-point group `legato.searches`; `tools.search.provider` names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final, Protocol

from msgspec import Struct

from gateway.agent.tools.web_fetch import WebSearchSettings
from gateway.runtime.clock import Clock
from gateway.runtime.errors import ConfigError
from gateway.runtime.plugins import contained, imported, loaded, refuse_misfit

GROUP: Final = "legato.searches"


class Wanted(Struct, frozen=True, kw_only=True):
    """The pages that are looked for. `most`: how many. `recency`: "day", "week", "month" or "year", the age that they
    may have; "": any. `site`: the host that they must be on, such as example.org; "": any."""

    query: str
    most: int
    recency: str = ""
    site: str = ""

    @property
    def words(self) -> str:
        """The query, with the host as search engines read it."""
        return f"{self.query} site:{self.site}" if self.site else self.query


class Hit(Struct, frozen=True, kw_only=True):
    """A page that was found, as the search describes it. Nothing in it is trusted; HTML in it is taken out later."""

    title: str
    address: str
    text: str
    date: str = ""


class Search(Protocol):
    """Finds pages."""

    async def find(self, wanted: Wanted) -> Sequence[Hit]:
        """The pages that fit best, best first. Raises ToolError, with a sentence that says what a person can do."""


class SearchHost(Struct, frozen=True, kw_only=True):
    """Everything that a search is made with. `seconds`: for one search."""

    clock: Clock
    address: str
    key: str
    seconds: float


class SearchPlugin(Struct, frozen=True, kw_only=True):
    """A search, described. `name` is its entry point's and `tools.search.provider`'s; `title`: what people call it.
    `create` names the function, as "module:function", that is called with a `SearchHost` and returns the `Search`.
    `address`: of its API; "" if it is a server of one's own; None if it has none. `key`: the variable in which people
    keep its key, "" if it needs none; `keys_at`: the page where they get one."""

    name: str
    title: str
    create: str
    address: str | None = None
    key: str = ""
    keys_at: str = ""

    @property
    def own(self) -> bool:
        """Whether it is somebody's own server."""
        return self.address == ""


_SERVERS: Final = "gateway.agent.search.servers"
EXAMPLE: Final = "http://127.0.0.1:8888"  # where SearXNG listens by default
OWN: Final = (
    SearchPlugin(name="searxng", title="SearXNG", create=f"{_SERVERS}:searxng", address=""),
    SearchPlugin(
        name="brave",
        title="Brave Search",
        create=f"{_SERVERS}:brave",
        address="https://api.search.brave.com",
        key="BRAVE_API_KEY",
        keys_at="https://api-dashboard.search.brave.com",
    ),
    SearchPlugin(
        name="tavily",
        title="Tavily",
        create=f"{_SERVERS}:tavily",
        address="https://api.tavily.com",
        key="TAVILY_API_KEY",
        keys_at="https://app.tavily.com",
    ),
    SearchPlugin(name="ddgs", title="DuckDuckGo and others", create=f"{_SERVERS}:ddgs"),
)


@cache
def searches() -> Mapping[str, SearchPlugin]:
    """All searches, by name. Raises ConfigError."""
    own, found = {each.name: each for each in OWN}, loaded(GROUP, SearchPlugin)
    if twins := own.keys() & found.keys():
        raise ConfigError([f"{GROUP}: {min(twins)} is a search of Legato's own: rename the package's"])
    return {**own, **found}


def lacking(settings: WebSearchSettings) -> Iterator[tuple[str, str]]:
    """Yield each key of the settings that does not do, with what must be. Raises ConfigError."""
    if settings.provider is None:
        return
    plugin = searches().get(settings.provider)
    if plugin is None:
        yield "provider", f"has no such name: {settings.provider!r}; there are {', '.join(searches())}"
    elif plugin.own and settings.base_url is None:
        yield "base_url", f"is needed by {plugin.name}: the address of your server, such as {EXAMPLE}"
    elif plugin.key and settings.api_key is None:
        keys = f"; get a key at {plugin.keys_at}" if plugin.keys_at else ""
        where = f"{plugin.key}, in the environment or in .env{keys}"
        yield "api_key", f"is needed by {plugin.name}: set the variable {where}"


def opened(settings: WebSearchSettings, clock: Clock) -> tuple[SearchPlugin, Search]:
    """The search of these settings, which name one. Raises ConfigError."""
    if problems := [f"tools.search.{key} {text}" for key, text in lacking(settings)]:
        raise ConfigError(problems)
    plugin = searches()[settings.provider or ""]
    host = SearchHost(
        clock=clock,
        address=(settings.base_url or plugin.address or "").rstrip("/"),
        key=settings.api_key.get_secret_value() if settings.api_key else "",
        seconds=settings.timeout,
    )
    what = f"the search {plugin.name}"
    search = contained(f"{what} cannot be made", lambda: imported(plugin.create)(host))
    refuse_misfit(what, search, Search)
    return plugin, search
