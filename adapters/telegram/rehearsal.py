"""A reply as Telegram would be sent it, for people who have no bot yet. It asks nobody."""

from __future__ import annotations

from adapters.telegram.characters import LONGEST, units
from adapters.telegram.formatting import Rendered, render, split
from gateway.domain.platform import Bubble, Mark


def bubbles(reply: str) -> list[Bubble]:
    """The messages that a reply becomes."""
    return [_bubble(render(part)) for part in split(reply)]


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
