"""What is Markdown in the outbox, and what is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import structlog

from gateway.delivery.markdown.characters import length
from gateway.delivery.markdown.fitting import Marked
from gateway.delivery.markdown.tables import without_columns
from gateway.domain.adapter import Limits
from gateway.domain.chat import Outbound, OutboundKind
from gateway.domain.platform import Bubble, Mark, Stage
from gateway.runtime.aside import RunsAside
from gateway.runtime.errors import TookTooLong

log = structlog.get_logger(__name__)

T = TypeVar("T")


def shown_part(part: str, kind: OutboundKind, shown: Callable[[str], T], plain: Callable[[str], T]) -> T:
    """A part of a text: a reply and a remark are Markdown, a command's answer may have columns."""
    if kind in ("reply", "remark"):
        return shown(part)
    return plain(without_columns(part) if kind == "command" else part)


def staged(
    limits: Limits, longest: int, shown: Callable[[str], Marked], plain: Callable[[str], str], as_markdown: bool = False
) -> Stage:
    """A platform without a bot, whose messages have at most `longest` UTF-16 units. `shown` and `plain` make a part of
    Markdown, and of any other text, what people see; its app may read that `as_markdown`."""

    def bubble(part: str, kind: OutboundKind) -> Bubble:
        text, spans = shown_part(part, kind, shown, lambda text: (plain(text), ()))
        marks = tuple(Mark(start=each.start, end=each.end, kind=each.kind, target=each.url or "") for each in spans)
        units = length(text, "utf16")
        return Bubble(text=text, marks=marks, as_markdown=as_markdown, units=units, most=longest)

    return Stage(limits=limits, bubble=bubble)


async def shown_of(outbound: Outbound, aside: RunsAside, shown: Callable[[str], T], plain: Callable[[str], T]) -> T:
    """A message's text, in the same way; what stands with a file is Markdown, too. It is shown as it was written where
    it would take too long to lay it out."""
    if outbound.kind not in ("reply", "remark") and outbound.file is None:
        return shown_part(outbound.text, outbound.kind, shown, plain)
    try:
        return await aside(shown, outbound.text)
    except TookTooLong:
        log.warning("shown_plainly", outbound=outbound.id, size=len(outbound.text))
        return plain(outbound.text)
