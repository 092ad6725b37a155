"""Talks a trace through with a real gateway: its store, its turns, its engine, under virtual time.

Time passes in two ways only: between two turns, as long as the person thinks, and while a turn waits for a
summary. So what a turn waits is what it would have waited with a summariser that takes that long and a
model and tools that take no time. Nothing depends on how fast the machine is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.agent.tools.base import ToolContext
from gateway.domain.chat import Outbound
from gateway.runtime.tokens import TokenCounter
from tests.bench.context.bulk import SHAPES
from tests.bench.context.model import ScriptedModel
from tests.bench.context.observing import Observer, Record
from tests.bench.context.policies import WINDOW, Policy
from tests.bench.context.summarisers import summariser
from tests.bench.context.trace import Trace
from tests.support.fakes import ManualClock, SequentialIds
from tests.support.gateway import Live, running

_LOOK_AGAIN = 0.0005  # real seconds, while the store's thread works
_PATIENCE = 60.0  # real seconds for one turn
_STEP = 10.0  # seconds that pass at once
_LONG = 600.0  # seconds; after these, as many pass at once: whatever was prepared is done


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedTool:
    """Returns what the trace says."""

    name: str
    argument: str
    results: Mapping[tuple[str, str], str]
    read_only: bool = True
    idempotent: bool = True
    timeout: float = 600.0

    @property
    def description(self) -> str:
        """For the model."""
        return f"Looks at a {self.argument}."

    @property
    def parameters(self) -> Mapping[str, Any]:
        """One text."""
        return {"type": "object", "properties": {self.argument: {"type": "string"}}, "required": [self.argument]}

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """The result that belongs to these arguments."""
        return self.results[(self.name, str(arguments[self.argument]))]


async def replay(
    trace: Trace, policy: Policy, written_by: str, folder: Path, counter: TokenCounter, *, window: int = WINDOW
) -> Record:
    """Talk `trace` through under `policy`; what was seen. `written_by`: the name of a summariser."""
    clock = ManualClock()
    observer = Observer(trace, counter)
    model = ScriptedModel(summariser(written_by, trace, counter), observer, clock, counter)
    tools = [ScriptedTool(name=name, argument=argument, results=trace.results) for name, argument, _ in SHAPES]
    config = policy.config(folder, window)
    async with running(
        folder, config=config, model=model, clock=clock, ids=SequentialIds(), engine=policy.engine, tools=tools
    ) as live:
        player = Player(live, model, clock)
        for number, pin in enumerate(trace.pins):
            await player.say(f"/pin {pin}", event=f"p{number}")
        for turn in trace.turns:
            await player.pause(turn.pause)
            model.begin(turn)
            start = clock.monotonic()
            answer = await player.say(turn.said, event=f"e{turn.number}")
            observer.end(answered=answer.kind == "reply", waited=clock.monotonic() - start)
        await count_compactions(live, observer.record)
    return observer.record


class Player:
    """Speaks for the person, and lets time pass where somebody waits for it."""

    def __init__(self, live: Live, model: ScriptedModel, clock: ManualClock) -> None:
        self._live = live
        self._model = model
        self._clock = clock

    async def say(self, text: str, *, event: str) -> Outbound:
        """Say something; its answer."""
        live = self._live
        await live.tell(text, event=event)
        async with asyncio.timeout(_PATIENCE):
            while (answer := live.adapter.answer_to(event)) is None:
                if self._waits_for_summary():
                    await self._clock.advance(1.0)
                else:
                    await asyncio.sleep(_LOOK_AGAIN)
        return answer

    def _waits_for_summary(self) -> bool:
        turns = self._live.gateway.running_turns._running.values()
        return bool(self._model.asleep) and any(turn.phase == "compacting" for turn in turns)

    async def pause(self, seconds: float) -> None:
        """The person thinks; what is prepared meanwhile gets as far as it does in this time. It begins when the answer
        has been shown, which on a busy machine takes a moment."""
        await self._live.quiet()
        await self._settled()
        began = seconds
        while seconds > 0:  # a thread that works must not meet a limit, because the clock cannot see it
            step = min(seconds, _STEP if began - seconds < _LONG else _LONG)
            await self._clock.advance(step)
            await self._settled()
            seconds -= step

    async def _settled(self) -> None:
        """Return when nothing is prepared, or what is waits for its summary."""
        async with asyncio.timeout(_PATIENCE):
            while True:
                await self._clock.settle()
                if self._model.asleep or not self._prepares():
                    return
                await asyncio.sleep(_LOOK_AGAIN)

    def _prepares(self) -> bool:
        return any(name.startswith("preparation ") for name in self._live.gateway.background._named)


async def count_compactions(live: Live, record: Record) -> None:
    """Count the compactions in the store, because the requests alone do not show them."""
    session = await live.tip()
    if session is None:
        return
    seen = {}
    for each in await live.store.lineage(session.id):
        seen |= {(one.parent_id, one.child_id): one for one in await live.store.compactions(each.id)}
    record.compactions = len(seen)
    record.fallbacks = sum(one.fallback for one in seen.values())
