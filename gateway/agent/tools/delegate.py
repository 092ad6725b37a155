"""Hands a task to a helper: a model with a window of its own, of which only the answer comes back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field

from gateway.agent.delegation import Order
from gateway.agent.tools.base import ToolContext, ToolHost, schema
from gateway.agent.waking import refuse_more
from gateway.domain.settings import Flag, Section, SpendCap
from gateway.runtime.errors import ToolError

_HOUR: Final = 3_600.0


class DelegateSettings(Section):
    """The model can give a task to a helper (docs/helpers.md). Only the helper's answer takes room in the model's own
    window."""

    enabled: Flag = Field(True, description="give the model the tool")
    budget_usd: SpendCap | None = Field(0.5, description="what one helper may cost; null: no limit of its own")


class DelegateTool:
    """Hands on a task. A call that is repeated after a crash finds the helper that it began."""

    name = "delegate"
    description = (
        "A helper reads and searches in its own window; only its answer returns. It knows just what you write. In the "
        "background it wakes you."
    )
    parameters = schema(
        "task",
        task={"type": "string"},
        context={"type": "string"},
        tools={"type": "array", "items": {"type": "string"}},
        background={"type": "boolean"},
    )
    read_only = False
    idempotent = True
    beside = True
    refers = True  # what it calls is named after the message that calls it
    brings = "a helper"
    result_chars = 8_000  # some 2,000 tokens
    timeout = _HOUR  # the turn's own limits come first

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        if not arguments["task"].strip():
            raise ToolError("`task` is empty: say what the helper is to do.")
        if context.delegate is None:
            raise ToolError("There are no helpers here; do it yourself.")
        if arguments.get("background"):
            refuse_more(context.newest_first())
        return await context.delegate(
            Order(
                task=arguments["task"],
                context=arguments.get("context", ""),
                tools=tuple(arguments.get("tools", ())),
                background=arguments.get("background", False),
            )
        )


def _tool(host: ToolHost) -> DelegateTool | None:
    return DelegateTool() if host.settings(DelegateSettings).enabled else None


TOOLS = (_tool,)
