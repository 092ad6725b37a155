"""Named points in the life of a message.

Passing one is a debug log line in production. A crash test hands in a `Points` that kills the
process at one of them, so every name here marks a place where something is durable and the next
thing is not yet.
"""

from __future__ import annotations

from typing import Literal, Protocol, get_args

Point = Literal[
    "accept.before",  # read, not stored
    "accept.after",  # stored, the platform not told
    "turn.claimed",  # the lane has it, nothing done
    "turn.session_opened",  # the session exists, no model call yet
    "turn.model_called",  # the model answered, nothing recorded
    "turn.tools_begun",  # intents stored, no tool has run
    "turn.tools_ran",  # tools ran, results not stored
    "turn.step_recorded",  # a step is stored, the next has not begun
    "compaction.summarised",  # the summary is made, the continuation is not
    "compaction.published",  # the continuation exists, the turn has not gone on
    "session.ended",  # a session is ended, its hook not called
    "session.hook_called",  # the hook returned, not yet noted
    "turn.finished",  # the turn is stored, nothing sent
    "outbox.before_send",  # claimed for sending, not sent
    "outbox.after_send",  # sent, not marked
    "outbox.marked",  # marked as sent
]

POINTS: tuple[Point, ...] = get_args(Point)


class Points(Protocol):
    """Called whenever a point is passed."""

    def __call__(self, point: Point, /) -> None: ...


def ignore_points(point: Point, /) -> None:
    """The `Points` of production: nothing happens."""
