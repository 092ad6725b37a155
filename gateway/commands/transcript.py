"""Where exchanges begin in a transcript."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.domain.message import Message, is_request, note_of


def last_requests(messages: Sequence[Message], count: int) -> list[int]:
    """Positions of the last `count` things a person said, in order; a request that a summary was
    merged into is not among them, because cutting there would cut the summary."""
    found: list[int] = []
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if is_request(message) and not note_of(message).get("merged"):
            found.append(position)
            if len(found) == count:
                break
    return found[::-1]
