"""Both compressors on the same transcripts, in turns, and both gateways (`gateway.py`): `make bench-peers`.

Each side runs in a process of its own, both several times in turns; of each process the first pass is
not counted. CPU time, because neither waits for anything and other programs disturb it least. Both are
told the same window, threshold (0.75: on this window theirs takes no less), tail and protected messages,
and ask the same summariser, which answers at once; `by rule` is what each does without a model. Ours is
given the counts and identifiers that the store keeps with every message; `nothing stored` is a pass that
has to find them all. Memory is `tracemalloc`'s peak beside the transcript. Tokens are tiktoken's (o200k_base).
What either time contains is printed behind the tables (`CONTENTS`), so that nobody takes them for the same work.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from gateway.runtime.tokens import TokenCounter
from tests.bench.compaction import NOTES
from tests.bench.peers import gateway
from tests.bench.peers.transcripts import REQUEST, given, stored
from tests.bench.start import PROJECT
from tests.bench.table import Row, milliseconds, render

THEIR_PYTHON: Final = PROJECT / "build" / "peers" / "bin" / "python"
CASES: Final = (("talk", 2_000), ("talk", 20_000), ("work", 2_000), ("work", 20_000), ("Chinese", 2_000))
SETTINGS: Final = {
    "window": 200_000,
    "threshold": 0.75,
    "target_ratio": 0.20,
    "protect_first_n": 3,
    "protect_last_n": 20,
}
ROUNDS: Final = 3  # processes of each side
PASSES: Final = 4  # in each process; the first is to load and compile what the others find ready
GOAL: Final = "goal ≥ 10"
CONTENTS: Final = """\
What a time contains: one compress() from the transcript to the new list, without making the engine and without
the model, whose place is taken by notes that are there at once. Both sides choose what stays, shorten its tool
results, write all that the summariser is to read, redact it, build the prompt, redact the notes and assemble.
- What is read differs. Ours: the middle as it was, each result cut to its ends, at most 160,000 characters in
  all. Theirs: the middle after its results became one line each, without a cap: less where the transcript is
  short (half of ours in 2,000 messages of talk), ten times as much where it is long, and more than the window
  takes; a real call would then fail. So at 20,000 a part of the ratio is our cap.
- Only ours: the notes are verified, identifiers they lack are looked up in the middle, redacted in their
  context and appended, and what is new is counted by the tokenizer. Theirs counts characters, all messages again
  and again. Ours is given each message's count and identifiers, which its store keeps; `nothing stored` is the
  same pass without them. Nothing about redaction is stored on either side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One way to compress: whose, and with what."""

    name: str
    theirs: bool = False
    stored: bool = False
    notes: str | None = NOTES


OURS = Side(name="ours", stored=True)
COLD = Side(name="ours, nothing stored")
THEIRS = Side(name="theirs", theirs=True)
OUR_RULE = Side(name="ours by rule", stored=True, notes=None)
THEIR_RULE = Side(name="theirs by rule", theirs=True, notes=None)


@dataclass(slots=True)
class Case:
    """One transcript, and what came of it on each side."""

    kind: str
    count: int
    folder: Path
    messages: list[dict[str, Any]]
    reports: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Return the case's name in the tables."""
        return f"{self.kind}, {len(self.messages):,} messages"

    def run(self, side: Side, *, passes: int, traced: bool = False) -> dict[str, Any]:
        """One process; its report is kept unless memory was traced, which takes time."""
        job = {
            **SETTINGS,
            "messages": str(self.folder / ("stored.json" if side.stored else "plain.json")),
            "result": str(self.folder / f"{side.name}.json"),
            "notes": side.notes,
            "passes": passes,
            "traced": traced,
        }
        path = self.folder / "job.json"
        path.write_text(json.dumps(job))
        report = _process(side, path)
        if not traced:
            self.reports.setdefault(side.name, []).append(report)
        return report

    def seconds(self, side: Side) -> float:
        """The median of all passes but the first of each process."""
        return median(one for report in self.reports[side.name] for one in report["seconds"][1:])

    def result(self, side: Side) -> list[dict[str, Any]]:
        """The messages that a side gave."""
        return json.loads((self.folder / f"{side.name}.json").read_text())


