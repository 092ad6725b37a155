"""Figures that `docs/performance.md` shows, in a file: a bench that is told `--write` keeps its own there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).with_name("figures.json")


def kept() -> dict[str, list[Any]]:
    """What each bench wrote, as rows."""
    found: dict[str, list[Any]] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return found


def keep(name: str, rows: Sequence[Any]) -> None:
    """Write one bench's rows in place of its last, each on a line; floats lose the digits that mean nothing."""
    short = json.loads(json.dumps(rows), parse_float=lambda digits: float(f"{float(digits):.4g}"))
    parts = [
        f"{json.dumps(each)}: [\n  " + ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in told) + "\n]"
        for each, told in sorted({**kept(), name: short}.items())
    ]
    FILE.write_text("{" + ",\n".join(parts) + "}\n", encoding="utf-8")
