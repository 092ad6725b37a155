"""Search in earlier messages, compacted or not: none is ever out of reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from gateway.agent.tools.base import ToolContext, schema
from gateway.domain.message import text_of
from gateway.runtime.errors import ToolError
from gateway.store.records import Found, Passage
from gateway.store.shared.text import passage as part_around

_MOST_RESULTS = 20
_EXCERPT = 600  # characters of a find
_BESIDE = 240  # characters of a message beside it


class HistoryTool:
    """Finds original messages of this person's own conversations. `redact` is applied to results of tools."""

    name = "search_history"
    description = (
        "Searches the original wording of earlier messages of this conversation and its predecessors, including "
        "everything that was summarised since, and then of what tools returned. Ask a question or give key words; "
        "words between quotation marks must stand in the message as they are. Use it before saying that you do "
        "not remember something."
    )
    parameters = schema(
        "words",
        words={"type": "string", "description": "A question or key words, in the words of the conversation."},
        limit={"type": "integer", "minimum": 1, "maximum": _MOST_RESULTS},
    )
    read_only = True
    idempotent = True
    recalls = True
    timeout = 20.0

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """Up to `limit` passages, best first: what was said, then results of tools."""
        words = arguments.get("words")
        limit = arguments.get("limit", 5)
        if not isinstance(words, str) or not words.strip():
            raise ToolError("`words` must be the question or the words to look for.")
        if not isinstance(limit, int) or not 1 <= limit <= _MOST_RESULTS:
            raise ToolError(f"`limit` must be a number from 1 to {_MOST_RESULTS}.")
        found = await context.recall(words, limit)
        if not found:
            return f"Nothing was found for {words!r}."
        return "\n\n".join(render(each, words, self._redact) for each in found)


def render(found: Passage, words: str, redact: Callable[[str], str]) -> str:
    """The date and the session, then each message with its speaker, for a model."""
    day = datetime.fromtimestamp(found.hit.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return "\n".join([f"{day} (session {found.hit.session_id}):", *lines_of(found, words, redact, {})])


def lines_of(found: Passage, words: str, redact: Callable[[str], str], speakers: Mapping[str, str]) -> list[str]:
    """Each message with its speaker. `speakers` are the reader's names for the roles."""
    return [
        f"{speaker_of(turn, speakers)}: {_excerpt(turn, words, redact, _EXCERPT if turn is found.hit else _BESIDE)}"
        for turn in found.turns
    ]


def speaker_of(hit: Found, speakers: Mapping[str, str]) -> str:
    """Who said what was found. `speakers` are the reader's names for the roles."""
    role = str(hit.message.get("role"))
    return "a tool's result" if role == "tool" else speakers.get(role, role)


def _excerpt(turn: Found, words: str, redact: Callable[[str], str], size: int) -> str:
    """A message or, of a long one, the part around the words. A tool's result is redacted, because nobody in the chat
    was ever shown it."""
    text = text_of(turn.message)
    if turn.message.get("role") == "tool":
        text = redact(text)
    if len(text) <= size:
        return text
    part = part_around(text, words, size)
    before, after = "" if text.startswith(part) else "… ", "" if text.endswith(part) else " …"
    return f"{before}{part}{after} ({len(text):,} characters in all)"


TOOLS = (lambda host: HistoryTool(host.redact),)
