"""A long conversation written from a seed: who says what, what the tools return, what is needed again when.

It goes by episodes of some twenty turns, each in one manner: prose, code, logs or JSON in English, or
Chinese, Russian, Hindi. About every third turn says something that a later one needs: half of it said by a
person, a third by the model, the rest only by a tool. It is asked for again some 30, some 80 or some 200
turns later, which is about one, three and ten compactions (6 : 3 : 1), always after it has left the tail.
One value in five that people or the model said is replaced by another before that, a dozen turns or more
after it was said. Decisions and rules are never asked for; they are to hold all the time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from tests.bench.context import bulk
from tests.bench.context.facts import Fact, Facts, Speaker
from tests.bench.context.wording import MODEL, PERSON, PINS, QUESTIONS

EPISODE: Final = 20  # turns
MANNERS: Final = ("prose", "code", "zh", "log", "ru", "json", "hi")
_DISTANCES: Final = ((28, 45), (65, 100), (170, 230))  # turns until something is needed again
_SHARES: Final = (6, 3, 1)
_SPEAKERS: Final[tuple[tuple[Speaker, int], ...]] = (("user", 50), ("assistant", 35), ("result", 12), ("dump", 3))
_PAUSES: Final = ((5, 20), (20, 60), (60, 240))  # seconds between a reply and what the person says next
_SECRETS: Final = (
    "sk-proj-{0:032x}",
    "ghp_{0:036x}",
    "AKIA{1}",
    "xoxb-{0:024x}",
    "the database password is hunter-{2}",
    "glpat-{0:024x}",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One tool call of the model and what it gets."""

    tool: str
    arguments: str  # JSON
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A person's words, the calls of the model (each step's in parallel) and its answer.

    `plants` are said in this turn, `asks` are needed in it. `pause`: seconds that pass before it.
    """

    number: int
    language: str
    said: str
    steps: Sequence[Sequence[Use]]
    reply: str
    pause: int
    plants: Sequence[Fact]
    asks: Sequence[Fact]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A conversation. `pins` are rules that the person pins before it begins;
    `secrets` are credentials that were said in it, and how. `needed`: the last turn that asks
    for a fact, by the fact's number."""

    seed: int
    turns: Sequence[Turn]
    pins: Sequence[str]
    secrets: Mapping[str, str]
    needed: Mapping[int, int]
    results: Mapping[tuple[str, str], str] = field(repr=False)  # of every call: by tool and argument


def write(seed: int, turns: int) -> Trace:
    """The conversation of a seed, `turns` turns long."""
    return _Writer(seed, turns).write()


