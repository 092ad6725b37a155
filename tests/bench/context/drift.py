"""What stays in view of the first hour of a long conversation, after 1, 6, 12 and 24 compactions.

The first hour holds things that a person says once: plain facts, rules, values that must stay letter by letter, and
values that are changed a little later. Then it goes on as at the help desk of `customers`, with tools and values of
its own; the person only says what is next. A file with `messages` of its own goes on with these instead: ordinary talk
of many voices, full of wishes, worries and small news, between which the things stand (`chat.yaml`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import yaml

from gateway.context import identifiers, instructions
from gateway.domain.message import HOST, Message, assistant, noted, user
from gateway.runtime.tokens import TokenCounter
from tests.bench.context.customers import write
from tests.bench.context.drive import POLICIES, readable, span_of
from tests.bench.context.facts import stands

TALK: Final = Path(__file__).with_name("talk.yaml")
CHAT: Final = Path(__file__).with_name("chat.yaml")
PASSES: Final = (1, 6, 12, 24)
JUDGED: Final = ("window engine", "ours, empty: by rule", "ours, extractive")
_EACH: Final = {
    "facts": 10, "changed": 4, "rules": 5, "identifiers": 8, "of oneself": 10, "in passing": 10, "other languages": 10,
}  # fmt: skip
_LENGTH: Final = 40  # compactions' worth of talk
_ANSWER: Final = 20  # sentences of an answer in ordinary talk
_BESIDE: Final = 0.6  # of the things in ordinary talk are said beside something else
_TURNS: Final = 900  # of ordinary talk

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
    given: Mapping[str, Any] = yaml.safe_load(talk.read_text(encoding="utf-8"))
    for seed in seeds:
        life = None if "messages" in given else write(seed, span_of(window), counter, length=_LENGTH)
        things, messages, told = conversation(seed, life, given, counter)
        for policy in POLICIES:
            if policy.name in JUDGED:
                counts = found.setdefault(policy.name, {})
                keeper = policy.keeper(life, window, counter)
                asyncio.run(lead(keeper, messages, told, PASSES, partial(_judge, keeper, things, counts)))
    return found


def conversation(
    seed: int, life: Any, given: Mapping[str, Any], counter: TokenCounter
) -> tuple[list[Thing], list[Message], int]:
    """The things of a first hour, all messages, and how many of these are said until the last thing was."""
    random = Random(seed)
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
    for number, turn in enumerate(_ordinary(given, random) if life is None else _served(life, given, random)):
        at = 1_780_000_000.0 + 60 * number
        if said and life is None and random.random() < _BESIDE:
            first = f"{said.pop(0)} {turn[0]['content']}" if number % 2 else f"{turn[0]['content']} {said.pop(0)}"
            turn = [counted(user(first), at, counter), *turn[1:]]
            told = len(messages) + len(turn)
        elif said:
            messages += [counted(user(said.pop(0)), at, counter), counted(assistant("All right."), at + 5, counter)]
            told = len(messages)
        messages += [each if HOST in each else counted(each, at + place, counter) for place, each in enumerate(turn)]
    return things, messages, told


def _served(life: Any, given: Mapping[str, Any], random: Random) -> Iterator[list[Message]]:
    """The turns of a help desk, in which the person only says what is next."""
    for turn in life.turns:
        yield [user(random.choice(given["chatter"])) if each["role"] == "user" else each for each in turn.messages]


def _ordinary(given: Mapping[str, Any], random: Random) -> Iterator[list[Message]]:
    """Turns of ordinary talk: each of its messages once, then each again about other people and things."""
    left: list[str] = []
    for _ in range(_TURNS):
        left = left or random.sample(given["messages"], len(given["messages"]))
        chosen = {name: random.choice(values) for name, values in given["slots"].items()}
        yield [
            user(left.pop().format_map(chosen)),
            assistant(" ".join(random.choice(given["answers"]) for _ in range(_ANSWER))),
        ]


def counted(message: Message, at: float, counter: TokenCounter) -> Message:
    """A message as the gateway stores it."""
    told = {"instructions": instructions.found(message)} if message["role"] == "user" else {}
    name = f"first-{at:.0f}"
    return noted(
        message, id=name, at=at, tokens=counter.message(message), identifiers=identifiers.found(message), **told
    )


async def lead(
    keeper: Any, messages: Sequence[Message], told: int, passes: Sequence[int], judge: Callable[[int], None]
) -> None:
    """Lead a conversation on, and judge it after so many `passes` since its first `told` messages."""
    wanted, before = list(passes), 0
    for number, message in enumerate(messages):
        keeper.transcript.append(message)
        if message["role"] != "assistant":
            await keeper.fit()
        if number < told:
            before = len(keeper.passes)
        elif len(keeper.passes) - before >= wanted[0]:
            judge(wanted.pop(0))
            if not wanted:
                return
    raise AssertionError(f"the conversation ends after {len(keeper.passes) - before} compactions")


def _judge(keeper: Any, things: Sequence[Thing], counts: Counts, passes: int) -> None:
    lines = [line.lower() for each in keeper.transcript for line in readable(each).splitlines()]
    for thing in things:
        counts.setdefault((thing.kind, passes), []).append(thing.kept(lines))


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
    kinds = [kind for kind in _EACH if any((kind, PASSES[0]) in counts for counts in found.values())]
    yield f"{'after compactions':<{wide}}  " + "  ".join(f"{kind:<{5 * len(PASSES) - 1}}" for kind in kinds).rstrip()
    yield f"{'':<{wide}}  " + "  ".join(" ".join(f"{each:>4}" for each in PASSES) for _ in kinds)
    for name, counts in found.items():
        shares = (" ".join(f"{_share(counts.get((kind, each), [])):>4}" for each in PASSES) for kind in kinds)
        yield f"{name:<{wide}}  " + "  ".join(shares)


def _share(kept: Sequence[bool]) -> str:
    return f"{sum(kept) / len(kept):.2f}" if kept else "-"
