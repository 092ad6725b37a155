"""Leads a context engine through a conversation of returning customers, without a gateway, and looks at what it keeps.

A policy is given the conversation message by message and decides what a model would see. What a turn needs is looked
for in that view the moment the person has spoken, if it was said so long ago that it has left the newest messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from gateway.context.compressor import Compressor
from gateway.context.engine import ContextEngine
from gateway.context.policy import CompressionSettings, budgets
from gateway.context.window import Window, for_window
from gateway.domain.message import Message, note_of, noted, text_of
from gateway.domain.usage import reserved_output
from gateway.providers.base import ModelRequest
from gateway.runtime.clock import SystemClock
from gateway.runtime.redaction import Redactor
from gateway.runtime.tokens import TokenCounter
from tests.bench.context.customers import Life, Need, Turn, Way
from tests.bench.context.facts import stands
from tests.bench.context.observing import outdated
from tests.bench.context.shown import read
from tests.bench.context.summarisers import Extractive, Oracle, Summariser, Written

OVERHEAD: Final = 1_200  # tokens of a system prompt and tools
DEPTHS: Final = (1, 3, 10, 30)  # compactions; a distance belongs to the nearest
_EDGES: Final = (2, 6, 18)
SETTINGS: Final = CompressionSettings()


def threshold_of(window: int) -> int:
    """Tokens at which the default settings compact."""
    return budgets(window, SETTINGS, reserved_output(window, None)).threshold_tokens


def span_of(window: int) -> int:
    """Tokens that are said between two compactions, about."""
    return int(threshold_of(window) * 0.6)


class Keeper(Protocol):
    """Keeps a transcript. `passes`: the sizes that its compactions left, in tokens."""

    transcript: list[Message]
    passes: list[int]

    async def fit(self) -> None:
        """Make room, if there must be room before the next request."""


class Everything:
    """Keeps all."""

    def __init__(self) -> None:
        self.transcript: list[Message] = []
        self.passes: list[int] = []

    async def fit(self) -> None:
        """There is always room."""


class Newest:
    """Keeps the newest messages, from a person's on: as soon as there are more than `most` tokens, `left` of them."""

    def __init__(self, most: int, left: int) -> None:
        self.transcript: list[Message] = []
        self.passes: list[int] = []
        self._most = most
        self._left = left

    async def fit(self) -> None:
        """Forget the oldest."""
        if size_of(self.transcript) <= self._most:
            return
        left, start = self._left, len(self.transcript) - 1
        for index in range(len(self.transcript) - 1, -1, -1):
            left -= note_of(self.transcript[index])["tokens"]
            if left < 0:
                break
            if self.transcript[index]["role"] == "user":
                start = index
        self.transcript = self.transcript[start:]
        self.passes.append(size_of(self.transcript))


