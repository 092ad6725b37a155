"""The model of a replay: it says and calls what the trace says, and every request it gets is looked at.

Asked for something that was said earlier, it answers from its request if the value stands there; if not, it
looks it up with the tool that Legato gives it, as a model would, and says so if that finds nothing either.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence

from gateway.domain.message import ToolCall
from gateway.domain.usage import CanonicalUsage
from gateway.providers.base import Completed, ModelEvent, ModelRequest, ModelSpec, StopReason, TextDelta
from gateway.providers.offline.model import is_summary_request
from gateway.runtime.clock import Clock
from gateway.runtime.errors import ContextOverflow
from gateway.runtime.tokens import TokenCounter
from tests.bench.context.facts import Fact
from tests.bench.context.observing import Observer, Seen
from tests.bench.context.shown import read
from tests.bench.context.summarisers import Summariser
from tests.bench.context.trace import Turn
from tests.bench.context.wording import ANSWERS

_FOREVER = 1e9  # seconds


class ScriptedModel:
    """A `Provider`. `asleep`: how many summaries are being waited for at this moment."""

    name = "offline"

    def __init__(self, summariser: Summariser, observer: Observer, clock: Clock, counter: TokenCounter) -> None:
        self._summariser = summariser
        self._observer = observer
        self._clock = clock
        self._counter = counter
        self._calls = 0
        self._turn: Turn | None = None
        self._step = 0
        self._looked_up = False
        self.asleep = 0

    def begin(self, turn: Turn) -> None:
        """The next requests are this turn's."""
        self._turn, self._step, self._looked_up = turn, 0, False
        self._observer.begin(turn)

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Answer by the script. Raises ContextOverflow as a provider does whose window is full."""
        if is_summary_request(request.messages):
            yield await self._summary(spec, request)
            return
        seen = self._observer.see(spec, request)
        if not seen.fits:
            raise ContextOverflow("This request is longer than the model's window.", limit=spec.context_length)
        text, calls = self._answer(seen)
        if text:
            yield TextDelta(text=text)
        usage = self._observer.answered(seen.tokens, text, calls)
        yield Completed(text=text, tool_calls=calls, stop="tool_calls" if calls else "stop", usage=usage)

    async def aclose(self) -> None:
        """Nothing is open."""

    # -- a turn -----------------------------------------------------------------------------

    def _answer(self, seen: Seen) -> tuple[str, tuple[ToolCall, ...]]:
        turn = self._turn
        assert turn is not None
        if self._step < len(turn.steps):
            uses = turn.steps[self._step]
            self._step += 1
            return "", tuple(self._call(use.tool, use.arguments) for use in uses)
        unknown = [fact for fact in turn.asks if fact.number not in seen.facts]
        if unknown and not self._looked_up:
            self._looked_up = True
            return "", tuple(self._search(fact) for fact in unknown)
        if self._looked_up:
            self._observer.looked_up(fact for fact in turn.asks if fact.number in seen.facts)
        return " ".join([turn.reply, *self._answers(turn.asks, seen)]), ()

    def _answers(self, asks: Sequence[Fact], seen: Seen) -> list[str]:
        forms = ((fact, ANSWERS[fact.language]) for fact in asks)
        return [
            (known if fact.number in seen.facts else unknown).format(subject=fact.subject, value=fact.value)
            for fact, (known, unknown) in forms
        ]

    def _search(self, fact: Fact) -> ToolCall:
        return self._call("search_history", json.dumps({"words": fact.subject}, ensure_ascii=False))

    def _call(self, name: str, arguments: str) -> ToolCall:
        self._calls += 1
        return {
            "id": f"call_{self._calls}",
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }

    # -- a summary --------------------------------------------------------------------------

    async def _summary(self, spec: ModelSpec, request: ModelRequest) -> Completed:
        tokens = self._observer.asked_for_summary(spec, request)
        written = self._summariser(read(request))
        self.asleep += 1
        try:
            await self._clock.sleep(_FOREVER if written.seconds is None else written.seconds)
        finally:
            self.asleep -= 1
        text, stop = self._capped(written.text, written.stop, request.max_tokens)
        usage = CanonicalUsage(input_tokens=tokens, output_tokens=self._counter.text(text))
        return Completed(text=text, stop=stop, usage=usage)

    def _capped(self, text: str, stop: StopReason, most: int | None) -> tuple[str, StopReason]:
        """Return the part of an answer that an API lets through under its output cap."""
        size = self._counter.text(text)
        if most is None or size < most:
            return text, stop
        return text[: len(text) * most // size], "length"
