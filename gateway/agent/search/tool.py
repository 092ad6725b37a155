"""Finds pages of the web."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from gateway.agent.search.plugin import Search, Wanted
from gateway.agent.search.results import last_number, shown
from gateway.agent.tools.base import ToolContext, schema
from gateway.agent.tools.web_fetch import BRINGS, SEARCH
from gateway.runtime.errors import ToolError

# Brave takes 400 characters and 50 words, Tavily 400 characters: with a host, these fit.
_LONGEST: Final = 300
_MOST_WORDS: Final = 45
_HOST: Final = re.compile(r"(?:https?://)?(?:www\.)?([\w.-]{1,90})")


class WebSearchTool(Struct, frozen=True):
    """Asks a search. `redact` takes secrets out of what is asked."""

    name = SEARCH
    description = "Finds web pages; site is a host."
    parameters = schema(
        "query",
        query={"type": "string"},
        recency={"type": "string", "enum": ["day", "week", "month", "year"]},
        site={"type": "string"},
    )
    read_only = True
    idempotent = True
    brings = BRINGS

    search: Search
    redact: Callable[[str], str]
    most: int
    timeout: float

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """The pages that were found, numbered on from those that the turn has already."""
        query = arguments["query"].encode("utf-8", "replace").decode()  # half an emoji could not be sent
        words = self.redact(query).split()[:_MOST_WORDS]
        if not words:
            raise ToolError("Say in `query` what is to be found.")
        host = _HOST.match(arguments.get("site", "").strip())
        wanted = Wanted(
            query=" ".join(words)[:_LONGEST],
            most=self.most,
            recency=arguments.get("recency", ""),
            site=host[1] if host else "",
        )
        hits = await self.search.find(wanted)
        before = max(context.sources, last_number(context.newest_first()))
        text, context.sources = shown(hits, wanted, before)
        return text
