"""The turns that run in this process, within reach of signals and of `/status`.

A `/stop` or an interrupting message leaves a durable signal in the store. The store tells the listener of every
process, and the process that runs the turn ends it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct, field

from gateway.agent.background import BackgroundCommands
from gateway.domain.chat import SessionKey, Source
from gateway.domain.deeds import deed_in_words
from gateway.domain.message import ToolCall
from gateway.store.records import SignalKind

Phase = Literal[
    "starting",
    "fetching files",
    "compacting",
    "thinking",
    "reasoning",
    "running tools",
    "waiting for your yes or no",
    "finishing",
]


_READ_AS: Final = {"compacting": "compressing", "reasoning": "thinking"}  # the words that people read for them


_READ: Final = 2_000  # characters of an argument: a line shows far fewer


def at_work(calls: Sequence[ToolCall], redact: Callable[[str], str]) -> list[str]:
    """What the tools of these calls do, in a person's words."""
    return [
        deed_in_words(call["function"]["name"], _given(call["function"]["arguments"], redact), over=False)
        for call in calls
    ]


def _given(arguments: str, redact: Callable[[str], str]) -> Mapping[str, Any]:
    """The arguments by name, without secrets: what is cut later could hold half of one."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(given, dict):
        return {}
    return {name: redact(each[:_READ]) if isinstance(each, str) else each for name, each in given.items()}


class RunningTurn(Struct, kw_only=True):
    """A turn as `/status` sees it, for the person of `source`. `end` is called at most once, with the reason. A turn
    that is not `interruptible` is ended by a `/stop` only, not by new messages."""

    key: SessionKey
    source: Source
    started_at: float
    alive_at: float  # monotonic: the last sign of life
    end: Callable[[SignalKind], None]
    phase: Phase = "starting"
    step: int = 0
    tools: tuple[str, ...] = ()
    ended_by: SignalKind | None = None
    interruptible: bool = True
    again_at: float = 0.0  # monotonic: when the model that did not answer is asked again

    @property
    def running(self) -> tuple[str, ...]:
        """The tools that run now."""
        return self.tools if self.phase == "running tools" else ()

    @property
    def doing(self) -> str:
        """The present phase, or what the tools do that run."""
        if word := _READ_AS.get(self.phase):
            return word
        return ", ".join(self.running) or self.phase

    def pause(self, now: float) -> float:
        """Seconds until the model is asked again; 0.0 if nobody waits for that."""
        return max(0.0, self.again_at - now) if self.phase == "thinking" else 0.0


class RunningTurns(Struct):
    """The running turns of this process, by key; and the commands of this machine that run in the `background`."""

    background: BackgroundCommands
    _running: dict[SessionKey, RunningTurn] = field(default_factory=dict)

    def enter(self, turn: RunningTurn) -> None:
        """List a turn that begins."""
        self._running[turn.key] = turn

    def leave(self, turn: RunningTurn) -> None:
        """Take a turn that is over off the list."""
        if self._running.get(turn.key) is turn:
            del self._running[turn.key]

    def of(self, key: SessionKey) -> RunningTurn | None:
        """Return the turn that runs for this key, if there is one."""
        return self._running.get(key)

    def for_person(self, platform: str, user: str) -> list[SessionKey]:
        """Return the keys of the turns that run for this person."""
        sources = ((key, turn.source) for key, turn in self._running.items())
        return [key for key, source in sources if (source.platform, source.user) == (platform, user)]

    def all(self) -> list[RunningTurn]:
        """Return the running turns."""
        return list(self._running.values())

    def count(self) -> int:
        """Return the number of running turns."""
        return len(self._running)

    def silent_since(self, now: float) -> float | None:
        """Return the moment since which the longest silent of the turns that wait for a model has had no sign of it;
        None: no turn waits for one."""
        thinking = [each for each in self._running.values() if each.phase == "thinking" and not each.pause(now)]
        return min((each.alive_at for each in thinking), default=None)

    def waits(self, key: SessionKey) -> bool:
        """Whether the key's turn waits for a person."""
        turn = self._running.get(key)
        return turn is not None and turn.phase == "waiting for your yes or no"

    def waiting(self) -> int:
        """Return the number of turns that wait for a person."""
        return sum(map(self.waits, self._running))

    def deliver(self, key: SessionKey, kind: SignalKind) -> None:
        """End the key's running turn, if it runs here; a second signal changes nothing."""
        turn = self._running.get(key)
        if turn is not None and turn.ended_by is None and (kind == "stop" or turn.interruptible):
            turn.ended_by = kind
            turn.end(kind)
