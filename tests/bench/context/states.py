"""What is in view of things whose state changes: of each the last value, its day, and no older value without its day.

People, the assistant and tools say these things (`states.yaml` and `states_unseen.yaml`; nobody looks at
`states_held_out.yaml`, whose totals alone are known) between the turns of the help desk of `customers`, so that some
compactions lie between most values. It is looked at when all of them have left view, and again some compactions later.
Beside them stand things that stay as they are, although something alike is said: none of them may be called outdated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import yaml

from gateway.context.prompts import unframed
from gateway.domain.message import Message, assistant, tool_result, user
from gateway.runtime.tokens import TokenCounter
from tests.bench.context.customers import write
from tests.bench.context.drift import JUDGED, TALK, counted, lead
from tests.bench.context.drive import POLICIES, readable, span_of
from tests.bench.context.facts import stands

STATES: Final = Path(__file__).with_name("states.yaml")
UNSEEN: Final = Path(__file__).with_name("states_unseen.yaml")
HELD_OUT: Final = Path(__file__).with_name("states_held_out.yaml")
PASSES: Final = (1, 6)
_TOGETHER: Final = 20  # changing things in one conversation
_LENGTH: Final = 16  # compactions' worth of talk
_START: Final = 1_780_000_000.0
_TURN: Final = 6 * 3_600.0
_ENDED: Final = ("no longer", "before")  # the words of a note that call a value outdated

Counts = dict[str, list[bool]]
"""For each measure, whether it holds for each thing."""


@dataclass(frozen=True, slots=True)
class Thing:
    """Something with a state. `old`: the values before, each with its day; `now` and `day`: the last one. A thing
    without `old` stays as it is."""

    of: str
    old: tuple[tuple[str, str], ...]
    now: str
    day: str


def measure(path: Path, window: int, seeds: Sequence[int]) -> dict[tuple[str, int], Counts]:
    """Lead each policy through conversations in which all things of a file are said, once for each seed."""
    found: dict[tuple[str, int], Counts] = {}
    counter = TokenCounter()
    given: Mapping[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    for seed in seeds:
        changes = Random(seed).sample(given["changes"], len(given["changes"]))
        parts = -(-len(changes) // _TOGETHER)
        for part in range(parts):
            things, messages, told = conversation(
                seed * 100 + part, changes[part::parts], given["same"], counter, window
            )
            for policy in POLICIES:
                if policy.name in JUDGED:
                    keeper = policy.keeper(None, window, counter)  # type: ignore[arg-type]
                    judge = partial(_judge, policy.name, keeper, things, found)
                    # The first pass after the last saying is the one in which that leaves view.
                    asyncio.run(lead(keeper, messages, told, [1 + each for each in PASSES], judge))
    return found


def conversation(
    seed: int, changes: Sequence[Any], same: Sequence[Any], counter: TokenCounter, window: int
) -> tuple[list[Thing], list[Message], int]:
    """The things, all messages, and how many of these are said until the last thing was."""
    random = Random(seed)
    chatter = yaml.safe_load(TALK.read_text(encoding="utf-8"))["chatter"]
    said = [(place, number) for place, each in enumerate([*changes, *same]) for number in range(len(each["say"]))]
    random.shuffle(said)
    said = _in_order(said)
    days: dict[tuple[int, int], str] = {}
    messages: list[Message] = []
    told = 0
    for number, turn in enumerate(write(seed, span_of(window), counter, length=_LENGTH).turns):
        at = _START + _TURN * number
        given = [user(random.choice(chatter)) if each["role"] == "user" else each for each in turn.messages]
        messages += [counted(each, at + place, counter) for place, each in enumerate(given)]
        if number and said:
            place, saying = said.pop(0)
            days[place, saying] = f"{datetime.fromtimestamp(at, UTC):%-d %b}".lower()
            words = [*changes, *same][place]["say"][saying]
            messages += [counted(each, at + 60, counter) for each in _turn(words, f"state-{number}")]
            told = len(messages)
    assert not said, "the conversation is too short"
    return [_thing(each, place, days) for place, each in enumerate([*changes, *same])], messages, told


def _in_order(said: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The sayings in their places, those of one thing in their order."""
    left = {place: iter(sorted(number for one, number in said if one == place)) for place, _ in said}
    return [(place, next(left[place])) for place, _ in said]


def _thing(given: Mapping[str, Any], place: int, days: Mapping[tuple[int, int], str]) -> Thing:
    of, now, last = str(given["of"]).lower(), str(given["now"]).lower(), len(given["say"]) - 1
    if "old" not in given:
        return Thing(of, (), now, days[place, 0])
    old = tuple((str(value).lower(), days[place, number]) for number, value in enumerate(given["old"]))
    return Thing(of, old, now, days[place, last])


def _turn(saying: str, call: str) -> list[Message]:
    who, _, words = saying.partition(" ")
    if who == "U":
        return [user(words), assistant("All right.")]
    if who == "A":
        return [user("Any news?"), assistant(words)]
    asked = {"id": call, "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    return [user("Look again, please."), assistant(None, [asked]), tool_result(call, words), assistant("I see.")]  # type: ignore[list-item]


def _judge(name: str, keeper: Any, things: Sequence[Thing], found: dict[tuple[str, int], Counts], passes: int) -> None:
    counts = found.setdefault((name, passes - 1), {})
    texts = [readable(each) for each in keeper.transcript]
    noted_lines = [line for text in texts if (parts := unframed(text)) for line in parts[0].lower().splitlines()]
    lines = [line for text in texts for line in text.lower().splitlines()]
    for thing in things:
        present = [line for line in lines if stands(line, thing.of) and stands(line, thing.now)]
        if not thing.old:
            called = any(word in line.partition(thing.now)[2] for line in present for word in _ENDED)
            counts.setdefault("wrong", []).append(called)
            continue
        ended = [line for line in present if all(line.find(thing.now) > line.find(word) >= 0 for word in _ENDED)]
        counts.setdefault("current", []).append(len(present) > len(ended))
        counts.setdefault("dated", []).append(any(thing.day in line for line in present))
        counts.setdefault("undated", []).append(any(_undated(thing, line) for line in noted_lines))


def _undated(thing: Thing, line: str) -> bool:
    """Whether a line of notes says an older value of a thing as if it held."""
    if not stands(line, thing.of) or stands(line, thing.now):
        return False
    return any(stands(line, value) and day not in line and "no longer" not in line for value, day in thing.old)


def render(found: Mapping[tuple[str, int], Counts]) -> Iterator[str]:
    """A table: a row for each policy and number of compactions."""
    wide = max(len(name) for name, _ in found)
    yield f"{'':<{wide}}  after  " + "  ".join(f"{each:>9}" for each in ("current", "dated", "undated", "wrong"))
    for (name, passes), counts in found.items():
        cells = (f"{sum(counts[each])}/{len(counts[each])}" for each in ("current", "dated", "undated", "wrong"))
        yield f"{name:<{wide}}  {passes:>5}  " + "  ".join(f"{each:>9}" for each in cells)