class _Writer:
    def __init__(self, seed: int, turns: int) -> None:
        self._rng = Random(seed)
        self._facts = Facts(self._rng)
        self._count = turns
        self._asks: dict[int, list[Fact]] = {}
        self._changes: dict[int, list[Fact]] = {}
        self._replaced: dict[int, Fact] = {}  # by the number of the fact whose place it took
        self._secrets: dict[str, str] = {}
        self._results: dict[tuple[str, str], str] = {}
        self._seed = seed

    def write(self) -> Trace:
        made = [self._turn(number) for number in range(self._count)]
        needed = {fact.number: turn.number for turn in made for fact in turn.asks}
        return Trace(
            seed=self._seed,
            turns=made,
            pins=PINS,
            secrets=self._secrets,
            needed=needed,
            results=self._results,
        )

    def _turn(self, number: int) -> Turn:
        rng = self._rng
        manner = MANNERS[number // EPISODE % len(MANNERS)]
        language = manner if manner in PERSON else "en"
        plants = [*self._planted(number, language), *self._changed(number)]
        asks = [self._present(fact) for fact in self._asks.get(number, ())]
        said = [rng.choice(PERSON[language])]
        said += [fact.statement for fact in plants if fact.speaker == "user"]
        said += [rng.choice(QUESTIONS[fact.language]).format(subject=fact.subject) for fact in asks]
        said += self._in_passing()
        reply = [*rng.sample(MODEL[language], k=rng.randrange(1, 4))]
        reply += [fact.statement for fact in plants if fact.speaker == "assistant"]
        reply += self._in_passing()
        rng.shuffle(reply)
        return Turn(
            number=number,
            language=language,
            said=self._with_bulk(manner, " ".join(said)) if not asks else " ".join(said),
            steps=self._steps(number, manner, [fact for fact in plants if fact.speaker in ("result", "dump")]),
            reply=" ".join(reply),
            pause=rng.randrange(*rng.choice(_PAUSES)),
            plants=plants,
            asks=list({fact.number: fact for fact in asks}.values()),
        )

    # -- what matters later -----------------------------------------------------------------

    def _planted(self, number: int, language: str) -> list[Fact]:
        rng, made = self._rng, []
        if number % EPISODE == 7:
            made.append(self._facts.decision(language))
        if number % EPISODE == 13:
            made.append(self._facts.rule(language))
        if number % 3 == 1:
            speaker = rng.choices([one for one, _ in _SPEAKERS], [share for _, share in _SPEAKERS])[0]
            fact = self._facts.identifier(language, speaker)
            made.append(fact)
            distance = rng.randrange(*rng.choices(_DISTANCES, _SHARES)[0])
            self._asks.setdefault(number + distance, []).append(fact)
            if fact.speaker in ("user", "assistant") and rng.randrange(5) == 0:
                self._changes.setdefault(number + rng.randrange(12, distance - 12), []).append(fact)
        return made

    def _changed(self, number: int) -> list[Fact]:
        changes = []
        for old in self._changes.get(number, ()):
            new = self._facts.changed(old)
            self._replaced[old.number] = new
            changes.append(new)
        return changes

    def _present(self, fact: Fact) -> Fact:
        """Return the present fact in place of a former one."""
        return self._replaced.get(fact.number, fact)

    # -- what does not ----------------------------------------------------------------------

    def _in_passing(self) -> list[str]:
        """Now and then a person or the model names something that will never be asked for."""
        rng = self._rng
        if rng.randrange(4):
            return []
        noun = rng.choice(("ticket", "file", "host", "change"))
        value = {
            "ticket": f"TMP-{rng.randrange(1_000, 9_999)}",
            "file": f"/scratch/note-{rng.randrange(1_000, 9_999)}.txt",
            "host": f"node-{rng.randrange(100, 999)}.example.net",
            "change": f"{rng.getrandbits(28):07x}",
        }[noun]
        return [f"(That was {noun} {value}, done with.)"]

    def _with_bulk(self, manner: str, said: str) -> str:
        """Now and then a person pastes something, and one day a credential."""
        rng = self._rng
        shape = {"code": bulk.code, "log": bulk.log, "json": bulk.rows}.get(manner)
        if shape is not None and rng.randrange(4) == 0:
            said = f"{said}\n\n{shape(rng, rng.randrange(6, 30))}"
        if rng.randrange(25) == 0:
            said = f"{said}\nFor the login: {self._secret()}"
        return said

    def _secret(self) -> str:
        rng = self._rng
        letters = "".join(rng.choice("ABCDEFGHJKLMNPQRSTUVWXYZ234567") for _ in range(16))
        text = rng.choice(_SECRETS).format(rng.getrandbits(96), letters, f"{rng.getrandbits(40):010x}")
        self._secrets[text.split()[-1]] = text
        return text

    def _steps(self, number: int, manner: str, told: Sequence[Fact]) -> list[list[Use]]:
        rng = self._rng
        often = 2 if manner in ("code", "log", "json") else 5
        steps = [
            [self._use(number) for _ in range(rng.randrange(1, 4))]
            for _ in range(rng.randrange(1, 3) if rng.randrange(often) == 0 else 0)
        ]
        uses = [self._telling(number, fact) for fact in told]
        return [*steps, uses] if uses else steps

    def _use(self, number: int) -> Use:
        """Look at an episode's subject again and again; the subject does not change meanwhile."""
        tool, argument, shape = self._rng.choice(bulk.SHAPES)
        name = f"/srv/{tool.replace('_', '-')}/part-{number // EPISODE}-{self._rng.randrange(6)}"
        known = self._results.get((tool, name))
        return self._noted(tool, {argument: name}, known or shape(self._rng, self._rng.choice((4, 12, 25, 60))))

    def _telling(self, number: int, fact: Fact) -> Use:
        """A tool's result that says a fact: shortly, or somewhere in a long one."""
        arguments = {"command": f"work on {fact.subject}"}
        if fact.speaker == "result":
            return self._noted("run", arguments, f"done: {fact.subject} = {fact.value}")
        lines = bulk.log(self._rng, 40).splitlines()
        lines.insert(self._rng.randrange(10, 30), f"{fact.subject} = {fact.value}")
        return self._noted("run", arguments, "\n".join(lines))

    def _noted(self, tool: str, arguments: Mapping[str, str], result: str) -> Use:
        (key,) = arguments.values()
        self._results[(tool, key)] = result
        return Use(tool=tool, arguments=json.dumps(arguments, ensure_ascii=False), result=result)
