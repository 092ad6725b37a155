"""Opens a topic or thread in the group where the conversation is, and names or closes the one that it is in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gateway.agent.tools.base import ToolContext, schema
from gateway.domain.chat import one_line
from gateway.runtime.errors import AdapterError, ToolError

_LONGEST: Final = 100  # characters: Discord takes so many, Telegram 128
_NOT_HERE: Final = "There are no topics here that could be opened or changed."
_NO_NAME: Final = "Give it a name."


class TopicTool:
    """After a crash a call is not repeated. A person allows each."""

    name = "topic"
    description = (
        "Opens a topic or thread in this group, or renames or closes the one that this conversation is in. `text`: the "
        "first message, which a post of a forum needs."
    )
    parameters = schema(
        "action",
        action={"enum": ["open", "rename", "close"]},
        name={"type": "string", "maxLength": _LONGEST},
        text={"type": "string", "maxLength": 2_000},
    )
    read_only = False
    idempotent = False
    brings = ""
    timeout = 30.0
    admins_only = False
    setting = ""

    def question(self, arguments: Mapping[str, Any]) -> str | None:
        """What is done, with the whole name and text."""
        action, name, text = arguments["action"], _name(arguments), one_line(arguments.get("text") or "", 2_000)
        if action == "close":
            return "Close this topic?"
        if not name:
            raise ToolError(_NO_NAME)
        told = f" It begins: “{text}”" if text and action == "open" else ""
        return f"Open the topic “{name}” here?{told}" if action == "open" else f"Rename this topic to “{name}”?"

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        topics, source, name = context.topics, context.source, _name(arguments)
        if topics is None or source is None:
            raise ToolError(_NOT_HERE)
        try:
            if arguments["action"] == "open":
                await topics.open_topic(source.address, name, arguments.get("text") or "")
                return f"The topic {name} is open. People open it themselves; there, you answer anyone who calls you."
            await topics.change_topic(source.address, name=name, closed=arguments["action"] == "close")
        except AdapterError as error:
            raise ToolError(f"The platform refused: {error}") from error
        return "Done."


def _name(arguments: Mapping[str, Any]) -> str:
    return one_line(arguments.get("name") or "", _LONGEST)
