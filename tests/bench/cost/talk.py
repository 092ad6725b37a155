"""One conversation, talked through at one rhythm and under one way to keep it in its window."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Final

from gateway.app.config import Config
from gateway.context.prompts import unframed
from gateway.domain.message import text_of
from gateway.domain.usage import CanonicalUsage
from gateway.providers.base import Completed, ModelEvent, ModelRequest, ModelSpec, Prices
from gateway.providers.offline.model import is_summary_request
from gateway.runtime.clock import Clock
from gateway.runtime.tokens import TokenCounter
from tests.bench.context import bulk
from tests.bench.context.model import ScriptedModel
from tests.bench.context.observing import Observer, Record
from tests.bench.context.replay import Player, ScriptedTool, count_compactions
from tests.bench.context.shown import Said, Shown, read, sections
from tests.bench.context.summarisers import Summariser, summariser
from tests.bench.context.trace import Trace, Use, write
from tests.bench.cost.cache import PromptCache, unmarked
from tests.bench.cost.ways import Way
from tests.support.fakes import ManualClock, SequentialIds
from tests.support.gateway import running

RHYTHMS: Final = {"seconds": (5, 90), "minutes": (120, 1_200), "hours": (3_600, 36_000)}  # seconds between two turns
_SIZE: Final = re.compile(r"at most (\d+) tokens|Target ~?(\d+) tokens")
_TURNS: Final = re.compile(r"^\[(USER|ASSISTANT|TOOL RESULT)\b[^\]\n]*\]:? ?", re.MULTILINE)


@dataclass(slots=True)
class Bill:
    """What the calls of a conversation used and cost. `passes`: tokens of each request for notes."""

    turns: CanonicalUsage = field(default_factory=lambda: CanonicalUsage(input_tokens=0, output_tokens=0))
    notes: CanonicalUsage = field(default_factory=lambda: CanonicalUsage(input_tokens=0, output_tokens=0))
    dollars: float = 0.0
    dollars_of_notes: float = 0.0
    prompts: list[int] = field(default_factory=list)

    @property
    def cached(self) -> float:
        """The share of all prompt tokens that was read from the cache."""
        whole = self.turns + self.notes
        return whole.cache_read_tokens / max(1, whole.prompt_tokens)


class PricedModel(ScriptedModel):
    """Says what the trace says, and is paid for it."""

    def __init__(
        self, summariser: Summariser, observer: Observer, clock: Clock, counter: TokenCounter, prices: Prices
    ) -> None:
        super().__init__(summariser, observer, clock, counter)
        self.bill = Bill()
        self._cache = PromptCache(lru_cache(maxsize=16_384)(counter.text))
        self._prices = prices

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Answer, with the usage that the vendor would report."""
        for_notes = not request.tools or is_summary_request(request.messages)
        usage = self._cache.meet(request, self._clock.now())
        bare = [unmarked(message) for message in request.messages]
        if for_notes:
            shown = self._shown(request, bare)
            self.asleep += 1
            try:
                await self._clock.sleep(20.0)
            finally:
                self.asleep -= 1
            text = self._summariser(shown).text
            yield self._paid(spec, Completed(text=text, stop="stop"), usage, notes=True)
            return
        async for event in super().stream(spec, replace_messages(request, bare)):
            yield self._paid(spec, event, usage) if isinstance(event, Completed) else event

    def _paid(self, spec: ModelSpec, event: Completed, prompt: CanonicalUsage, *, notes: bool = False) -> Completed:
        spoken = self._counter.text(event.text) + sum(
            self._counter.text(call["function"]["arguments"]) + 20 for call in event.tool_calls
        )
        usage = prompt + CanonicalUsage(input_tokens=0, output_tokens=spoken)
        cost = self._prices.cost_usd(spec, usage) or 0.0
        self.bill.dollars += cost
        if notes:
            self.bill.notes += usage
            self.bill.dollars_of_notes += cost
        else:
            self.bill.turns += usage
            self.bill.prompts.append(usage.prompt_tokens)
        return Completed(text=event.text, tool_calls=event.tool_calls, stop=event.stop, usage=usage)

    def _shown(self, request: ModelRequest, bare: Sequence[dict[str, object]]) -> Shown:
        try:
            return read(request)
        except ValueError:
            pass
        last = text_of(request.messages[-1])
        sizes = [int(one or other) for one, other in _SIZE.findall(last)]
        tokens = sizes[-1] if sizes else 2_000
        if request.tools:  # behind the conversation itself
            return _in_place(request, tokens)
        return Shown(said=_of_theirs(last), notes=_notes_of_theirs(last), newest=(), tokens=tokens, text=last)


