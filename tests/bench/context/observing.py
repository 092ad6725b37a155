"""The observations of a replay: each request, looked at when the model gets it.

A compaction shows in the requests themselves: the messages of one no longer begin with those of the one
before it. What of the facts stands in a request is found in its text, as a reader would.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from gateway.context.prompts import END_MARKER, OPENER, unframed
from gateway.domain.message import ToolCall, text_of, wire
from gateway.domain.usage import CanonicalUsage
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.providers.openai.codec import encode_request
from gateway.runtime.tokens import TokenCounter
from tests.bench.context.facts import Fact, stands
from tests.bench.context.summarisers import DIRECTIVE
from tests.bench.context.trace import Trace, Turn
from tests.emulators.llm_rules import violations


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request of a turn. `facts`: numbers of those that stand in it. `same`: the share of its bytes
    with which the request before it began, too; None for the first, and right after a compaction."""

    turn: int
    tokens: int
    fits: bool
    valid: bool
    facts: frozenset[int]
    same: float | None
    compacted: bool
    stale: frozenset[int]
    pinned: bool  # every pin stands in its system prompt, word for word


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Something that a turn needed: whether it was in the turn's first request, and whether at the end."""

    fact: Fact
    turn: int
    in_view: bool
    found: bool


@dataclass(slots=True)
class Record:
    """Everything that was seen of one replay."""

    requests: list[Seen] = field(default_factory=list)
    needs: list[Need] = field(default_factory=list)
    stale: set[int] = field(
        default_factory=set
    )  # facts whose place another one took, and that were shown as if they held still
    summaries: int = 0  # calls for one
    problems: list[str] = field(default_factory=list)  # of requests that an API would refuse
    leaks: list[str] = field(default_factory=list)  # secrets in notes, directives outside of them
    waits: list[float] = field(default_factory=list)  # virtual seconds, of each turn
    failed: list[int] = field(default_factory=list)  # turns that ended without their answer
    compactions: int = 0  # as the store has them
    fallbacks: int = 0


