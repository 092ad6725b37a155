"""Tools for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gateway.agent.tools.arguments import Arguments
from gateway.agent.tools.base import Result, Tool, ToolContext
from tests.support.model import Changing, Say


def fitting(tool: Tool, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments as the runtime hands them to a tool. Raises ToolError."""
    return Arguments(tool.name, tool.parameters).read(json.dumps(dict(arguments)))


async def called(tool: Tool, context: ToolContext, arguments: Mapping[str, Any]) -> str | Result:
    """Return a tool's answer to a call with these arguments. Raises ToolError."""
    return await tool.run(fitting(tool, arguments), context)


class Payment(Changing):
    """Pays, if somebody allows it. Small sums need no yes."""

    name = "pay"
    description = "Pays a sum."
    parameters: Mapping[str, Any] = {"type": "object", "properties": {"sum": {"type": "integer"}}}
    read_only = False
    idempotent = False
    admins_only = False
    setting = "tools.pay.allow"
    timeout = 5.0

    def __init__(self) -> None:
        super().__init__()
        self.paid: list[int] = []

    def question(self, arguments: Mapping[str, Any]) -> str | tuple[str, str] | None:
        """Ask from ten euros on."""
        return f"Pay {arguments['sum']} €?" if arguments["sum"] >= 10 else None

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """Pay."""
        self.paid.append(arguments["sum"])
        self.changed()
        return f"Paid {arguments['sum']} €."


def payments(*sums: int) -> Say:
    """The model wants to pay these sums, in one step."""
    return Say(calls=[("pay", json.dumps({"sum": each})) for each in sums])
