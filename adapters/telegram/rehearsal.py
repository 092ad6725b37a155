"""A message as Telegram would be sent it, for people who have no bot yet. It asks nobody."""

from __future__ import annotations

from typing import Final

from adapters.telegram.characters import LONGEST, units
from adapters.telegram.formatting import Rendered, render
from adapters.telegram.limits import LIMITS
from gateway.delivery.markdown.tables import without_columns
from gateway.domain.chat import OutboundKind
from gateway.domain.platform import Bubble, Mark, Stage


def bubble(part: str, kind: OutboundKind) -> Bubble:
    """One message. What is no reply and no remark is no Markdown."""
    if kind in ("reply", "remark"):
        return _bubble(render(part))
    return _bubble(Rendered(text=without_columns(part) if kind == "command" else part, entities=()))


def _bubble(rendered: Rendered) -> Bubble:
    sent = rendered.text.encode("utf-16-le", "surrogatepass")

    def at(unit: int) -> int:
        """The place of a UTF-16 unit in code points."""
        return len(sent[: 2 * unit].decode("utf-16-le", "replace"))

    marks = tuple(
        Mark(start=at(each.offset), end=at(each.offset + each.length), kind=each.type, target=each.url or "")
        for each in rendered.entities
    )
    return Bubble(text=rendered.text, marks=marks, units=units(rendered.text), most=LONGEST)


STAGE: Final = Stage(limits=LIMITS, bubble=bubble)
