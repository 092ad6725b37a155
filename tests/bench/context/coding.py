"""Runs of an agent that works on code, and what their later steps need of the earlier ones: `--coding`.

The code is that of open packages on this machine, cut into searches, views, test runs and edits as such agents see
them. A third of the steps come back to a place that was looked at long before: its file, class, function and exception
are needed then. A place may only have been printed in somebody else's traceback.
"""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Final

from gateway.context import identifiers
from gateway.domain.message import Message, assistant, note_of, noted, tool_result, user
from gateway.runtime.tokens import TokenCounter
from tests.bench.context import drive
from tests.bench.context.facts import stands

PACKAGES: Final = ("anyio", "prompt_toolkit", "markdown_it", "hypothesis")
STEPS: Final = 220
_FILE: Final = (3_000, 60_000)  # characters
_AGAIN: Final = 0.35  # of the steps
_PRINTED: Final = 0.2  # of the places that are come back to were only printed
_FIRST: Final = (
    "{cls}.{func} passes its argument to {callee} unchecked; that explains the {exc}.",
    "I suspect {func} of {cls}: the failing case goes through it, and {callee} is called before the check.",
    "In {path} the class {cls} looks right except for {func}, which raises {exc} too early.",
)
_BACK: Final = (
    "Back to {func} in {cls}: what I saw elsewhere does not explain the {exc}.",
    "I have to look at {cls}.{func} in {path} once more before I go on.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A method in a file, an exception that it raises and something that it calls."""

    path: str
    cls: str
    func: str
    exc: str
    callee: str
    line: int
    end: int
    lines: Sequence[str]

    def said(self, form: str) -> str:
        """A sentence about it."""
        return form.format(cls=self.cls, func=self.func, exc=self.exc, callee=self.callee, path=self.path)

    def view(self, before: int, behind: int) -> str:
        """Its lines, numbered, with some before and behind them."""
        first, last = max(1, self.line - before), min(len(self.lines), self.end + behind)
        return "\n".join(f"{number:>6}\t{self.lines[number - 1]}" for number in range(first, last + 1))[:9_000]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Messages, and by the place of a message what it needs: kind and value."""

    messages: Sequence[Message]
    needs: dict[int, list[tuple[str, str]]]


@cache
def places(package: str) -> list[Place]:
    """The methods of a package that an agent may look at, one of each name."""
    spec = find_spec(package)
    assert spec is not None
    folder = Path(str(spec.origin)).parent
    found: dict[tuple[str, str], Place] = {}
    for file in sorted(folder.rglob("*.py")):
        text = file.read_text(encoding="utf-8", errors="replace")
        if _FILE[0] < len(text) < _FILE[1]:
            for place in _in_file(f"/repo/{file.relative_to(folder.parent)}", text):
                found.setdefault((place.cls, place.func), place)
    return list(found.values())


def _in_file(path: str, text: str) -> Iterator[Place]:
    lines = text.splitlines()
    classes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef))
    for owner in classes:
        for node in owner.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("__") and len(node.name) > 5:
                raised = [
                    one.exc.func.id
                    for one in ast.walk(node)
                    if isinstance(one, ast.Raise)
                    and isinstance(one.exc, ast.Call)
                    and isinstance(one.exc.func, ast.Name)
                ]
                called = [
                    one.func.attr
                    for one in ast.walk(node)
                    if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and "_" in one.func.attr
                ]
                yield Place(
                    path=path,
                    cls=owner.name,
                    func=node.name,
                    exc=(raised or ["TypeError"])[0],
                    callee=(called or [node.name])[0],
                    line=node.lineno,
                    end=node.end_lineno or node.lineno,
                    lines=lines,
                )


def run(package: str, seed: int, counter: TokenCounter, steps: int = STEPS) -> Run:
    """One agent's work on a package."""
    return _Agent(package, seed, counter).work(steps)


class Worker:
    """What agents of every kind do: say something, call a tool, need something."""

    def __init__(self, seed: int, counter: TokenCounter) -> None:
        self._rng = Random(seed)
        self._counter = counter
        self._messages: list[Message] = []
        self._needs: dict[int, list[tuple[str, str]]] = {}

    def _call(self, said: str, tool: str, arguments: dict[str, object], result: str) -> None:
        name = f"call_{len(self._messages)}"
        call = {"id": name, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
        self._add(assistant(said or None, [call]))  # type: ignore[list-item]
        self._add(tool_result(name, result))

    def _add(self, message: Message) -> None:
        self._messages.append(
            noted(
                message,
                id=str(len(self._messages)),
                at=1.0 + len(self._messages),
                tokens=self._counter.message(message),
                identifiers=identifiers.found(message),
            )
        )


class _Agent(Worker):
    def __init__(self, package: str, seed: int, counter: TokenCounter) -> None:
        super().__init__(seed, counter)
        self._places = list(places(package))
        self._rng.shuffle(self._places)
        self._visited: list[Place] = []
        self._printed: list[Place] = []

    def work(self, steps: int) -> Run:
        first = self._places[0]
        self._add(
            user(
                f"{first.cls} misbehaves since 3.{self._rng.randrange(20)}.1: `{first.func}` ends with {first.exc} "
                f"where it used to return nothing. See {first.path}. Please find the cause and mend it, with a test."
            )
        )
        for number in range(steps):
            if len(self._visited) > 6 and self._rng.random() < _AGAIN:
                self._come_back()
            else:
                self._look(self._places[number % len(self._places)])
        return Run(messages=self._messages, needs=self._needs)

    def _look(self, place: Place) -> None:
        rng = self._rng
        others = rng.sample(self._places, min(12, len(self._places)))
        hits = [f"{one.path}:{one.line}:{one.lines[one.line - 1]}" for one in (place, *others)]
        rng.shuffle(hits)
        self._call("", "grep", {"pattern": place.func, "path": "/repo"}, "\n".join(hits))
        self._call("", "read_file", {"path": place.path, "offset": place.line - 9}, place.view(9, 40))
        self._act(place, place.said(rng.choice(_FIRST)))
        self._visited.append(place)

    def _come_back(self) -> None:
        rng = self._rng
        known = self._printed if self._printed and rng.random() < _PRINTED else self._visited
        place = rng.choice(known[:-3] or known)
        needed = [("path", place.path), ("class", place.cls), ("function", place.func), ("exception", place.exc)]
        self._needs[len(self._messages)] = needed
        said = place.said(rng.choice(_BACK))
        self._call(said, "read_file", {"path": place.path, "offset": place.line - 20}, place.view(20, 20))
        self._act(place, "")

    def _act(self, place: Place, said: str) -> None:
        """Run a test or make a change, or only say something."""
        rng = self._rng
        chance = rng.random()
        if chance < 0.45:
            other = rng.choice(self._places)
            command = {"command": f"python -m pytest -q -k {place.func}"}
            self._call(said, "run", command, self._failure(place, other))
            self._printed.append(
                Place(
                    path=other.path, cls=other.cls, func=other.func, exc=place.exc, callee=other.callee,
                    line=other.line, end=other.end, lines=other.lines,
                )
            )  # fmt: skip
        elif chance < 0.8:
            old = place.lines[place.line - 1 : place.line + 3]
            patch = "\n".join([
                f"--- a{place.path}", f"+++ b{place.path}", f"@@ -{place.line},4 +{place.line},6 @@ class {place.cls}:",
                *(f" {line}" for line in old), "+        if not value:", "+            return None",
            ])  # fmt: skip
            self._call(said, "apply_patch", {"patch": patch}, f"Patched {place.path}, 1 hunk.")
        elif said:
            self._add(assistant(said))
            self._add(user("Go on."))

    def _failure(self, place: Place, other: Place) -> str:
        rng = self._rng
        return "\n".join([
            "." * rng.randrange(1, 40) + "F",
            "=" * 30 + " FAILURES " + "=" * 30,
            "Traceback (most recent call last):",
            f'  File "{place.path}", line {place.line + 2}, in {place.func}',
            f"    {place.lines[min(len(place.lines) - 1, place.line + 1)].strip()}",
            f'  File "{other.path}", line {other.line + 1}, in {other.func}',
            f"    {other.lines[min(len(other.lines) - 1, other.line)].strip()}",
            f"{place.exc}: {place.callee} got nothing",
            f"1 failed, {rng.randrange(2, 90)} passed in {rng.random() * 9:.2f}s",
        ])  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One thing that a step needed. `old`: a compaction or more lies in between."""

    kind: str
    old: bool
    in_view: bool


async def drive_run(work: Run, keeper: drive.Keeper, window: int) -> list[Probe]:
    """Lead a keeper through a run, and look whether what is needed stands in view."""
    probes, total, last = [], 0, dict[str, int]()
    near, far = drive.threshold_of(window) // 5, drive.span_of(window)
    values = {value for needs in work.needs.values() for _, value in needs}
    for place, message in enumerate(work.messages):
        if needs := work.needs.get(place):
            view = "\n".join(map(drive.readable, keeper.transcript))
            for kind, value in needs:
                if value in last and total - last[value] > near:
                    probes.append(Probe(kind=kind, old=total - last[value] > far, in_view=stands(view, value)))
        keeper.transcript.append(message)
        total += note_of(message)["tokens"]
        text = drive.readable(message)
        last |= {value: total for value in values if value in text and stands(text, value)}
        if message["role"] != "assistant":
            await keeper.fit()
    return probes


def measure(
    window: int, policy: drive.Policy, counter: TokenCounter, works: Sequence[Run]
) -> tuple[list[Probe], float]:
    """What a policy keeps of the runs, and what a pass leaves of the threshold."""
    probes, passes = [], list[int]()
    for work in works:
        keeper = policy.keeper(None, window, counter)  # type: ignore[arg-type]  # no conversation is asked for
        probes += asyncio.run(drive_run(work, keeper, window))
        passes += keeper.passes
    return probes, sum(passes) / max(1, len(passes)) / drive.threshold_of(window)


def share(probes: Sequence[Probe], *, old: bool = False, kind: str = "") -> float:
    """Return the share in view."""
    chosen = [each.in_view for each in probes if (each.old or not old) and kind in ("", each.kind)]
    return sum(chosen) / max(1, len(chosen))


def render(works: Sequence[Run], windows: Sequence[int], counter: TokenCounter) -> Iterator[str]:
    """A line for each window and way."""
    for window in sorted(windows):
        for policy in drive.POLICIES:
            if policy.name.startswith("ours, e"):
                probes, left = measure(window, policy, counter, works)
                known = dict.fromkeys(each.kind for each in probes)
                kinds = ", ".join(f"{kind} {share(probes, kind=kind):.2f}" for kind in known)
                yield (
                    f"{window:>7,}  {policy.name:<20}  in view {share(probes):.3f}, of old ones "
                    f"{share(probes, old=True):.3f} ({kinds}); a pass leaves {left:.2f}"
                )
