"""Runs of another kind of agent, with a shell and a window of a file, on packages that nobody tuned for: `--coding`.

It reproduces a report in a script of its own, reads tracebacks, and comes back to test names, versions, constants,
commits and invoice numbers that stood in a report, a log or its own words. Measures are those of `coding`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import Final

from gateway.domain.message import assistant, user
from gateway.runtime.tokens import TokenCounter
from tests.bench.context.coding import Place, Run, Worker, places

UNSEEN: Final = ("redis", "apscheduler", "rich", "aiohttp")
_REPORT: Final = """<issue title="{cls}.{func} fails for {ticket}">
After the upgrade to {version} our nightly job stops with {exc}. Steps: call `{func}` twice with `{constant}` set.
Last good commit {commit}. The failing record is Invoice {invoice}.
</issue>
Fix it so that `{test}` passes."""


def run(package: str, seed: int, counter: TokenCounter, steps: int) -> Run:
    """One agent's work on a package."""
    return _ShellAgent(package, seed, counter).work(steps)


class _ShellAgent(Worker):
    """Works with `open`, `search_dir`, `edit` and `bash`."""

    def __init__(self, package: str, seed: int, counter: TokenCounter) -> None:
        super().__init__(seed, counter)
        self._package = package
        self._places = list(places(package))
        self._rng.shuffle(self._places)
        self._seen: list[tuple[Place, dict[str, str]]] = []

    def work(self, steps: int) -> Run:
        """Reports come one after the other; each is looked into for some steps."""
        for number in range(steps // 5):
            place = self._places[number % len(self._places)]
            facts = self._facts(place)
            if number % 3:
                self._add(user(f"Next is {facts['ticket']}."))
                self._bash(f"gh issue view {facts['ticket']}", _REPORT.format(**facts))
            else:
                self._add(user(_REPORT.format(**facts)))
            for step in self._rng.sample((self._find, self._open, self._reproduce, self._edit), 4):
                step(place, facts)
            self._seen.append((place, facts))
            if len(self._seen) > 3:
                self._come_back()
            self._add(assistant(f"That should do for {facts['ticket']}."))
        return Run(messages=self._messages, needs=self._needs)

    def _facts(self, place: Place) -> dict[str, str]:
        rng = self._rng
        module = place.path.rsplit("/", 1)[1].removesuffix(".py")
        snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", place.cls).upper().strip("_")
        return {
            "cls": place.cls, "func": place.func, "exc": place.exc, "path": place.path, "callee": place.callee,
            "version": f"{rng.randrange(1, 9)}.{rng.randrange(30)}.{rng.randrange(20)}",
            "constant": f"{snake}_{rng.choice(('LIMIT', 'TIMEOUT', 'MODE', 'SIZE'))}_{rng.randrange(10, 99)}",
            "commit": f"{rng.getrandbits(40):010x}",
            "invoice": f"2024-{rng.randrange(100, 999)}-{rng.randrange(10, 99)}",
            "ticket": f"{module.upper().replace('_', '')[:6]}-{rng.randrange(1000, 9999)}",
            "test": f"tests/test_{module}.py::Test{place.cls.strip('_')}::test_{place.func}",
        }  # fmt: skip

    def _find(self, place: Place, facts: dict[str, str]) -> None:
        hits = [f"{one.path} ({self._rng.randrange(1, 9)} matches)" for one in self._some(place, 14)]
        self._bash(f'search_dir "{place.func}" /repo', "\n".join(['Found 31 matches for "x" in /repo:', *hits]))

    def _open(self, place: Place, facts: dict[str, str]) -> None:
        shown = f"[File: {place.path} ({len(place.lines)} lines total)]\n(12 more lines above)\n{place.view(30, 45)}"
        self._bash(f"open {place.path} {place.line}", shown, f"{facts['constant']} is read somewhere in {place.cls}.")

    def _reproduce(self, place: Place, facts: dict[str, str]) -> None:
        module = place.path.removeprefix("/repo/").removesuffix(".py").replace("/", ".")
        script = f"from {module} import {place.cls}\n\n{place.cls}().{place.func}(mode={facts['constant']})\n"
        trace = ["Traceback (most recent call last):", '  File "/repo/reproduce.py", line 3, in <module>']
        trace += [
            f'  File "{one.path}", line {one.line + 2}, in {one.func}\n    {one.lines[one.line].strip()}'
            for one in self._some(place, 5)
        ]
        trace.append(f"{module}.{place.exc}: {place.callee} (package {self._package}=={facts['version']})")
        self._bash(f"cat > reproduce.py <<'EOF'\n{script}EOF\npython reproduce.py", "\n".join(trace))

    def _edit(self, place: Place, facts: dict[str, str]) -> None:
        body = "\n".join(place.lines[place.line - 1 : place.line + 12])
        self._bash(f"edit {place.line}:{place.line + 3}\n{body}\nend_of_edit", f"File updated.\n{place.view(20, 30)}")
        log = [f"{name} PASSED" for name in (self._facts(one)["test"] for one in self._some(place, 20))]
        self._bash("pytest -q tests", "\n".join([*log, f"{facts['test']} FAILED - {place.exc}", "1 failed, 20 passed"]))

    def _come_back(self) -> None:
        place, facts = self._rng.choice(self._seen[:-2])
        kinds = ("path", "cls", "func", "exc", "version", "constant", "commit", "invoice", "test", "ticket")
        names = {"cls": "class", "func": "function", "exc": "exception"}
        self._needs[len(self._messages)] = [(names.get(kind, kind), facts[kind]) for kind in kinds]
        said = f"One more look at {facts['ticket']}: {place.cls}.{place.func} with {facts['constant']}."
        self._bash(f"open {place.path} {place.line}", place.view(20, 25), said)

    def _some(self, place: Place, count: int) -> Sequence[Place]:
        rng: Random = self._rng
        chosen = [place, *rng.sample(self._places, min(count, len(self._places)))]
        rng.shuffle(chosen)
        return chosen

    def _bash(self, command: str, result: str, said: str = "") -> None:
        self._call(said, "bash", {"command": command}, result)
