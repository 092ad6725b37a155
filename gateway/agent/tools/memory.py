"""The tool with which the model keeps facts beyond a conversation: about the person, and notes of its own."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from typing import Any, Final

from gateway.agent.memory.snapshot import day, flat
from gateway.agent.provenance import Kept
from gateway.agent.tools.base import ToolContext, schema
from gateway.domain.memory import LONGEST_FACT, Fact
from gateway.runtime.errors import ToolError

MOST_RESULTS: Final = 20
_LONGEST_WORDS: Final = 1_000

CHANGES: Final = ("add", "replace", "remove")
PROPERTIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "action": {"type": "string", "enum": [*CHANGES, "search"]},
    "about": {
        "type": "string",
        "enum": ["person", "notes"],
        "description": "Of add: a fact about the person (default), or a note of your own.",
    },
    "text": {
        "type": "string",
        "maxLength": LONGEST_FACT,
        "description": "Of add and replace: one short sentence that can be understood without the conversation.",
    },
    "fact": {
        "type": "string",
        "maxLength": _LONGEST_WORDS,
        "description": "Of replace and remove: words of the fact that is meant, enough to tell it from the others, "
        "or its number in /memory and in `search`, such as #3.",
    },
    "words": {"type": "string", "maxLength": _LONGEST_WORDS, "description": "Of search: what to look for."},
}


class MemoryTool:
    """Adds, replaces, removes and finds facts. A repeated call changes nothing more."""

    name = "memory"
    description = (
        "Keeps what should outlive this conversation. Save at once, unasked, what a person tells you of themselves "
        "for good, how they want things done, what they correct, and whatever they ask you to remember. Do not save "
        "what matters only today, what can be looked up, or credentials. When something changed, `replace` the old "
        "fact instead of adding another. What is remembered stands in your instructions when a conversation begins; "
        "`search` finds what had no room there."
    )
    parameters = schema("action", **PROPERTIES)
    read_only = False
    idempotent = True
    brings = ""
    recalls = True
    refers = True
    timeout = 20.0

    def kept(self, arguments: Mapping[str, Any]) -> Kept | None:
        action = arguments.get("action")
        text = arguments.get("text") if action in ("add", "replace") else None
        personal = action == "add" and arguments.get("about") != "notes"
        return Kept("fact about you" if personal else "note", text, personal) if isinstance(text, str) else None

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        memory = context.memory
        match arguments["action"]:
            case "add":
                return await memory.add(arguments.get("about", "person"), _given(arguments, "text"))
            case "replace":
                return await memory.replace(_given(arguments, "fact"), _given(arguments, "text"))
            case "remove":
                return await memory.remove(_given(arguments, "fact"))
        facts = await memory.search(arguments.get("words", ""), MOST_RESULTS)
        return "\n".join(map(fact_line, facts)) or "Nothing is remembered of that."


def _given(arguments: Mapping[str, Any], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str):
        raise ToolError(f"`{name}` is missing: action {arguments['action']} needs it.")
    return value


def fact_line(fact: Fact) -> str:
    """A fact with its number, its day and whose words it is, for a model."""
    said = f"{day(fact.said_at, UTC)}: {flat(fact.text)}"
    said += f" [the words of {flat(fact.origin)}]" if fact.origin else ""
    if fact.is_current:
        return f"- #{fact.number} {said}"
    return f"- {said} (no longer true since {day(fact.superseded_at or fact.made_at, UTC)})"


TOOLS = (lambda _: MemoryTool(),)
