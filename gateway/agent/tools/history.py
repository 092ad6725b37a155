"""Search in earlier messages, compacted or not: none is ever out of reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from gateway.agent.tools.base import ToolContext, schema
from gateway.domain.message import text_of
from gateway.runtime.errors import ToolError
from gateway.store.records import Found
from gateway.store.shared.text import passage

_MOST_RESULTS = 20
_EXCERPT = 600  # characters


class HistoryTool:
    """Finds original messages of this person's own conversations. `redact` is applied to results of tools."""

    name = "search_history"
    description = (
        "Searches the original wording of earlier messages of this conversation and its predecessors, including "
        "everything that was summarised since, and then of what tools returned. Use it before saying that you do "
        "not remember something."
    )
    parameters = schema(
        "words",
        words={"type": "string", "description": "Words that must all occur in the message."},
        limit={"type": "integer", "minimum": 1, "maximum": _MOST_RESULTS},
    )
    read_only = True
    idempotent = True
    recalls = True
    timeout = 20.0

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """Up to `limit` excerpts: people's and the model's words, newest first, then results of tools."""
        words = arguments.get("words")
        limit = arguments.get("limit", 5)
        if not isinstance(words, str) or not words.strip():
            raise ToolError("`words` must be the text to look for.")
        if not isinstance(limit, int) or not 1 <= limit <= _MOST_RESULTS:
            raise ToolError(f"`limit` must be a number from 1 to {_MOST_RESULTS}.")
        found = await context.recall(words, limit)
        if not found:
            return f"Nothing was found for {words!r}."
        return "\n\n".join(render(hit, words, self._redact) for hit in found)


def render(hit: Found, words: str, redact: Callable[[str], str]) -> str:
    """Date, speaker, session and the excerpt, for a model."""
    day = datetime.fromtimestamp(hit.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"{day}, {speaker_of(hit, {})} (session {hit.session_id}):\n{excerpt_of(hit, words, redact)}"


def speaker_of(hit: Found, speakers: Mapping[str, str]) -> str:
    """Who said what was found. `speakers` are the reader's names for the roles."""
    role = str(hit.message.get("role"))
    return "a tool's result" if role == "tool" else speakers.get(role, role)


def excerpt_of(hit: Found, words: str, redact: Callable[[str], str]) -> str:
    """A message or, of a long one, the passage around the words. A tool's result is redacted, because nobody in the
    chat was ever shown it."""
    text = text_of(hit.message)
    if hit.message.get("role") == "tool":
        text = redact(text)
    return text if len(text) <= _EXCERPT else _excerpt(text, words)


def _excerpt(text: str, words: str) -> str:
    part = passage(text, words, _EXCERPT)
    before, after = "" if text.startswith(part) else "… ", "" if text.endswith(part) else " …"
    return f"{before}{part}{after} ({len(text):,} characters in all)"


TOOLS = (lambda host: HistoryTool(host.redact),)
