"""Both gateways at the same known sessions, in turns, the agent answering at once.

Each side has a process for each number of sessions, all of them alive to the end; of each process the first round is
not counted. A round: 20 chats at once, then one alone, all of them with sessions that the store knows. Theirs gets
fewer messages in a round, because one takes a second at 5,000 sessions; that changes no figure of a message.

What a time contains. Both: from the platform's adapter (a stub) through access, the session, its transcript read and
written, to the reply in the adapter's hand, every commit on the disk before the next thing (SQLite's WAL, synced).
- Only ours: the model's part of a turn (the prompt, the request, the stream of an answer that takes no time, costs),
  and the message and the reply journalled before they are acted on, so that a crash loses and repeats neither.
- Only theirs: nothing of a model, an agent or tools; their index of all sessions written again, twice a message, as
  rows and as a JSON file. A wait ends when the reply is handed over, though their chat may speak again only when the
  turn ended a little later; rates and CPU contain that on both sides.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from tests.bench import figures
from tests.bench.start import PROJECT
from tests.bench.table import Row, milliseconds, render
from tests.bench.world import REPLY, said

SIZES: Final = (0, 1_000, 5_000)  # of both; what follows is ours alone, for the plot
MORE: Final = (10, 10_000, 100_000)
CHATS: Final = 20
ROUNDS: Final = 5  # the first does not count
LOADS: Final = {"ours": (40, 40), "theirs": (2, 5)}  # messages of each chat at once, and of the single one
_CONFIG: Final = """\
security: {tirith_enabled: false}
model: {default: bench, provider: custom, base_url: "http://127.0.0.1:9/v1", context_length: 1000000}
"""


@dataclass(slots=True, kw_only=True)
class _Side:
    """A running process, and what its rounds took."""

    name: str
    sessions: int
    process: subprocess.Popen[str]
    rounds: list[dict[str, Any]] = field(default_factory=list)

    def line(self) -> str:
        assert self.process.stdout is not None
        found = self.process.stdout.readline()
        if not found:
            raise RuntimeError(f"{self.name} at {self.sessions:,} sessions ended with {self.process.wait()}")
        return found

    def round(self, load: tuple[int, int]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("{} {}\n".format(*load))
        self.process.stdin.flush()
        self.rounds.append(json.loads(self.line()))

    def figures(self) -> dict[str, float | str]:
        """Messages a second, CPU seconds a message, and the wait of a single chat (p50)."""
        counted = self.rounds[1:]
        return {
            "side": self.name,
            "sessions": self.sessions,
            "rate": median(each["rate"] for each in counted),
            "cpu": median(each["cpu"] for each in counted),
            "p50": median(wait for each in counted for wait in each["alone"]),
        }


def measure(their_python: Path, sizes: Sequence[int] = SIZES, more: Sequence[int] = MORE) -> list[dict[str, Any]]:
    """The figures of each side at each number of sessions."""
    with ExitStack() as stack:
        sides = [_started(stack, their_python, name, size) for size in sizes for name in LOADS]
        sides += [_started(stack, their_python, "ours", size) for size in more]
        for side in sides:
            side.line()  # it is ready
        for _ in range(ROUNDS):
            for side in sides:
                side.round(LOADS[side.name])
        return [side.figures() for side in sides]


def _started(stack: ExitStack, their_python: Path, name: str, sessions: int) -> _Side:
    home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    job = home / "job.json"
    job.write_text(json.dumps({"sessions": sessions, "chats": CHATS, "said": said(1), "reply": REPLY}))
    if name == "theirs":
        (home / "config.yaml").write_text(_CONFIG)
        command = [str(their_python), "-I", str(PROJECT / "tests" / "bench" / "peers" / "gateway_theirs.py")]
        surroundings = {"PATH": os.environ["PATH"], "HOME": str(home), "HERMES_HOME": str(home)}
        surroundings |= {"GATEWAY_ALLOW_ALL_USERS": "true", "MATTERMOST_HOME_CHANNEL": "known0"}
    else:
        command = [sys.executable, "-m", "tests.bench.peers.gateway_ours"]
        surroundings = {**os.environ, "PYTHONPATH": str(PROJECT)}
    process = subprocess.Popen(
        [*command, str(job)],
        env=surroundings,
        cwd=home if name == "theirs" else PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    stack.callback(process.wait)
    stack.callback(process.kill)
    return _Side(name=name, sessions=sessions, process=process)


def rows(found: Sequence[dict[str, Any]]) -> Iterator[Row]:
    """Three lines for each number of sessions."""
    theirs = {each["sessions"]: each for each in found if each["side"] == "theirs"}
    for ours in sorted((each for each in found if each["side"] == "ours"), key=lambda each: each["sessions"]):
        label, other = f"{ours['sessions']:>7,} known sessions", theirs.get(ours["sessions"])
        yield Row(
            f"{label}: {CHATS} chats",
            f"{ours['rate']:,.0f}/s",
            f"theirs {other['rate']:.1f}/s: ours answers {ours['rate'] / other['rate']:.0f} times as many"
            if other
            else "",
        )
        for key, what in (("cpu", "CPU a message"), ("p50", "one chat, p50")):
            against = f"theirs {milliseconds(other[key])}: {other[key] / ours[key]:.0f} times ours" if other else ""
            yield Row(f"{label}: {what}", milliseconds(ours[key]), against)


def main(their_python: Path, *, write: bool) -> None:
    """The table, and what it compares."""
    found = measure(their_python)
    print(render("Gateways: Legato beside hermes-agent, the agent answering at once", list(rows(found))))
    print((__doc__ or "").partition("\n\n")[2])
    if write:
        figures.keep("gateways", found)
