"""`legato upgrade`: brings the store to this version, or tries that on a copy first."""

from __future__ import annotations

from typing import Any

from gateway.domain.wording import counted
from gateway.store.sqlite.rehearsal import Rehearsal

Row = dict[str, Any]


def rehearsal_row(found: Rehearsal) -> Row:
    """version, known, steps, seconds, bytes, needed_bytes, free_bytes, rows, differences, unindexed."""
    return {
        "version": found.version,
        "known": found.known,
        "steps": list(found.steps),
        "seconds": round(found.seconds, 3),
        "bytes": found.size,
        "needed_bytes": found.needed,
        "free_bytes": found.free,
        "rows": dict(found.rows),
        "differences": list(found.differences),
        "unindexed": found.unindexed,
    }


def is_fit(row: Row) -> bool:
    """Say whether a start would lose nothing, and has the room that it needs."""
    return not row["differences"] and row["needed_bytes"] <= row["free_bytes"]


def rehearsal_text(row: Row) -> str:
    """What a start would do."""
    if not row["steps"]:
        lines = [f"The store has version {row['version']}, which is this program's: a start changes nothing."]
    else:
        lines = [
            f"A start would bring the store from version {row['version']} to {row['known']} in {row['seconds']:.1f} "
            f"seconds ({counted(len(row['steps']), 'step')}).",
            f"It needs {_mb(row['needed_bytes'])} of room beside the store's {_mb(row['bytes'])}; the disk has "
            f"{_mb(row['free_bytes'])}.",
        ]
    if row["unindexed"]:
        lines.append(f"Then the search index is made anew beside the work, for {counted(row['unindexed'], 'message')}.")
    lines += [f"NOT AS IT WAS: {each}." for each in row["differences"]]
    if row["needed_bytes"] > row["free_bytes"]:
        lines.append("THE DISK IS TOO SMALL: make room first.")
    if is_fit(row):
        rows = sum(row["rows"].values())
        lines.append(f"The copy has the same {rows:,} rows, and those that were compared are as they were.")
    return "\n".join(lines)


def _mb(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
