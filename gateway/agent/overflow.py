"""The remedy for a provider's "too long" and for an answer without enough room, decided in one place."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from gateway.domain.usage import reserved_output
from gateway.providers.base import Completed
from gateway.runtime.errors import ContextOverflow, OutputCapTooLarge

MOST_ATTEMPTS = 3  # compactions for overflow in one turn
_SMALLEST_OUTPUT = 256  # tokens; an answer shorter than that helps nobody
_MARGIN = 64  # tokens left free of the room that the provider reports

MOST_EXTENSIONS = 2  # times that one answer is asked for again with more room
_EXTENSION = 4  # times the room

NO_WAY_OUT = (
    "This conversation no longer fits into the model's window and could not be compressed any further. "
    "Send /compress to try again, or /new to start fresh. I still keep every word."
)

SWITCHED_OFF = (
    "This conversation no longer fits into the model's window, and automatic compression is switched off here. Send "
    "/compress to make room now; the operator can set compression.enabled: true to have conversations compressed "
    "automatically."
)

TOO_LARGE_ALONE = (
    "Your message is too large for the model, and there is nothing before it to compress. Send less text at a time, or "
    "fewer and smaller files."
)

NO_ROOM = (
    "The model's output limit is too small for what it was about to do. Ask for the work in smaller parts, or the "
    "operator can raise model.max_output_tokens."
)


class Remedy(Struct, frozen=True, kw_only=True):
    """The action: `compact` the transcript (and adopt `limit`, if given), retry with lower `max_tokens`, or give up."""

    action: Literal["compact", "lower_output", "give_up"]
    limit: int | None = None
    max_tokens: int | None = None


def remedy(
    error: ContextOverflow | OutputCapTooLarge,
    *,
    attempts: int,
    context_length: int,
    max_tokens: int | None,
    prompt_tokens: int | None = None,
) -> Remedy:
    """Return the remedy for `error` after `attempts` remedies in this turn. A limit is adopted only if the provider
    stated it and the known window is larger. Where the limit counts the output, too, a prompt of `prompt_tokens` that
    fits it by itself is left as it is."""
    if attempts >= MOST_ATTEMPTS:
        return Remedy(action="give_up")
    if isinstance(error, ContextOverflow):
        if not error.lasting and error.limit and max_tokens and prompt_tokens is not None:
            room = error.limit - prompt_tokens - _MARGIN
            if _SMALLEST_OUTPUT <= room < max_tokens:
                return Remedy(action="lower_output", max_tokens=room)
        smaller = error.limit is not None and 0 < error.limit < context_length
        return Remedy(action="compact", limit=error.limit if smaller else None)
    room = error.available - _MARGIN if error.available else (max_tokens or context_length // 4) // 2
    if room < _SMALLEST_OUTPUT:
        return Remedy(action="compact")
    return Remedy(action="lower_output", max_tokens=room)


def more_output(completed: Completed, *, max_tokens: int | None, prompt_tokens: int, context_length: int) -> int | None:
    """Return the output cap for another try at an answer that its limit cut off; None if the window has no more room.

    `max_tokens`: the cap that the answer had, None for the provider's own.
    """
    used = max(max_tokens or 0, completed.usage.output_tokens if completed.usage else 0)
    used = used or reserved_output(context_length, None)
    room = min(_EXTENSION * used, context_length - prompt_tokens - _MARGIN)
    return room if room > used else None


def lacks_room(completed: Completed) -> bool:
    """Whether the output limit took the answer's purpose: a tool call, or all of its words (thoughts took them)."""
    said = completed.text.strip() or completed.tool_calls
    return completed.cut_call or (completed.stop == "length" and not said)
