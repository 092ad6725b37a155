"""Search in what was said before, compacted or not: nothing is ever out of reach."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from gateway.domain.message import text_of
from gateway.errors import ToolError
from gateway.store.base import Found
from gateway.tools.base import ToolContext

_MOST_RESULTS = 20
_EXCERPT = 600  # characters


class HistoryTool:
    """Finds original messages of this person's own conversations."""

    name = "search_history"
    description = (
        "Searches the original wording of earlier messages of this conversation and its predecessors, including "
        "everything that was summarised since. Use it before saying that you do not remember something."
    )
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "words": {"type": "string", "description": "Words that must all occur in the message."},
            "limit": {"type": "integer", "minimum": 1, "maximum": _MOST_RESULTS},
        },
        "required": ["words"],
        "additionalProperties": False,
    }
    read_only = True
    idempotent = True
    recalls = True
    timeout = 20.0

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """Up to `limit` excerpts, newest first."""
        words = arguments.get("words")
        limit = arguments.get("limit", 5)
        if not isinstance(words, str) or not words.strip():
            raise ToolError("`words` must be the text to look for.")
        if not isinstance(limit, int) or not 1 <= limit <= _MOST_RESULTS:
            raise ToolError(f"`limit` must be a number from 1 to {_MOST_RESULTS}.")
        found = await context.recall(words, limit)
        if not found:
            return f"Nothing was found for {words!r}."
        return "\n\n".join(render(hit) for hit in found)


def render(hit: Found) -> str:
    """Date, speaker and an excerpt of one hit."""
    day = datetime.fromtimestamp(hit.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    text = text_of(hit.message)
    excerpt = text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]} … ({len(text)} characters in all)"
    return f"{day}, {hit.message.get('role')} (session {hit.session_id}):\n{excerpt}"