class Engine:
    """Keeps what a context engine keeps."""

    def __init__(self, engine: ContextEngine) -> None:
        self.transcript: list[Message] = []
        self.passes: list[int] = []
        self._engine = engine

    async def fit(self) -> None:
        """Compact as the host does."""
        tokens = size_of(self.transcript) + OVERHEAD
        if not self._engine.should_compress(tokens):
            return
        made = self._engine.compress(self.transcript, tokens)
        self.transcript = list(made if isinstance(made, list) else await made)
        after = size_of(self.transcript)
        self.passes.append(after)
        usage = {"prompt_tokens": after + OVERHEAD, "completion_tokens": 1, "total_tokens": after + OVERHEAD + 1}
        self._engine.update_from_response(usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A way to keep a conversation in its window. `bare`: messages come without their identifiers, so that no ledger
    can be made. `sees_all`: nothing ever leaves view, so nothing need be looked for."""

    name: str
    keeper: Callable[[Life, int, TokenCounter], Keeper]
    bare: bool = False
    sees_all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One thing that a turn needed. `depth`: the compactions since it was said last, one of `DEPTHS`. `where`: turn and
    place of the need in the turn."""

    way: Way
    kinds: tuple[str, ...]
    depth: int
    in_view: bool
    size: int  # tokens of the view
    where: tuple[int, int]


@dataclass(slots=True)
class Record:
    """The observations of one policy in one conversation."""

    threshold: int
    probes: list[Probe] = field(default_factory=list)
    passes: list[int] = field(default_factory=list)
    stale: int = 0  # values shown as if they held still, of those that a turn needed
    replaced: int = 0


async def drive(life: Life, policy: Policy, window: int, counter: TokenCounter) -> Record:
    """Lead a policy through a conversation."""
    keeper = policy.keeper(life, window, counter)
    record = Record(threshold_of(window))
    last: dict[int, int] = {}  # by a fact's number: tokens said when it was said last
    near = record.threshold // 5
    for turn in life.turns:
        said, *rest = (noted(message, identifiers=[]) if policy.bare else message for message in turn.messages)
        keeper.transcript.append(said)
        await keeper.fit()
        _look(turn, keeper, record, last, near, sees_all=policy.sees_all)
        for message in rest:
            keeper.transcript.append(message)
            if message["role"] == "tool":
                await keeper.fit()
        last |= dict.fromkeys(_mentioned(turn), turn.started)
    record.passes = keeper.passes
    return record


def _mentioned(turn: Turn) -> Iterator[int]:
    yield from (fact.number for fact in turn.plants)
    yield from (fact.number for need in turn.needs if need.way != "rule" for fact in need.facts)


def _look(turn: Turn, keeper: Keeper, record: Record, last: Mapping[int, int], near: int, *, sees_all: bool) -> None:
    asked = [(place, need) for place, need in enumerate(turn.needs) if _far(turn, need, last) > near]
    if not asked:
        return
    texts = [] if sees_all else [readable(message) for message in keeper.transcript]
    view = "\n".join(texts)
    size = size_of(keeper.transcript)
    for place, need in asked:
        compactions = _far(turn, need, last) / (record.threshold * 0.6)
        depth = DEPTHS[sum(compactions > edge for edge in _EDGES)]
        probe = Probe(
            way=need.way,
            kinds=tuple(fact.kind for fact in need.facts),
            depth=depth,
            in_view=sees_all or all(stands(view, fact.value) for fact in need.facts),
            size=size,
            where=(turn.number, place),
        )
        record.probes.append(probe)
        for fact in need.facts:
            if fact.former:
                record.replaced += 1
                record.stale += outdated(texts, fact.former, fact.value)


def _far(turn: Turn, need: Need, last: Mapping[int, int]) -> int:
    """Tokens since everything of a need was said last."""
    return turn.started - max(last.get(fact.number, turn.started) for fact in need.facts)


def readable(message: Message) -> str:
    """All that a model reads of a message."""
    calls = message.get("tool_calls") or ()
    return "\n".join([text_of(message), *(call["function"]["arguments"] for call in calls)])


def size_of(messages: Iterable[Message]) -> int:
    """Tokens of messages that carry their counts."""
    return sum(note_of(message)["tokens"] for message in messages)


# -- the policies ------------------------------------------------------------------------------------


def _compressor(written_by: Callable[[Life, TokenCounter], Summariser]) -> Callable[..., Keeper]:
    def keeper(life: Life, window: int, counter: TokenCounter) -> Keeper:
        engine = Compressor(SETTINGS, counter=counter, clock=SystemClock(), redact=Redactor(()))
        return _started(engine, window, _asked(written_by(life, counter)))

    return keeper


def _asked(summariser: Summariser) -> Callable[[Sequence[Message], int], str]:
    return lambda messages, most: summariser(read(ModelRequest(messages=messages))).text


def _window(life: Life, window: int, counter: TokenCounter) -> Keeper:
    return _started(Window(for_window(SETTINGS), counter=counter, redact=Redactor(())), window, None)


def _started(engine: ContextEngine, window: int, call_model: Callable[..., str] | None) -> Keeper:
    engine.on_session_start("s", model="bench", context_length=window, call_model=call_model)
    return Engine(engine)


def _newest(left: float) -> Callable[..., Keeper]:
    return lambda life, window, counter: Newest(threshold_of(window), int(threshold_of(window) * left))


_empty: Final = _compressor(lambda life, counter: lambda shown: Written(text=""))
_extractive: Final = _compressor(lambda life, counter: Extractive(counter))

POLICIES: Final = (
    Policy(name="none", keeper=lambda life, window, counter: Everything(), sees_all=True),
    Policy(name="tail", keeper=_newest(0.2)),
    Policy(name="sliding window", keeper=_newest(1.0)),
    Policy(name="window engine", keeper=_window),
    Policy(name="ours, empty: by rule", keeper=_empty),
    Policy(name="ours, extractive", keeper=_extractive),
    Policy(name="ours, oracle", keeper=_compressor(lambda life, counter: Oracle(life, counter))),
    Policy(name="no ledger, empty: by rule", keeper=_empty, bare=True),
    Policy(name="no ledger, extractive", keeper=_extractive, bare=True),
)


def run(life: Life, names: Sequence[str], window: int, counter: TokenCounter) -> dict[str, Record]:
    """The records of the policies of these names."""
    return {
        policy.name: asyncio.run(drive(life, policy, window, counter)) for policy in POLICIES if policy.name in names
    }