def _process(side: Side, job: Path) -> dict[str, Any]:
    """Run one job; raises CalledProcessError with what the process said if it fails."""
    home = job.parent.parent
    if side.theirs:
        command = [str(THEIR_PYTHON), "-I", str(PROJECT / "tests" / "bench" / "peers" / "theirs.py"), str(job)]
        surroundings = {"PATH": os.environ["PATH"], "HOME": str(home), "HERMES_HOME": str(home / "hermes")}
    else:
        command = [sys.executable, "-m", "tests.bench.peers.ours", str(job)]
        surroundings = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(
        command, env=surroundings, cwd=home if side.theirs else PROJECT, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-2_000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """The parts that are named, or both."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers")
    parser.add_argument("parts", nargs="*", metavar="compressor|gateway")
    parser.add_argument("--write", action="store_true", help="keep the gateways' figures for docs/performance.md")
    given = parser.parse_args()
    if not THEIR_PYTHON.exists():
        sys.exit("hermes-agent is not installed: run `make bench-peers`, which installs it into build/peers.")
    parts = given.parts or ("compressor", "gateway")
    if "compressor" in parts:
        _compressors()
    if "gateway" in parts:
        gateway.main(THEIR_PYTHON, write=given.write)


def _compressors() -> None:
    """Two tables, and what they compare."""
    counter = TokenCounter()
    with tempfile.TemporaryDirectory() as folder:
        cases = [_prepared(Path(folder), kind, count, counter) for kind, count in CASES]
        for case in cases:
            for _ in range(ROUNDS):
                for side in (OURS, THEIRS, OUR_RULE, THEIR_RULE):
                    case.run(side, passes=PASSES)
            case.run(COLD, passes=2)
        print(render("compress(): Legato beside hermes-agent", [row for case in cases for row in _speed(case)]))
        print(render("What comes of it", [row for case in cases for row in _outcome(case, counter)]))
        print(CONTENTS)


def _prepared(folder: Path, kind: str, count: int, counter: TokenCounter) -> Case:
    case = Case(kind, count, folder / f"{kind}{count}", given(kind, count))
    case.folder.mkdir()
    (case.folder / "plain.json").write_text(json.dumps(case.messages))
    (case.folder / "stored.json").write_text(json.dumps(stored(case.messages, counter)))
    return case


def _speed(case: Case) -> Iterator[Row]:
    ours, theirs = case.seconds(OURS), case.seconds(THEIRS)
    yield Row(f"{case.label}: ours", milliseconds(ours))
    yield Row(f"{case.label}: theirs", milliseconds(theirs), f"{theirs / ours:.1f} times ours; {GOAL}")
    cold = case.seconds(COLD)
    yield Row(f"{case.label}: ours, nothing stored", milliseconds(cold), f"theirs takes {theirs / cold:.2f} of it")
    ours, theirs = case.seconds(OUR_RULE), case.seconds(THEIR_RULE)
    yield Row(f"{case.label}: ours by rule", milliseconds(ours))
    yield Row(f"{case.label}: theirs by rule", milliseconds(theirs), f"{theirs / ours:.1f} times ours")
    ours, theirs = (case.run(side, passes=1, traced=True)["peak"] / 1e6 for side in (OURS, THEIRS))
    yield Row(f"{case.label}: memory, ours", f"{ours:.1f} MB")
    yield Row(f"{case.label}: memory, theirs", f"{theirs:.1f} MB", f"{theirs / ours:.1f} times ours")


def _outcome(case: Case, counter: TokenCounter) -> Iterator[Row]:
    before = _tokens(case.messages, counter)
    for side in (OURS, THEIRS):
        result, report = case.result(side), case.reports[side.name][-1]
        kept = "kept" if _has_request(result) else "LOST"
        said = f"{before:,} tokens to {_tokens(result, counter):,}; last request {kept}"
        yield Row(f"{case.label}: {side.name}", f"to {len(result):,}", said)
        off = report["own_count"] / before
        yield Row(f"{case.label}: {side.name}, own count", f"{report['own_count']:,}", f"{off:.2f} of tiktoken's")
        yield Row(f"{case.label}: {side.name}, for the model", f"{report['read']:,} characters")


def _tokens(messages: Sequence[dict[str, Any]], counter: TokenCounter) -> int:
    return sum(counter.message(message) for message in messages)


def _has_request(messages: Sequence[dict[str, Any]]) -> bool:
    return any(REQUEST in str(message.get("content")) for message in messages if message["role"] == "user")


if __name__ == "__main__":
    main()
