"""What helpers spare a conversation: the trajectories of `drive`, with every long result read by a helper.

The helper's answer is what its task was about: the lines of the result that hold a value that the turn's other messages
name, and the first line. So values that nobody spoke of yet are lost from view. A helper that is told what will matter
answers with those, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gateway.context import identifiers
from gateway.domain.message import Message, note_of, noted, text_of
from gateway.runtime.tokens import TokenCounter
from tests.bench.context.customers import Life, Turn
from tests.bench.context.drive import POLICIES, Keeper, Policy, drive, size_of

POLICY: Final = "ours, extractive"
_SHORT: Final = 150  # tokens of a result that nobody hands on


@dataclass(slots=True)
class Watched:
    """A keeper whose highest point is noted."""

    keeper: Keeper
    peak: int = 0

    @property
    def transcript(self) -> list[Message]:
        """As the keeper's."""
        return self.keeper.transcript

    @property
    def passes(self) -> list[int]:
        """As the keeper's."""
        return self.keeper.passes

    async def fit(self) -> None:
        """Note the size before room is made."""
        self.peak = max(self.peak, size_of(self.keeper.transcript))
        await self.keeper.fit()


def delegated(life: Life, counter: TokenCounter, *, told: bool) -> Life:
    """The same conversation, whose long results helpers have read. `told`: they were told what will matter."""
    turns = [replace(turn, messages=tuple(_answers(turn, counter, told=told))) for turn in life.turns]
    return replace(life, turns=tuple(turns))


def _answers(turn: Turn, counter: TokenCounter, *, told: bool) -> Iterator[Message]:
    named = {
        value for each in turn.messages if each["role"] != "tool" for value in note_of(each).get("identifiers", ())
    }
    named |= {fact.value for fact in turn.plants} if told else set()
    for message in turn.messages:
        if message["role"] != "tool" or note_of(message)["tokens"] <= _SHORT:
            yield message
            continue
        first, *others = text_of(message).splitlines()
        kept = [first, *(line for line in others if any(value in line for value in named))]
        answer: Message = {**message, "content": "\n".join(kept)}
        yield noted(answer, tokens=counter.message(answer), identifiers=identifiers.found(answer))


def render(lives: Sequence[Life], window: int, counter: TokenCounter) -> Iterator[str]:
    """Four columns: the tokens that passed through the conversation, its highest point, its compactions, and the share
    of what a turn needed that was in view."""
    yield f"window of {window:,} tokens, {POLICY}:"
    helped = [[delegated(each, counter, told=told) for each in lives] for told in (False, True)]
    for name, told in (("alone", lives), ("with helpers", helped[0]), ("that know what will matter", helped[1])):
        tokens, peaks, passes, seen = 0, [0], 0, list[bool]()
        for life in told:
            watched: list[Watched] = []
            record = asyncio.run(drive(life, _watched(watched), window, counter))
            tokens, passes = tokens + size_of(life.messages), passes + len(record.passes)
            peaks.append(watched[0].peak)
            seen += [probe.in_view for probe in record.probes if probe.way != "rule"]
        share = sum(seen) / len(seen)
        yield (
            f"  {name:<26} {tokens:>9,} tokens in all, peak {max(peaks):>7,}, {passes:>3} compactions, needed values "
            f"in view {share:.2f}"
        )


def _watched(into: list[Watched]) -> Policy:
    (policy,) = [each for each in POLICIES if each.name == POLICY]

    def keeper(life: Life, window: int, counter: TokenCounter) -> Keeper:
        into.append(Watched(policy.keeper(life, window, counter)))
        return into[-1]

    return replace(policy, keeper=keeper)
