"""The searches that come with Legato. Three are asked by HTTP, each by its vendor's documentation: SearXNG
(https://docs.searxng.org/dev/search_api.html), Brave (https://api-dashboard.search.brave.com/app/documentation) and
Tavily (https://docs.tavily.com/documentation/api-reference/endpoint/search).

An answer is a stranger's: it is read up to 2 MB and for a limited time, and may hold anything.

The fourth needs no key: the library ddgs (MIT) asks public search engines as a browser does. They may refuse it at any
time, so it is for trying things out, and for few people. The library is loaded when it is first needed, and blocks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, Final

import httpx
from msgspec import Struct
from msgspec.json import decode

from gateway.agent.search.plugin import Hit, SearchHost, Wanted
from gateway.domain.wording import lasting
from gateway.providers.errors import retry_after
from gateway.providers.http import FOREIGN_ERRORS, http_client
from gateway.runtime.errors import ConfigError, ProviderRejected, ToolError
from gateway.runtime.plugins import imported

_MOST: Final = 2_000_000  # bytes of an answer
_MOST_ROWS: Final = 100  # of an answer; vendors give 20 a page
_MOST_AT_ONCE: Final = 20  # that Brave and Tavily give
_PATIENCE: Final = 3.0  # seconds that a search may ask for before it is asked again
_ATTEMPTS: Final = 3

_BAD_KEY: Final = "{title} refused the key: the operator must correct tools.search.api_key."
_NO_JSON: Final = (
    "SearXNG gives programs no results: its operator must add `json` to search.formats in its settings.yml."
)
_LIMITER: Final = (
    "SearXNG blocks this bot as a robot: its operator must switch server.limiter off in its "
    "settings.yml, or let this machine through."
)
_ENGINES: Final = "SearXNG found nothing, and {engines} did not answer it: try again later, or use other words."
_USED_UP: Final = "The quota at {title} is used up: upgrade the plan there, or set another search in tools.search."
_TOO_OFTEN: Final = "{title} gets too many requests: try again {when}."
_REFUSED: Final = "{title} does not accept this search ({status}): put it in other words, without operators."
_TROUBLE: Final = "{title} has a problem ({status}): try again later."
_AWAY: Final = "{title} did not answer at {address}: try again later, or have someone check whether it runs there."
_NO_PAGES: Final = (
    "{address} is not the address of {title} ({status}): the operator must correct tools.search.base_url."
)

_INSTALL: Final = (
    "tools.search.provider: this search is not installed here. Run `pip install ddgs` where Legato is installed, and "
    "restart Legato"
)
_NOTHING: Final = "No results found"  # ddgs raises that as it raises everything else
_REFUSED_WITHOUT_KEY: Final = (
    "The search engines refused to answer or did not answer in time, as they often do to programs without a key: try "
    "again later, or have a search with a key set up (tools.search)."
)

_BY_CODE: Final = {b"SUBSCRIPTION_TOKEN_INVALID": _BAD_KEY, b"QUOTA_LIMITED": _USED_UP}  # Brave's, with 422 and 429
_BY_STATUS: Final = {
    **dict.fromkeys((401, 403), _BAD_KEY),
    **dict.fromkeys((402, 432, 433), _USED_UP),  # the last two are Tavily's own
    **dict.fromkeys((200, 301, 302, 307, 308, 404, 405), _NO_PAGES),
    429: _TOO_OFTEN,
}

Request = tuple[str, str, Mapping[str, str], Mapping[str, Any]]
"""Method, path, headers, and what else httpx is given."""


class Server(Struct, frozen=True):
    """`Search` by HTTP, with a vendor's own ways. `request` is made with the key; `pages` reads the decoded answer, and
    raises TypeError for one of another shape. `told`: its own sentences for a status."""

    title: str
    request: Callable[[Wanted, str], Request]
    pages: Callable[[Mapping[str, Any]], Iterator[Hit]]
    told: Mapping[int, str]
    host: SearchHost

    async def find(self, wanted: Wanted) -> Sequence[Hit]:
        """Ask the server; where it wants a short pause between two searches, again after one."""
        try:
            async with self.host.clock.limit(self.host.seconds):
                attempt = 1
                while isinstance(found := await self._asked(wanted, attempt), float):
                    await self.host.clock.sleep(found)
                    attempt += 1
                return found
        except (TimeoutError, *FOREIGN_ERRORS) as error:
            raise self._failed(_AWAY) from error
        except ProviderRejected as error:  # by a proxy that cannot be used
            raise ToolError(str(error)) from error

    async def _asked(self, wanted: Wanted, attempt: int) -> Sequence[Hit] | float:
        """The pages, or the seconds until the server wants to be asked again."""
        own_login = "@" in self.host.address.partition("?")[0]  # of the server itself: it takes one only
        method, path, headers, more = self.request(wanted, "" if own_login else self.host.key)
        body = bytearray()
        async with (
            http_client(read_timeout=self.host.seconds) as client,
            client.stream(method, f"{self.host.address}{path}", headers=headers, **more) as response,
        ):
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > _MOST:
                    raise self._failed(_NO_PAGES, response)
        if response.status_code == 200:
            try:
                return [*self.pages(decode(body))]
            except (TypeError, ValueError, AttributeError, RecursionError):
                raise self._failed(_NO_PAGES, response) from None
        told = next((text for code, text in _BY_CODE.items() if code in body), None)
        told = told or {**_BY_STATUS, **self.told}.get(response.status_code)
        pause = retry_after(response.headers) if told is _TOO_OFTEN and attempt < _ATTEMPTS else None
        if pause is not None and pause <= _PATIENCE:
            return max(1.0, pause)
        raise self._failed(told or (_REFUSED if response.status_code < 500 else _TROUBLE), response)

    def _failed(self, text: str, response: httpx.Response | None = None) -> ToolError:
        pause = retry_after(response.headers) if response else None
        return ToolError(
            text.format(
                title=self.title,
                address=self.host.address.rpartition("@")[2],
                status=response.status_code if response else "",
                when=f"in {lasting(pause)}" if pause else "a little later",
            )
        )


def _hits(found: Any, text: str, *dates: str) -> Iterator[Hit]:
    """The pages in a list of mappings. Raises TypeError for what is no list."""
    if not isinstance(found, list):
        raise TypeError
    for row in found[:_MOST_ROWS]:
        if isinstance(row, dict):
            yield Hit(
                title=_text(row, "title"), address=_text(row, "url"), text=_text(row, text), date=_text(row, *dates)
            )


def _text(row: Mapping[str, Any], *names: str) -> str:
    """The first of these values that is a text with anything in it."""
    return next((value for name in names if isinstance(value := row.get(name), str) and value), "")


def _searxng_request(wanted: Wanted, key: str) -> Request:
    asked = {"q": wanted.words, "format": "json", **({"time_range": wanted.recency} if wanted.recency else {})}
    # One behind a gate of somebody's own is opened by a token.
    return "GET", "/search", {"Authorization": f"Bearer {key}"} if key else {}, {"params": asked}


def _searxng_pages(answer: Mapping[str, Any]) -> Iterator[Hit]:
    yield from _hits(answer.get("results"), "content", "publishedDate")
    silent = answer.get("unresponsive_engines")
    if not answer["results"] and isinstance(silent, list) and silent:
        names = [str(each[0])[:30] for each in silent[:5] if isinstance(each, list) and each]
        raise ToolError(_ENGINES.format(engines=", ".join(names) or "its engines"))


def _brave_request(wanted: Wanted, key: str) -> Request:
    asked = {"q": wanted.words, "count": min(wanted.most, _MOST_AT_ONCE), "text_decorations": "false"}
    asked |= {"result_filter": "web", **({"freshness": f"p{wanted.recency[0]}"} if wanted.recency else {})}
    return "GET", "/res/v1/web/search", {"X-Subscription-Token": key}, {"params": asked}


def _brave_pages(answer: Mapping[str, Any]) -> Iterator[Hit]:
    found = answer.get("web") or ({"results": []} if answer.get("type") == "search" else {})  # none where nothing is
    return _hits(found.get("results"), "description", "page_age", "age")


def _tavily_request(wanted: Wanted, key: str) -> Request:
    asked: dict[str, Any] = {"query": wanted.query, "max_results": min(wanted.most, _MOST_AT_ONCE)}
    asked |= {"time_range": wanted.recency} if wanted.recency else {}
    asked |= {"include_domains": [wanted.site]} if wanted.site else {}
    return "POST", "/search", {"Authorization": f"Bearer {key}"}, {"json": asked}


def _tavily_pages(answer: Mapping[str, Any]) -> Iterator[Hit]:
    return _hits(answer.get("results"), "content", "published_date")


searxng = partial(Server, "SearXNG", _searxng_request, _searxng_pages, {403: _NO_JSON, 429: _LIMITER})
brave = partial(Server, "Brave Search", _brave_request, _brave_pages, {})
tavily = partial(Server, "Tavily", _tavily_request, _tavily_pages, {})


# -- without a key -------------------------------------------------------------------------------


class WithoutKey(Struct, frozen=True):
    """`Search` by the library."""

    host: SearchHost

    async def find(self, wanted: Wanted) -> Sequence[Hit]:
        """Ask in a thread, which may go on for a little when the time is over."""
        try:
            async with self.host.clock.limit(self.host.seconds):
                rows = await asyncio.to_thread(self._rows, wanted)
        except TimeoutError:
            raise ToolError(_REFUSED_WITHOUT_KEY) from None
        columns = ("title", "href", "body")
        texts = [[str(row.get(name, "")) for name in columns] for row in rows]
        return [Hit(title=title, address=address, text=text) for title, address, text in texts]

    def _rows(self, wanted: Wanted) -> Sequence[dict[str, Any]]:
        library: Any = imported("ddgs:DDGS")(timeout=max(1, int(self.host.seconds / 2)))
        failed: type[Exception] = imported("ddgs.exceptions:DDGSException")
        try:
            found: Sequence[dict[str, Any]] = library.text(
                wanted.words, timelimit=wanted.recency[:1] or None, max_results=wanted.most
            )
        except failed as error:
            if _NOTHING in str(error):
                return []
            raise ToolError(_REFUSED_WITHOUT_KEY) from error
        return found


def ddgs(host: SearchHost) -> WithoutKey:
    """For the plug-in of this name. Raises ConfigError where the library is missing."""
    if find_spec("ddgs") is None:
        raise ConfigError([_INSTALL])
    return WithoutKey(host)
