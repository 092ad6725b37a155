"""The date and the time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from gateway.agent.tools.base import ToolContext, schema
from gateway.domain.recurrence import zone_named
from gateway.runtime.errors import ToolError


class ClockTool:
    """Tells date and time, in any time zone."""

    name = "clock"
    description = "Tells the current date, weekday and time. Use it whenever the answer depends on now."
    parameters = schema(timezone={"type": "string", "description": "IANA name, e.g. Europe/Vienna. Default: UTC."})
    read_only = True
    idempotent = True
    brings = ""
    timeout = 5.0

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """One line such as `Saturday, 2026-11-21 04:37:00 UTC`."""
        name = arguments.get("timezone") or "UTC"
        if (zone := zone_named(name)) is None:
            raise ToolError(f"{name[:100]!r} is not a time zone; use an IANA name such as Europe/Vienna or UTC.")
        moment = datetime.fromtimestamp(context.clock.now(), zone)
        return moment.strftime("%A, %Y-%m-%d %H:%M:%S ") + str(moment.tzname())


TOOLS = (lambda _: ClockTool(),)
