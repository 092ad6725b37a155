"""The searches of the web against emulated servers: what they are asked, and what becomes of their answers."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, cast

import pytest
from aiohttp import web

from gateway.agent.search.plugin import Search, Wanted, opened
from gateway.agent.search.results import WebSearchTool
from gateway.agent.tools.base import ToolContext
from gateway.agent.tools.web_fetch import WebSearchSettings
from gateway.runtime.clock import Clock, SystemClock
from gateway.runtime.errors import ConfigError, ToolError
from tests.emulators.search import SearchServer, brave_error, tavily_error
from tests.support.tools import called

KEY = "search-key-0123456789"
KINDS = ("searxng", "brave", "tavily")


class Hasty(SystemClock):
    """Sleeps for no time, and writes down for how long it should have."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def search_of(server: SearchServer, *, key: str = KEY, clock: Clock | None = None, seconds: float = 15.0) -> Search:
    values = {"provider": server.kind, "base_url": server.url, "api_key": key, "timeout": seconds}
    return opened(WebSearchSettings.model_validate(values), clock or SystemClock())[1]


def context() -> ToolContext:
    parts = ("session", "recall", "around", "unindexed", "files", "memory", "reminders")
    return ToolContext(clock=SystemClock(), **dict.fromkeys(parts, cast(Any, None)))


async def asked(server: SearchServer, **arguments: Any) -> str:
    tool = WebSearchTool(search_of(server), lambda text: text.replace(KEY, "[secret]"), most=10, timeout=15.0)
    return str(await called(tool, context(), {"query": "rye bread", **arguments}))


async def refused(server: SearchServer, *answers: Any, **how: Any) -> str:
    """The sentence that the model is told."""
    server.answers += answers
    with pytest.raises(ToolError) as raised:
        await search_of(server, **how).find(Wanted(query="rye", most=10))
    return str(raised.value)


@pytest.mark.parametrize("kind", KINDS)
async def test_pages_are_found(kind: Any) -> None:
    async with SearchServer(kind, api_key=KEY) as server:
        text = await asked(server)
        assert "[1] Sourdough & rye" in text
        assert "https://bread.example/rye\nA starter wants a week." in text
        assert "https://ovens.example/how?a=1&b=%282%29" in text
        assert ("(2026-11-20)" in text) is (kind != "tavily")
        assert server.violations == []


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("searxng", {"q": "rye bread site:bread.example", "format": "json", "time_range": "week"}),
        (
            "brave",
            {
                "q": "rye bread site:bread.example", "count": "10", "freshness": "pw", "text_decorations": "false",
                "result_filter": "web",
            },
        ),
        (
            "tavily",
            {"query": "rye bread", "max_results": 10, "time_range": "week", "include_domains": ["bread.example"]},
        ),
    ],
)  # fmt: skip
async def test_each_is_asked_in_its_own_words(kind: Any, wanted: dict[str, Any]) -> None:
    async with SearchServer(kind, api_key=KEY) as server:
        await asked(server, recency="week", site="https://www.bread.example/rye?x=1")
        for recency in ("day", "month", "year"):
            await asked(server, recency=recency)
        assert server.asked[0] == wanted
        assert server.violations == []


@pytest.mark.parametrize("kind", KINDS)
async def test_a_long_query_fits_and_holds_no_secret(kind: Any) -> None:
    async with SearchServer(kind, api_key=KEY) as server:
        assert "[1]" in await asked(server, query=f"an emoji 🎈 {KEY} " + "word " * 5_000, site="a.example")
        assert KEY not in json.dumps(server.asked)
        with pytest.raises(ToolError, match="in the middle of a character"):
            await asked(server, query="half \ud83d an emoji")
        with pytest.raises(ToolError, match="Say in `query`"):
            await asked(server, query=" \n")


@pytest.mark.parametrize("kind", KINDS)
async def test_nothing_found_is_no_error(kind: Any) -> None:
    async with SearchServer(kind, api_key=KEY) as server:
        server.found = []
        assert await asked(server) == "Nothing was found. Other or fewer words may find something."


