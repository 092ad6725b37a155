"""The parts that both laboratories give the program: tools and an engine that leave a trace, and its configuration."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final, Protocol

from gateway.agent.tools.base import ToolContext
from gateway.app.config import Config
from gateway.context.compressor import Compressor
from gateway.runtime import points
from gateway.runtime.clock import SystemClock
from gateway.runtime.points import Point
from gateway.runtime.redaction import Redactor
from gateway.runtime.tokens import TokenCounter
from tests.chaos.answers import DONE, NOTED

_TOKEN: Final = {"type": "object", "properties": {"token": {"type": "string"}}, "required": ["token"]}


@dataclass(frozen=True, slots=True)
class Record:
    """A file that outlives the process: a line is in it, whole, once `add` returns. SIGKILL takes
    nothing from the kernel, so there is no need to wait for the disk."""

    path: Path
    number: int

    def add(self, *words: str) -> None:
        """Append one line: the process's number, then the words."""
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(fd, (" ".join([str(self.number), *words]) + "\n").encode())
        finally:
            os.close(fd)


_SUBJECTS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "outbox.before_send": lambda scope: str(scope["row"].id),
    "outbox.after_send": lambda scope: str(scope["row"].id),
    "outbox.marked": lambda scope: str(scope["row"].id),
    "turn.claimed": lambda scope: str(scope["item"].inbound.event_id),
    "turn.finished": lambda scope: str(scope["item"].inbound.event_id),
}


def passing() -> Mapping[str, Any]:
    """The local variables of the function that passes the present point, which a `Points` is not told. Between that
    function and the caller stand the frames of the laboratory and of what measures points."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals["__name__"]
        if module.startswith("gateway.") and module != points.__name__:
            return frame.f_locals
        frame = frame.f_back
    raise AssertionError("no function of the gateway passes this point")


def subject(point: Point) -> tuple[str, ...]:
    """The row or the event that the present point is about, if any."""
    find = _SUBJECTS.get(point)
    return () if find is None else (find(passing()),)


class Told:
    """A tool that writes its token to a file: `effect` is not idempotent, `note` says that it is."""

    parameters: Mapping[str, Any] = _TOKEN
    read_only = False
    timeout = 10.0

    def __init__(self, name: str, says: str, record: Record, *, idempotent: bool) -> None:
        self.name = name
        self.description = f"Makes the {name} of a token."
        self.idempotent = idempotent
        self._says = says
        self._record = record

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """Leave a trace that nothing can undo."""
        token = str(arguments["token"])
        self._record.add(token)
        return f"{self._says} {token}"


def tools(folder: Path, number: int) -> list[Told]:
    """Return the tools of a process, with their records in the run's folder."""
    return [
        Told("effect", DONE, Record(folder / "effects", number), idempotent=False),
        Told("note", NOTED, Record(folder / "notes", number), idempotent=True),
    ]


class Entries(Protocol):
    """The place of entries with several words."""

    def add(self, *words: str) -> None:
        """Keep one."""


class RecordingEngine(Compressor):
    """The default engine, its hook's calls kept."""

    def __init__(self, config: Config, record: Record, trace: Entries) -> None:
        super().__init__(config.compression, counter=TokenCounter(), clock=SystemClock(), redact=Redactor(()))
        self._record = record
        self._trace = trace

    def on_session_end(self, session_id: str, messages: Any) -> None:
        """Keep that it was called."""
        self._record.add(session_id)
        self._trace.add("hook", session_id)


def configuration(*, number: int, model: str, window: int, store: str, sessions: Mapping[str, str]) -> Config:
    """A window small enough to be condensed, and everything else as it comes. The model learns the
    process's number from the key it is asked with."""
    return Config.model_validate(
        {
            "model": {
                "provider": "openai",
                "name": "test-model",
                "base_url": model,
                "api_key": f"process-{number}",
                "context_length": window,
                "max_output_tokens": 600,
            },
            "compression": {
                "min_threshold_tokens": 1_000,
                "protect_first_n": 1,
                "protect_last_n": 2,
                "background": False,
            },
            "sessions": dict(sessions),
            "access": {"allow": ["socket:*", "console:*"]},
            "store": {"url": store},
            # Few enough for such a window: one that is not shown at first would be looked for.
            "tools": {"offered": {"*": ["clock", "effect", "memory", "note"]}},
        }
    )
