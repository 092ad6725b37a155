"""What stays in view of the first hour of a long conversation, after 1, 6, 12 and 24 compactions.

The first hour holds things that a person says once: plain facts, rules, values that must stay letter by letter, and
values that are changed a little later. Then it goes on as at the help desk of `customers`, with tools and values of
its own; the person only says what is next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

import yaml

from gateway.context import identifiers, instructions
from gateway.domain.message import Message, assistant, noted, user
from gateway.runtime.tokens import TokenCounter
from tests.bench.context.customers import write
from tests.bench.context.drive import POLICIES, readable, span_of
from tests.bench.context.facts import stands

TALK: Final = Path(__file__).with_name("talk.yaml")
PASSES: Final = (1, 6, 12, 24)
JUDGED: Final = ("window engine", "ours, empty: by rule", "ours, extractive")
KINDS: Final = ("facts", "changed", "rules", "identifiers")
_EACH: Final = {"facts": 10, "changed": 4, "rules": 5, "identifiers": 8}
_LENGTH: Final = 40  # compactions' worth of talk

Counts = dict[tuple[str, int], list[bool]]
"""Whether each thing of a kind was kept after so many compactions."""


@dataclass(frozen=True, slots=True)
class Thing:
    """Something that was said. `kept` looks for it in the lines of a view."""

    kind: str
    said: str
    kept: Callable[[Sequence[str]], bool]


def measure(seeds: Sequence[int], window: int, talk: Path = TALK) -> dict[str, Counts]:
    """Lead each policy through a conversation of every seed."""
    found: dict[str, Counts] = {}
    counter = TokenCounter()
    for seed in seeds:
        life = write(seed, span_of(window), counter, length=_LENGTH)
        things, messages, told = conversation(seed, life, talk, counter)
        for policy in POLICIES:
            if policy.name in JUDGED:
                counts = found.setdefault(policy.name, {})
                keeper = policy.keeper(life, window, counter)
                asyncio.run(_lead(keeper, messages, told, things, counts))
    return found


def conversation(seed: int, life: Any, talk: Path, counter: TokenCounter) -> tuple[list[Thing], list[Message], int]:
    """The things of a first hour, all messages, and how many of these are said until the last thing was."""
    random = Random(seed)
    given: Mapping[str, Any] = yaml.safe_load(talk.read_text(encoding="utf-8"))
    things, later = list[Thing](), list[str]()
    for kind, most in _EACH.items():
        known = given.get(kind, [])
        chosen = random.sample(known, min(most, len(known)))
        things += [_thing(kind, each) for each in chosen]
        later += [each["second"] for each in chosen if kind == "changed"]
    random.shuffle(things)
    said = [*(each.said for each in things), *later]
    messages: list[Message] = []
    told = 0
    for number, turn in enumerate(life.turns):
        at = 1_780_000_000.0 + 60 * number
        if said:
            messages += [_counted(user(said.pop(0)), at, counter), _counted(assistant("All right."), at + 5, counter)]
            told = len(messages)
        messages += [
            _counted(user(random.choice(given["chatter"])), at, counter) if each["role"] == "user" else each
            for each in turn.messages
        ]
    return things, messages, told


def _counted(message: Message, at: float, counter: TokenCounter) -> Message:
    told = {"instructions": instructions.found(message)} if message["role"] == "user" else {}
    name = f"first-{at:.0f}"
    return noted(
        message, id=name, at=at, tokens=counter.message(message), identifiers=identifiers.found(message), **told
    )


async def _lead(keeper: Any, messages: Sequence[Message], told: int, things: Sequence[Thing], counts: Counts) -> None:
    wanted, before = list(PASSES), 0
    for number, message in enumerate(messages):
        keeper.transcript.append(message)
        if message["role"] != "assistant":
            await keeper.fit()
        if number < told:
            before = len(keeper.passes)
        elif len(keeper.passes) - before >= wanted[0]:
            lines = [line.lower() for each in keeper.transcript for line in readable(each).splitlines()]
            passes = wanted.pop(0)
            for thing in things:
                counts.setdefault((thing.kind, passes), []).append(thing.kept(lines))
            if not wanted:
                return
    raise AssertionError(f"the conversation ends after {len(keeper.passes) - before} compactions")


def _thing(kind: str, given: Mapping[str, Any]) -> Thing:
    if kind == "changed":
        return Thing(kind, given["first"], lambda lines: _is_changed(lines, given["old"], given["new"]))
    if kind == "identifiers":
        value = str(given["value"]).lower()
        return Thing(kind, given["say"], lambda lines: any(stands(line, value) for line in lines))
    return Thing(kind, given["say"], lambda lines: any(_holds(line, given["key"]) for line in lines))


def _holds(line: str, parts: Sequence[str]) -> bool:
    return all(str(part).lower() in line for part in parts)


def _is_changed(lines: Sequence[str], old: Sequence[str], new: Sequence[str]) -> bool:
    """The new value is in view, and the old one is not, or before it."""
    present = [place for place, line in enumerate(lines) if _holds(line, new)]
    former = [place for place, line in enumerate(lines) if _holds(line, old) and not _holds(line, new)]
    return bool(present) and present[-1] > max(former, default=-1)


def render(found: Mapping[str, Counts]) -> Iterator[str]:
    """A table: a row for each policy, by kind the shares that are in view after so many compactions."""
    wide = max(map(len, found))
    yield f"{'after compactions':<{wide}}  " + "  ".join(f"{kind:<{5 * len(PASSES) - 1}}" for kind in KINDS).rstrip()
    yield f"{'':<{wide}}  " + "  ".join(" ".join(f"{each:>4}" for each in PASSES) for _ in KINDS)
    for name, counts in found.items():
        shares = (" ".join(f"{_share(counts.get((kind, each), [])):>4}" for each in PASSES) for kind in KINDS)
        yield f"{name:<{wide}}  " + "  ".join(shares)


def _share(kept: Sequence[bool]) -> str:
    return f"{sum(kept) / len(kept):.2f}" if kept else "-"
