"""A message as Discord would be sent it, for people who have no bot yet. It asks nobody."""

from __future__ import annotations

from typing import Final

from adapters.discord.codec import LONGEST
from adapters.discord.formatting import plain, shown
from adapters.discord.limits import LIMITS
from gateway.delivery.markdown.characters import length
from gateway.delivery.markdown.tables import without_columns
from gateway.domain.chat import OutboundKind
from gateway.domain.platform import Bubble, Stage


def bubble(part: str, kind: OutboundKind) -> Bubble:
    """One message. What is no reply and no remark is no Markdown."""
    as_written = without_columns(part) if kind == "command" else part
    text = shown(part) if kind in ("reply", "remark") else plain(as_written)
    return Bubble(text=text, as_markdown=True, units=length(text, "utf16"), most=LONGEST)


STAGE: Final = Stage(limits=LIMITS, bubble=bubble)
