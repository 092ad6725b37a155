"""The remedy for a provider's "too long", decided in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gateway.runtime.errors import ContextOverflow, OutputCapTooLarge

MOST_ATTEMPTS = 3  # compactions for overflow in one turn
_SMALLEST_OUTPUT = 256  # tokens; an answer shorter than that helps nobody
_MARGIN = 64  # tokens left free of the room that the provider reports

NO_WAY_OUT = (
    "This conversation no longer fits into the model's window and could not be compressed any further. "
    "Send /compress to try again, or /new to start fresh; nothing that was said is lost."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """The action: `compact` the transcript (and adopt `limit`, if given), retry with lower `max_tokens`, or give up."""

    action: Literal["compact", "lower_output", "give_up"]
    limit: int | None = None
    max_tokens: int | None = None


def remedy(
    error: ContextOverflow | OutputCapTooLarge, *, attempts: int, context_length: int, max_tokens: int | None
) -> Remedy:
    """Return the remedy for `error` after `attempts` remedies in this turn. A limit is adopted only if the provider
    stated it and the known window is larger."""
    if attempts >= MOST_ATTEMPTS:
        return Remedy(action="give_up")
    if isinstance(error, ContextOverflow):
        smaller = error.limit is not None and 0 < error.limit < context_length
        return Remedy(action="compact", limit=error.limit if smaller else None)
    room = error.available - _MARGIN if error.available else (max_tokens or context_length // 4) // 2
    if room < _SMALLEST_OUTPUT:
        return Remedy(action="compact")
    return Remedy(action="lower_output", max_tokens=room)
