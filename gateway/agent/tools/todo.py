"""The session's to-do list, which survives compactions and restarts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.agent.tools.base import ToolContext, schema
from gateway.domain.session import Todo
from gateway.runtime.errors import ToolError

_MOST_ITEMS = 50
_LONGEST_ITEM = 300


class TodoTool:
    """Reads the list or replaces all of it, so that a repeated call changes nothing."""

    name = "todo"
    description = (
        "Keeps the to-do list of this conversation. Without `items` it shows the list; with `items` it replaces the "
        "whole list, so include every item that should stay. Use it for work of three steps or more."
    )
    parameters = schema(
        items={
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"text": {"type": "string"}, "status": {"type": "string", "enum": ["open", "done"]}},
                "required": ["text"],
                "additionalProperties": False,
            },
        }
    )
    read_only = False
    idempotent = True
    timeout = 5.0

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """The list as it is now, one line an item."""
        if arguments.get("items") is not None:
            context.todos = _items(arguments["items"])
        return render(context.todos)


def render(todos: tuple[Todo, ...]) -> str:
    """The list as text, one line an item."""
    if not todos:
        return "The to-do list is empty."
    return "\n".join(f"[{'x' if todo.status == 'done' else ' '}] {todo.text}" for todo in todos)


def _items(raw: object) -> tuple[Todo, ...]:
    if not isinstance(raw, list) or len(raw) > _MOST_ITEMS:
        raise ToolError(f"`items` must be a list of at most {_MOST_ITEMS} items.")
    return tuple(_item(entry) for entry in raw)


def _item(raw: object) -> Todo:
    entry = {"text": raw} if isinstance(raw, str) else raw
    if not isinstance(entry, dict) or not isinstance(entry.get("text"), str) or not entry["text"].strip():
        raise ToolError('Each item must look like {"text": "what to do", "status": "open" or "done"}.')
    status = entry.get("status", "open")
    if status not in ("open", "done"):
        raise ToolError(f"{status!r} is not a status; use open or done.")
    return Todo(text=" ".join(entry["text"].split())[:_LONGEST_ITEM], status="done" if status == "done" else "open")


TOOLS = (lambda _: TodoTool(),)