def replace_messages(request: ModelRequest, messages: Sequence[dict[str, object]]) -> ModelRequest:
    """The same request with other messages."""
    return ModelRequest(
        messages=messages,  # type: ignore[arg-type]
        tools=request.tools,
        max_tokens=request.max_tokens,
        tool_choice=request.tool_choice,
    )


def _in_place(request: ModelRequest, tokens: int) -> Shown:
    said: list[Said] = []
    notes: dict[str, list[str]] = {}
    for message in request.messages[1:-1]:
        text = text_of(message)
        if parts := unframed(text):
            notes, text = sections(parts[0]), parts[1]
        role = "result" if message["role"] == "tool" else message["role"]
        said.append(Said(role=role, text=text))
    newest = [one.text for one in said if one.role == "user"][-1:]
    return Shown(said=said, notes=notes, newest=newest, tokens=tokens, text="\n".join(one.text for one in said))


def _of_theirs(prompt: str) -> list[Said]:
    places = list(_TURNS.finditer(prompt))
    if not places:  # a title is asked for, say
        return []
    ends = [place.start() for place in places[1:]] + [len(prompt)]
    roles = {"USER": "user", "ASSISTANT": "assistant", "TOOL RESULT": "result"}
    texts = [prompt[place.end() : end].strip() for place, end in zip(places, ends, strict=True)]
    if texts:
        texts[-1] = texts[-1].partition("\n\n")[0]  # their instructions follow
    return [Said(role=roles[place[1]], text=text) for place, text in zip(places, texts, strict=True)]


def _notes_of_theirs(prompt: str) -> dict[str, list[str]]:
    """Return what earlier notes of our summariser stand in front of the turns."""
    first, (_, marker, notes) = _TURNS.search(prompt), prompt.partition("PREVIOUS SUMMARY:")
    return sections(notes[: first.start() - len(prompt) + len(notes)]) if first and marker else {}


def longer(trace: Trace, *, seed: int) -> Trace:
    """The same conversation with a step of long results in front of every answer, as agents that work have them."""
    rng, results, turns = Random(seed), dict(trace.results), []
    for turn in trace.turns:
        uses = []
        for number in range(rng.choice((1, 1, 2))):
            tool, argument, shape = rng.choice(bulk.SHAPES)
            name = f"/srv/work/{turn.number}-{number}"
            results[(tool, name)] = shape(rng, rng.choice((20, 40, 80)))
            uses.append(Use(tool=tool, arguments=f'{{"{argument}": "{name}"}}', result=results[(tool, name)]))
        turns.append(replace(turn, steps=[*turn.steps, uses]))
    return replace(trace, turns=turns, results=results)


async def talk(
    seed: int, turns: int, way: Way, rhythm: str, window: int, folder: Path, counter: TokenCounter, prices: Prices
) -> tuple[Record, Bill, Sequence[int]]:
    """Talk a conversation through: what was seen, what it cost, and what passes of a foreign engine left."""
    trace, rng, clock = longer(write(seed, turns), seed=seed), Random(seed), ManualClock()
    observer = Observer(trace, counter)
    model = PricedModel(summariser("extractive", trace, counter), observer, clock, counter, prices)
    tools = [ScriptedTool(name=name, argument=argument, results=trace.results) for name, argument, _ in bulk.SHAPES]
    config: Config = way.config(folder, window)
    left: list[int] = []
    engine = (lambda: way.engine(left)) if way.engine else None  # type: ignore[misc]
    others = {"anthropic": model}
    async with running(
        folder, config=config, model=model, others=others, clock=clock, ids=SequentialIds(), engine=engine, tools=tools
    ) as live:
        player = Player(live, model, clock)
        for number, pin in enumerate(trace.pins):
            await player.say(f"/pin {pin}", event=f"p{number}")
        for turn in trace.turns:
            await player.pause(rng.uniform(*RHYTHMS[rhythm]))
            model.begin(turn)
            answer = await player.say(turn.said, event=f"e{turn.number}")
            observer.end(answered=answer.kind == "reply", waited=0.0)
        await count_compactions(live, observer.record)
    return observer.record, model.bill, left
