"""`legato upgrade`: brings the store to this version, or tries that on a copy first."""

from __future__ import annotations

from gateway.domain.wording import counted
from gateway.store.sqlite.rehearsal import Rehearsal


def is_fit(found: Rehearsal) -> bool:
    """Say whether a start would lose nothing, and has the room that it needs."""
    return not found.differences and found.needed_bytes <= found.free_bytes


def rehearsal_text(found: Rehearsal) -> str:
    """What a start would do."""
    if not found.steps:
        lines = [f"The store has version {found.version}, which is this program's: a start changes nothing."]
    else:
        lines = [
            f"A start would bring the store from version {found.version} to {found.known} in {found.seconds:.1f} "
            f"seconds ({counted(len(found.steps), 'step')}).",
            f"It needs {_mb(found.needed_bytes)} of room beside the store's {_mb(found.bytes)}; the disk has "
            f"{_mb(found.free_bytes)}.",
        ]
    if found.unindexed:
        lines.append(f"Then the search index is made anew beside the work, for {counted(found.unindexed, 'message')}.")
    lines += [f"NOT AS IT WAS: {each}." for each in found.differences]
    if found.needed_bytes > found.free_bytes:
        lines.append("THE DISK IS TOO SMALL: make room first.")
    if is_fit(found):
        rows = sum(found.rows.values())
        lines.append(f"The copy has the same {rows:,} rows, and those that were compared are as they were.")
    return "\n".join(lines)


def _mb(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
