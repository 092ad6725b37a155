"""A reply as Discord would be sent it, for people who have no bot yet. It asks nobody."""

from __future__ import annotations

from adapters.discord.codec import LONGEST
from adapters.discord.formatting import shown, split
from gateway.delivery.markdown.characters import length
from gateway.domain.platform import Bubble


def bubbles(reply: str) -> list[Bubble]:
    """The messages that a reply becomes."""
    parts = map(shown, split(reply))
    return [Bubble(text=part, as_markdown=True, units=length(part, "utf16"), most=LONGEST) for part in parts]
