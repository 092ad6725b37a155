"""Files of runs that the tests of `legato trajectories compress` share."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gateway.trajectories.run import Order, Report
from tests.support.trajectory_runs import line_of, worked

HOSTILE = [
    b"not JSON\n",
    b'{"conversations": [\xff\xfe]}\n',
    b'{"conversations": [{"from": "human", "value": null}]}\n',
    b'{"messages": []}\n',
    b"[1, 2]\n",
    b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
    b'{"conversations": [{"from": "gpt", "value": "cut off...\n',
    b"\x00\x01\x02\n",
]


def many(count: int, *, seed: int = 1) -> list[bytes]:
    """Lines of runs short and long, some blank, some no runs."""
    rng = random.Random(seed)
    made = [line_of(worked(rng.randrange(16)), id=number) for number in range(count)]
    for place in range(7, count, 11):
        made[place] = rng.choice([b"\n", b"  \r\n", *HOSTILE])
    return made


def written(folder: Path, lines: Sequence[bytes], name: str = "in.jsonl") -> Path:
    """A file of these lines."""
    path = folder / name
    path.write_bytes(b"".join(lines))
    return path


def order(folder: Path, **more: Any) -> Order:
    """From in.jsonl to out.jsonl."""
    return Order(source=folder / "in.jsonl", output=folder / "out.jsonl", **more)


def metrics_of(report: Report) -> dict[str, Any]:
    """The metrics file."""
    return json.loads(report.metrics.read_text())  # type: ignore[no-any-return]


def left_behind(folder: Path) -> list[str]:
    """Files that only an unfinished run has."""
    return sorted(path.name for path in folder.rglob("*") if path.suffix in (".part", ".progress"))
