"""Named points in the life of a message.

A crash test hands in a `Points` that kills the process at one of them, so every name here marks a
place where something is durable and the next thing is not yet. In production the time between two
points is measured: `TimedPoints`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, Literal, get_args

from gateway.runtime.clock import Clock
from gateway.runtime.metrics import Histogram

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
    "reminder.due",  # its time has come, nothing stored
    "reminder.fired",  # fired, nothing sent
    "voice.asked",  # an answer is to be said aloud, and is not stored
    "voice.bought",  # the sound is there and paid, and not kept
    "voice.emitted",  # its row is stored, its item has not ended
    "outbox.before_send",  # claimed for sending, not sent
    "outbox.after_send",  # sent, not marked
    "outbox.marked",  # marked as sent
]

POINTS: tuple[Point, ...] = get_args(Point)

_FIRST: Final = frozenset[Point](
    {"accept.before", "turn.claimed", "reminder.due", "outbox.before_send"}
)  # nothing leads to these

PHASES: Final = Histogram(
    name="phase_seconds", text="Time between two points of a task, by the later point.", labels=("point",)
)

# When the present task passed its last point, in monotonic seconds.
_passed_at: Final = ContextVar[float | None]("passed_at", default=None)


Points = Callable[[Point], None]
"""Called whenever a point is passed."""


def ignore_points(point: Point, /) -> None:
    """`Points` that do nothing."""


class TimedPoints:
    """`Points` that measure the time from one to the next in the same task, and then tell `points`."""

    def __init__(self, points: Points, clock: Clock) -> None:
        self._points = points
        self._clock = clock

    def __call__(self, point: Point, /) -> None:
        now, before = self._clock.monotonic(), _passed_at.get()
        _passed_at.set(now)
        if before is not None and point not in _FIRST:
            PHASES.observe(now - before, point)
        if self._points is not ignore_points:
            self._points(point)
