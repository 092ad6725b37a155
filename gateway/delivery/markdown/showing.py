"""What is Markdown in the outbox, and what is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import structlog
from msgspec import Struct

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
    limits: Limits,
    longest: int,
    shown: Callable[[str], Marked | str],
    plain: Callable[[str], str],
    as_markdown: bool = False,
) -> Stage:
    """A platform without a bot, whose messages have at most `longest` UTF-16 units. `shown` and `plain` make a part of
    Markdown, and of any other text, what people see; its app may read that `as_markdown`. Both are functions of a
    module, because another process calls them."""
    return Stage(
        limits=limits, bubble=_Bubbles(longest=longest, shown=shown, plain=plain, as_markdown=as_markdown).bubble
    )


class _Bubbles(Struct, frozen=True, kw_only=True):
    longest: int
    shown: Callable[[str], Marked | str]
    plain: Callable[[str], str]
    as_markdown: bool

    def bubble(self, part: str, kind: OutboundKind) -> Bubble:
        made = shown_part(part, kind, self.shown, self.plain)
        text, spans = (made, ()) if isinstance(made, str) else made
        marks = tuple(Mark(start=each.start, end=each.end, kind=each.kind, target=each.url or "") for each in spans)
        units = length(text, "utf16")
        return Bubble(text=text, marks=marks, as_markdown=self.as_markdown, units=units, most=self.longest)


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
