"""Loopback servers with the searches of SearXNG, Brave and Tavily, as strict as the real ones about keys, parameters
and limits, by their documentation.

    async with SearchServer("brave", api_key="k") as server:
        settings = WebSearchSettings(provider="brave", base_url=server.url, api_key="k")

`server.found` are the pages that are found, as (title, address, text, date). What was asked is kept in `server.asked`,
and what was wrong with it in `server.violations`. `server.answers` are given first, one each, in the place of results:
a `web.StreamResponse`, or a function of the request.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, Self

from aiohttp import web

Kind = Literal["searxng", "brave", "tavily"]
Answer = web.StreamResponse | Callable[[web.Request], Awaitable[web.StreamResponse]]

FOUND: Final = (
    (
        "Sourdough &amp; rye",
        "https://bread.example/rye",
        "A <strong>starter</strong> wants a week.",
        "2026-11-20T08:00:00",
    ),
    ("How ovens work", "https://ovens.example/how?a=1&b=(2)", "Steam makes the crust.", ""),
)
_SEARXNG: Final = {"q", "format", "time_range", "categories", "engines", "language", "pageno", "safesearch"}
_BRAVE: Final = {"q", "count", "offset", "freshness", "text_decorations", "result_filter", "country", "search_lang"}
_TAVILY: Final = {"query", "max_results", "time_range", "include_domains", "exclude_domains", "search_depth", "topic"}
_RANGES: Final = (None, "day", "week", "month", "year")


class SearchServer:
    """The emulator. `json`: whether the settings of SearXNG allow that format."""

    def __init__(self, kind: Kind, *, api_key: str = "", json: bool = True, port: int = 0) -> None:
        self.kind = kind
        self.json = json
        self.found = list(FOUND)
        self.silent: list[list[str]] = []
        self.answers: list[Answer] = []
        self.asked: list[dict[str, Any]] = []
        self.violations: list[str] = []
        self.url = ""
        self._key = api_key
        self._port = port
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        if self.kind == "searxng":
            app.router.add_get("/search", self._searxng)
        elif self.kind == "brave":
            app.router.add_get("/res/v1/web/search", self._brave)
        else:
            app.router.add_post("/search", self._tavily)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _instead(self, request: web.Request, asked: dict[str, Any], known: set[str]) -> web.StreamResponse | None:
        self.asked.append(asked)
        self.violations += [f"{self.kind} knows no {name}" for name in asked.keys() - known]
        if not self.answers:
            return None
        answer = self.answers.pop(0)
        if isinstance(answer, web.StreamResponse):
            return answer
        made = answer(request)
        return await made if inspect.isawaitable(made) else made

    async def _searxng(self, request: web.Request) -> web.StreamResponse:
        asked = dict(request.query)
        if (instead := await self._instead(request, asked, _SEARXNG)) is not None:
            return instead
        if self._key and request.headers.get("Authorization") != f"Bearer {self._key}":
            return web.Response(status=401, text="<h1>401 Authorization Required</h1>", content_type="text/html")
        if asked.get("format") != "json" or not self.json:
            return web.Response(
                status=403, text="<!doctype html><title>403 Forbidden</title>", content_type="text/html"
            )
        if not asked.get("q") or asked.get("time_range") not in _RANGES:
            return web.json_response({"error": "Invalid settings"}, status=400)
        rows = [
            {
                "title": title,
                "url": url,
                "content": text,
                "publishedDate": date or None,
                "engine": "emulated",
                "score": 1.0,
            }
            for title, url, text, date in self.found
        ]
        more: dict[str, Any] = {"answers": [], "corrections": [], "infoboxes": [], "suggestions": []}
        told = {"query": asked["q"], "number_of_results": 0, "results": rows, "unresponsive_engines": self.silent}
        return web.json_response(told | more)

    async def _brave(self, request: web.Request) -> web.StreamResponse:
        asked = dict(request.query)
        if (instead := await self._instead(request, asked, _BRAVE)) is not None:
            return instead
        if request.headers.get("X-Subscription-Token") != self._key:
            return brave_error(422, "SUBSCRIPTION_TOKEN_INVALID", "The provided subscription token is invalid.")
        words, count = asked.get("q", ""), int(asked.get("count", 20))
        if not 1 <= len(words) <= 400 or len(words.split()) > 50 or not 1 <= count <= 20:
            return brave_error(422, "VALIDATION", "Unable to validate request parameter(s)")
        if asked.get("freshness", "pd") not in ("pd", "pw", "pm", "py"):
            return brave_error(422, "VALIDATION", "Unable to validate request parameter(s)")
        rows = [
            {"title": title, "url": url, "description": text, **({"page_age": date, "age": date} if date else {})}
            for title, url, text, date in self.found[:count]
        ]
        told: dict[str, Any] = {"type": "search", "query": {"original": words}}
        return web.json_response(told | ({"web": {"type": "search", "results": rows}} if rows else {}))

    async def _tavily(self, request: web.Request) -> web.StreamResponse:
        asked: dict[str, Any] = await request.json()
        if (instead := await self._instead(request, asked, _TAVILY)) is not None:
            return instead
        if request.headers.get("Authorization") != f"Bearer {self._key}":
            return tavily_error(401, "Unauthorized: missing or invalid API key.")
        if len(asked.get("query", "")) > 400:
            return tavily_error(400, "Query is too long. Max query length is 400 characters.")
        if (
            not asked.get("query")
            or not 0 <= asked.get("max_results", 5) <= 20
            or asked.get("time_range") not in _RANGES
        ):
            return tavily_error(400, "Invalid request.")
        rows = [
            {"title": title, "url": url, "content": text, "score": 0.9, "raw_content": None}
            for title, url, text, _ in self.found[: asked.get("max_results", 5)]
        ]
        told = {"query": asked["query"], "follow_up_questions": None, "answer": None, "images": [], "results": rows}
        return web.json_response(told | {"response_time": 0.5, "request_id": "r"})


def brave_error(status: int, code: str, detail: str, **headers: str) -> web.Response:
    """A refusal of Brave's."""
    error = {"id": "5d83", "code": code, "detail": detail, "status": status, "meta": {}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.json_response(
        {"type": "ErrorResponse", "error": error, "time": 1_700_000_000}, status=status, headers=named
    )


def tavily_error(status: int, detail: str) -> web.Response:
    """A refusal of Tavily's."""
    return web.json_response({"detail": {"error": detail}}, status=status)
