"""A tool and a slash command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.agent.tools.base import ToolContext
from gateway.commands.base import Answer, Command, CommandContext


class Feathers:
    """Counts feathers."""

    name = "feathers"
    description = "Says how many feathers the parrot has."
    parameters: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
    read_only = True
    idempotent = True
    timeout = 5.0

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """Return the number."""
        return "3,000"


async def wave(ctx: CommandContext) -> Answer:
    """Wave back."""
    return Answer(text="The parrot waves back.")


TOOLS = (lambda _: Feathers(),)
COMMANDS = (Command(name="wave", group="About", help="wave to the parrot", run=wave),)