class Observer:
    """Looks at the requests of one replay."""

    def __init__(self, trace: Trace, counter: TokenCounter) -> None:
        self.record = Record()
        self._trace = trace
        self._counter = counter
        self._tokens = lru_cache(maxsize=65_536)(self._tokens_of)
        self._planted: dict[int, Fact] = {}
        self._turn: Turn | None = None
        self._needs: dict[int, bool] = {}
        self._found: set[int] = set()
        self._last: list[str] = []

    # -- a turn -----------------------------------------------------------------------------

    def begin(self, turn: Turn) -> None:
        """The next requests are this turn's; what it plants counts from its end on."""
        self._turn, self._needs, self._found = turn, {}, set()

    def end(self, *, answered: bool, waited: float) -> None:
        """The turn is over. One that failed shows nobody anything."""
        turn = self._turn
        assert turn is not None
        self.record.waits.append(waited)
        if not answered:
            self.record.failed.append(turn.number)
        for fact in turn.asks:
            in_view = answered and self._needs.get(fact.number, False)
            found = in_view or (answered and fact.number in self._found)
            self.record.needs.append(Need(fact=fact, turn=turn.number, in_view=in_view, found=found))
        for fact in turn.plants:
            self._planted[fact.number] = fact

    def _number_of(self, value: str) -> int:
        return next(fact.number for fact in self._planted.values() if fact.value == value)

    def looked_up(self, found: Iterable[Fact]) -> None:
        """Note the facts that the turn knows after a search."""
        self._found.update(fact.number for fact in found)

    # -- a request --------------------------------------------------------------------------

    def see(self, spec: ModelSpec, request: ModelRequest) -> Seen:
        """Look at a turn's request."""
        assert self._turn is not None
        body = encode_request(spec, request)
        problems = list(violations(body))
        messages = [json.dumps(message, ensure_ascii=False) for message in body["messages"]]
        whole = [json.dumps(body.get("tools", []), ensure_ascii=False), *messages]
        compacted = bool(self._last) and whole[2 : len(self._last)] != self._last[2:]
        texts = [_read(message) for message in request.messages]
        view = "\n".join(texts)
        facts = frozenset(number for number, fact in self._known().items() if stands(view, fact.value))
        tokens = self._counted(request)
        seen = Seen(
            turn=self._turn.number,
            tokens=tokens,
            fits=tokens + spec.reserved_output <= spec.context_length,
            valid=not problems,
            facts=facts,
            same=None if compacted or not self._last else _same(self._last, whole),
            compacted=compacted,
            stale=self._stale(texts, facts),
            pinned=all(pin in texts[0] for pin in self._trace.pins),
        )
        self._last = whole
        self._note(seen, problems, texts)
        return seen

    def _known(self) -> dict[int, Fact]:
        assert self._turn is not None
        return {**self._planted, **{fact.number: fact for fact in self._turn.plants}}

    def _note(self, seen: Seen, problems: Sequence[str], texts: Sequence[str]) -> None:
        record = self.record
        record.requests.append(seen)
        record.problems += problems
        record.stale |= seen.stale
        record.leaks += self._leaks(texts)
        if not self._needs and self._turn is not None:
            self._needs = {fact.number: fact.number in seen.facts for fact in self._turn.asks}

    def _stale(self, texts: Sequence[str], facts: frozenset[int]) -> frozenset[int]:
        """Values that others took the place of and that a reader would take for the present ones."""
        found = set()
        for new in self._planted.values():
            old = self._number_of(new.former) if new.former else None
            if old is not None and old in facts and outdated(texts, new.former, new.value):
                found.add(old)
        return frozenset(found)

    def _leaks(self, texts: Sequence[str]) -> list[str]:
        """Secrets in notes, and what a summariser made up outside of them."""
        found = []
        for text in texts:
            parts = unframed(text)
            notes, rest = parts if parts else ("", text)
            found += [secret for secret in self._trace.secrets if parts and secret in notes]
            if DIRECTIVE in rest or (parts and (OPENER in notes or END_MARKER in notes)):
                found.append(DIRECTIVE)
        return found

    # -- tokens -----------------------------------------------------------------------------

    def answered(self, prompt: int, text: str, calls: Sequence[ToolCall]) -> CanonicalUsage:
        """The usage that the provider reports for an answered request."""
        spoken = self._counter.text(text) + sum(self._counter.text(call["function"]["arguments"]) for call in calls)
        return CanonicalUsage(input_tokens=prompt, output_tokens=spoken)

    def asked_for_summary(self, spec: ModelSpec, request: ModelRequest) -> int:
        """A summary is asked for: its prompt's tokens."""
        self.record.summaries += 1
        self.record.problems += violations(encode_request(spec, request))
        text = "\n".join(map(text_of, request.messages))
        self.record.leaks += [secret for secret in self._trace.secrets if secret in text]
        return self._counted(request)

    def _counted(self, request: ModelRequest) -> int:
        messages = (json.dumps(wire(message), ensure_ascii=False) for message in request.messages)
        return sum(map(self._tokens, messages)) + self._counter.schemas(request.tools)

    def _tokens_of(self, message: str) -> int:
        return self._counter.message(json.loads(message))


def outdated(texts: Sequence[str], former: str, value: str) -> bool:
    """Say whether a reader of these messages would take the `former` value for the present one: because the new
    `value` is not there; or because notes say the old one on a line without the new one, and nothing that comes after
    the notes says the new one."""
    view = "\n".join(texts)
    if not stands(view, former):
        return False
    if not stands(view, value):
        return True
    place = next((index for index, text in enumerate(texts) if unframed(text)), None)
    if place is None:
        return False
    notes, rest = unframed(texts[place]) or ("", "")
    later = "\n".join([rest, *texts[place + 1 :]])
    lines = (line for line in notes.splitlines() if stands(line, former))
    return any(not stands(line, value) for line in lines) and not stands(later, value)


def _read(message: Mapping[str, Any]) -> str:
    """All that a model reads of a message."""
    calls = message.get("tool_calls") or ()
    return "\n".join([text_of(message), *(call["function"]["arguments"] for call in calls)])


def _same(before: Sequence[str], now: Sequence[str]) -> float:
    """The share of the bytes of a request with which the one before it began as well."""
    whole = sum(len(part.encode()) for part in now)
    common = 0
    for one, other in zip(before, now, strict=False):
        if one != other:
            alike = next((place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), 0)
            return (common + len(other[:alike].encode())) / whole
        common += len(other.encode())
    return common / whole
