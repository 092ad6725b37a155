"""The date and the time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gateway.agent.tools.base import ToolContext, schema
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
        zone = _zone(arguments.get("timezone", ""))
        moment = datetime.fromtimestamp(context.clock.now(), zone)
        return moment.strftime("%A, %Y-%m-%d %H:%M:%S ") + str(moment.tzname())


def _zone(name: str) -> tzinfo:
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ToolError(f"{name[:100]!r} is not a time zone; use an IANA name such as Europe/Vienna or UTC.") from None


TOOLS = (lambda _: ClockTool(),)
