"""The tools on offer, by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gateway.agent.tools.base import Tool
from gateway.runtime.errors import ConfigError


class ToolRegistry:
    """A fixed set of tools; their schemas keep one order, so that prompts stay byte-identical."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise ConfigError([f"tools: two tools are named {tool.name!r}; rename or remove one"])
            self._tools[tool.name] = tool
        self.schemas: list[dict[str, Any]] = [_schema(tool) for tool in self._tools.values()]

    def get(self, name: str) -> Tool | None:
        """The tool of this name."""
        return self._tools.get(name)

    @property
    def names(self) -> list[str]:
        """All names, in the order of the schemas."""
        return list(self._tools)


def _schema(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}
