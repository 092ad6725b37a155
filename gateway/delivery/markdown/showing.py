"""What is Markdown in the outbox, and what is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import structlog

from gateway.delivery.markdown.tables import without_columns
from gateway.domain.chat import Outbound, OutboundKind
from gateway.runtime.aside import RunsAside
from gateway.runtime.errors import TookTooLong

log = structlog.get_logger(__name__)

T = TypeVar("T")


def shown_part(part: str, kind: OutboundKind, shown: Callable[[str], T], plain: Callable[[str], T]) -> T:
    """A part of a text: a reply and a remark are Markdown, a command's answer may have columns."""
    if kind in ("reply", "remark"):
        return shown(part)
    return plain(without_columns(part) if kind == "command" else part)


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
