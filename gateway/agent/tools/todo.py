"""The session's to-do list, which survives compactions and restarts."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from gateway.agent.tools.base import ToolContext, schema
from gateway.domain.session import Todo, TodoStatus

_MOST_ITEMS = 50
_LONGEST_ITEM = 300
_MARKS: Final[Mapping[TodoStatus, str]] = MappingProxyType({"open": " ", "in_progress": ">", "done": "x"})


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
            "maxItems": _MOST_ITEMS,
            "items": {
                "type": ["object", "string"],
                "properties": {
                    "text": {"type": "string", "minLength": 1},
                    "status": {"type": "string", "enum": ["open", "in_progress", "done"]},
                },
                "required": ["text"],
                "additionalProperties": False,
            },
        }
    )
    read_only = False
    idempotent = True
    brings = ""
    timeout = 5.0

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        if "items" in arguments:
            context.todos = tuple(map(_item, arguments["items"]))
        return "\n".join(f"[{_MARKS[todo.status]}] {todo.text}" for todo in context.todos) or "The to-do list is empty."


def _item(entry: Mapping[str, Any] | str) -> Todo:
    plain: Mapping[str, Any] = {"text": entry} if isinstance(entry, str) else entry  # some models leave the object out
    return Todo(text=" ".join(plain["text"].split())[:_LONGEST_ITEM], status=plain.get("status", "open"))


TOOLS = (lambda _: TodoTool(),)