HTML = "<!doctype html><title>Welcome to nginx!</title>"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (web.Response(text=HTML, content_type="text/html"), "must correct tools.search.base_url"),
        (web.Response(text=""), "must correct tools.search.base_url"),
        (web.Response(text="[" * 100_000), "must correct tools.search.base_url"),
        (web.json_response([]), "must correct tools.search.base_url"),
        (web.json_response({"results": "none", "web": 5}), "must correct tools.search.base_url"),
        (web.json_response({"results": {"a": 1}, "web": {"results": "x"}}), "must correct tools.search.base_url"),
        (web.Response(body=b" " * 3_000_000), "must correct tools.search.base_url"),
        (web.Response(status=402, text="{}"), "is used up"),
        (web.Response(status=404, text=HTML), "(404)"),
        (web.Response(status=301, headers={"Location": "https://elsewhere.example/"}), "(301)"),
        (web.Response(status=400, text="{}"), "does not accept this search (400)"),
        (web.Response(status=503, text=HTML), "a problem (503)"),
    ],
)  # fmt: skip
async def test_what_is_no_answer_is_one_sentence(kind: Any, answer: Any, said: str) -> None:
    async def made(request: web.Request) -> web.Response:
        return web.Response(status=answer.status, body=answer.body, headers=answer.headers)

    async with SearchServer(kind, api_key=KEY) as server:
        told = await refused(server, made)
        assert said in told
        assert told.count(". ") == 0
        assert KEY not in told
        assert "nginx" not in told


