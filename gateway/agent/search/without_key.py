"""Searches without a key: the library ddgs (MIT) asks public search engines as a browser does.

They may refuse it at any time, so it is for trying things out, and for few people. The library is loaded when it is
first needed, and blocks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Final

from msgspec import Struct

from gateway.agent.search.plugin import Hit, SearchHost, Wanted
from gateway.runtime.errors import ConfigError, ToolError
from gateway.runtime.plugins import imported

_INSTALL: Final = "tools.search.provider: ddgs is a library that is not installed: pip install 'legato[search]'"
_NOTHING: Final = "No results found"  # the library raises that as it raises everything else
_REFUSED: Final = (
    "The search engines refused to answer or did not answer in time, as they often do to programs without a key: try "
    "again later, or have a search with a key set up (tools.search)."
)


class WithoutKey(Struct, frozen=True):
    """`Search` by the library."""

    host: SearchHost

    async def find(self, wanted: Wanted) -> Sequence[Hit]:
        """Ask in a thread, which may go on for a little when the time is over."""
        try:
            async with self.host.clock.limit(self.host.seconds):
                rows = await asyncio.to_thread(self._rows, wanted)
        except TimeoutError:
            raise ToolError(_REFUSED) from None
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
            raise ToolError(_REFUSED) from error
        return found


def ddgs(host: SearchHost) -> WithoutKey:
    """For the plug-in of this name. Raises ConfigError where the library is missing."""
    if find_spec("ddgs") is None:
        raise ConfigError([_INSTALL])
    return WithoutKey(host)
