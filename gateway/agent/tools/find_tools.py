"""Finds tools that have no room in the prompt."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Final

from gateway.agent.tools.base import ToolContext, schema
from gateway.agent.tools.offer import FIND

_MOST_FOUND: Final = 5
_MOST_NAMED: Final = 100
_WORD: Final = re.compile(r"[^\W_]+")
_LONGEST: Final = 200  # characters of a description
_IN_NAME: Final = 3  # a word of a tool's name is worth so many of its description


class FindTools:
    """Searches names and descriptions. The found tools are on offer from the next step on, for the rest of the
    session."""

    name = FIND
    description = (
        "There are more tools than are shown to you. Say in a few words what a tool should do; those that fit are "
        "found, and can be called from your next step on."
    )
    parameters = schema("words", words={"type": "string", "minLength": 1, "description": "Such as: create issue."})
    read_only = True
    idempotent = True
    brings = ""
    timeout = 5.0

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """The tools that fit best, which can be called now; without one, the names of all that are left."""
        left = {name: told for name, told in context.hidden.items() if name not in context.found}
        # In a thread, because hundreds of long descriptions take a tenth of a second.
        found = await asyncio.to_thread(best, arguments["words"], left)
        if not found:
            names = ", ".join([*left][:_MOST_NAMED])
            return f"Nothing fits. These tools can be found by their names: {names}" if left else "No tool is left."
        context.found = (*context.found, *found)
        lines = [f"{name}: {left[name][:_LONGEST]}" for name in found]
        return "\n".join(["Found; from your next step on you can call:", *lines])


def best(words: str, described: Mapping[str, str]) -> list[str]:
    """The names with most of the words in them or in their descriptions, best first."""
    wanted = _words(words)
    scores = {name: _score(wanted, _words(name), _words(text)) for name, text in described.items()}
    return sorted(filter(scores.get, scores), key=lambda name: -scores[name])[:_MOST_FOUND]


def _score(wanted: frozenset[str], name: frozenset[str], described: frozenset[str]) -> int:
    return _IN_NAME * len(wanted & name) + len(wanted & described - name)


def _words(text: str) -> frozenset[str]:
    """Words in one form, without the s of a plural."""
    found = map(str.casefold, _WORD.findall(text))
    return frozenset(word.removesuffix("s") if len(word) > 3 else word for word in found)


TOOLS = (lambda _: FindTools(),)