ROWS = [
    None, "x", 5, [], {}, {"title": 5, "url": ["https://a.example/"], "content": {}},
    {"title": None, "url": "javascript:alert(1)", "content": "x", "description": "x"},
    {"title": "x", "url": "https://anna:secret@a.example/", "content": "x", "description": "x"},
    *({"title": f"Page {n}", "url": f"https://a.example/{n}", "description": 1} for n in range(5_000)),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
async def test_rows_of_any_kind_are_read_as_far_as_they_are_pages(kind: Any) -> None:
    async def made(request: web.Request) -> web.Response:
        rows = [each if not isinstance(each, dict) else {**each, "content": "y" * 100} for each in ROWS]
        return web.json_response({"results": rows, "web": {"results": rows}, "unresponsive_engines": 5})

    async with SearchServer(kind, api_key=KEY) as server:
        server.answers.append(made)
        text = await asked(server)
        assert "[10] Page 9" in text
        assert "[11]" not in text
        assert "secret" not in text
        assert "javascript" not in text
        assert len(text) < 5_000


async def test_keys_that_are_refused_are_told() -> None:
    for kind in KINDS:
        async with SearchServer(kind, api_key=KEY) as server:
            assert "refused the key" in await refused(server, key="sk-wrong-0123456789")


async def test_searxng_without_json_says_how_it_is_switched_on() -> None:
    async with SearchServer("searxng", json=False) as server:
        assert "add `json` to search.formats in its settings.yml" in await refused(server)
        server.json = True
        assert "server.limiter" in await refused(server, web.Response(status=429, text="Too Many Requests"))
        server.found, server.silent = [], [["google", "Suspended: too many requests"], ["brave", "timeout"]]
        assert "found nothing, and google, brave did not answer" in await refused(server)


async def test_what_is_used_up_is_told_apart_from_too_often() -> None:
    async with SearchServer("brave", api_key=KEY) as server:
        over = brave_error(429, "QUOTA_LIMITED", "Request quota limit exceeded for plan.", Retry_After="1")
        assert "is used up" in await refused(server, over)
        often = brave_error(429, "RATE_LIMITED", "Request rate limit exceeded for plan.", Retry_After="90")
        assert "try again in 90 seconds" in await refused(server, often)
        assert "a little later" in await refused(server, brave_error(429, "RATE_LIMITED", "Too fast."))
    async with SearchServer("tavily", api_key=KEY) as server:
        for status in (432, 433):
            assert "is used up" in await refused(
                server, tavily_error(status, "This request exceeds your plan's limit.")
            )


async def test_a_short_pause_between_two_searches_is_kept() -> None:
    clock = Hasty()
    async with SearchServer("brave", api_key=KEY) as server:
        server.answers += [brave_error(429, "RATE_LIMITED", "One a second.", Retry_After="1") for _ in range(2)]
        assert len(await search_of(server, clock=clock).find(Wanted(query="rye", most=10))) == 2
        assert clock.slept == [1.0, 1.0]
        server.answers += [brave_error(429, "RATE_LIMITED", "One a second.", Retry_After="0") for _ in range(9)]
        assert "gets too many requests" in await refused(server, clock=clock)
        assert clock.slept == [1.0] * 4


async def test_an_answer_without_an_end_is_ended() -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" " * 65_536)

    async def silent(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async with SearchServer("tavily", api_key=KEY) as server:
        assert "must correct tools.search.base_url" in await refused(server, endless)
        assert "did not answer at http://127.0.0.1" in await refused(server, silent, seconds=0.2)
        nowhere = SearchServer("brave")
        nowhere.url = "http://127.0.0.1:1"
        assert "did not answer at http://127.0.0.1:1: try again later" in await refused(nowhere)


async def test_two_searches_of_one_step_share_no_number() -> None:
    async with SearchServer("tavily", api_key=KEY) as server:
        tool, shared = WebSearchTool(search_of(server), str, most=10, timeout=15.0), context()
        texts = await asyncio.gather(*(called(tool, shared, {"query": word}) for word in ("rye", "wheat")))
        assert sorted(f"[{n}] Sourdough" in str(text) for n in (1, 3) for text in texts) == [False, False, True, True]
        assert shared.sources == 4


class Library(ModuleType):
    """`ddgs`, as far as it is used."""

    def __init__(self) -> None:
        super().__init__("ddgs")
        self.asked: list[dict[str, Any]] = []
        self.fails = ""
        library, failure = self, type("DDGSException", (Exception,), {})

        class DDGS:
            def __init__(self, timeout: int) -> None:
                assert timeout > 0

            def text(self, query: str, **how: Any) -> Sequence[dict[str, Any]]:
                library.asked.append({"query": query, **how})
                if library.fails:
                    raise failure(library.fails)
                return [{"title": "Rye", "href": "https://bread.example/rye", "body": "A starter."}, {"title": 5}]

        self.DDGS = DDGS
        self.exceptions = ModuleType("ddgs.exceptions")
        self.exceptions.DDGSException = failure  # type: ignore[attr-defined]


async def test_without_a_key_a_library_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = WebSearchSettings(provider="ddgs")
    monkeypatch.setattr("gateway.agent.search.servers.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="Run `pip install ddgs`"):
        opened(settings, SystemClock())
    library = Library()
    monkeypatch.setattr("gateway.agent.search.servers.find_spec", lambda name: object())
    monkeypatch.setitem(sys.modules, "ddgs", library)
    monkeypatch.setitem(sys.modules, "ddgs.exceptions", library.exceptions)
    search = opened(settings, SystemClock())[1]
    wanted = Wanted(query="rye", most=10, recency="week", site="bread.example")
    assert [each.address for each in await search.find(wanted)] == ["https://bread.example/rye", ""]
    assert library.asked == [{"query": "rye site:bread.example", "timelimit": "w", "max_results": 10}]
    library.fails = "No results found."
    assert await search.find(wanted) == []
    library.fails = "202 Ratelimit"
    with pytest.raises(ToolError, match="have a search with a key set up"):
        await search.find(wanted)


def test_the_library_is_as_it_is_used() -> None:
    ddgs = pytest.importorskip("ddgs")
    assert callable(ddgs.DDGS(timeout=5).text)
    assert issubclass(__import__("ddgs.exceptions", fromlist=["x"]).DDGSException, Exception)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"provider": "gogle"},
            "tools.search.provider has no such name: 'gogle'; there are searxng, brave, tavily, ddgs",
        ),
        ({"provider": "searxng"}, "tools.search.base_url is needed by searxng"),
        ({"provider": "brave"}, "tools.search.api_key is needed by brave: set the variable BRAVE_API_KEY"),
    ],
)
def test_settings_that_cannot_work_are_told(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        opened(WebSearchSettings.model_validate(given), SystemClock())
    assert said in str(raised.value.problems)
