"""`legato backup` and `legato restore`: what they made of it, as rows with stable fields and as text."""

from __future__ import annotations

from typing import Any

from gateway.app.backup.making import Made
from gateway.app.backup.restoring import Restored, Verified
from gateway.domain.wording import counted

Row = dict[str, Any]


def made_row(made: Made) -> Row:
    """file, bytes, deleted (names)."""
    return {"file": made.target, "bytes": made.size, "deleted": list(made.deleted)}


def made_text(row: Row) -> str:
    """A line for people, and one for each backup that was deleted."""
    deleted = [f"Deleted: {name}" for name in row["deleted"]]
    return "\n".join([f"{row['file']} holds the whole store ({row['bytes'] / 1e6:,.1f} MB).", *deleted])


def restored_row(restored: Restored) -> Row:
    """store, made_at, aside, sessions, messages."""
    return {
        "store": restored.store,
        "made_at": restored.made_at,
        "aside": None if restored.aside is None else str(restored.aside),
        "sessions": restored.rows["sessions"],
        "messages": restored.rows["messages"],
    }


def restored_text(row: Row) -> str:
    """What is where now."""
    of = f" of {row['made_at']}" if row["made_at"] else ""
    holds = f"{counted(row['sessions'], 'session')}, {counted(row['messages'], 'message')}"
    lines = [f"{row['store']} is the backup{of}: {holds}."]
    if row["aside"]:
        lines.append(f"What was there is kept in {row['aside']}; delete that folder when all is well.")
    return "\n".join(lines)


def verified_row(found: Verified) -> Row:
    """made_at, legato (a version), rows (by table: in the backup, and now), same, changed, gone, not_compared."""
    return {
        "made_at": found.made_at,
        "legato": found.legato,
        "rows": {
            table: {"backup": count, "now": None if found.now is None else found.now.get(table)}
            for table, count in found.rows.items()
        },
        "same": found.same,
        "changed": found.changed,
        "gone": found.gone,
        "not_compared": found.not_compared,
    }


def verified_text(row: Row) -> str:
    """A table for people, without what is empty."""
    lines = [f"{'':<18} {'in the backup':>14} {'now':>12}"]
    for table, each in row["rows"].items():
        if each["backup"] or each["now"]:
            now = "?" if each["now"] is None else f"{each['now']:,}"
            lines.append(f"{table:<18} {each['backup']:>14,} {now:>12}")
    if row["not_compared"] is not None:
        lines.append(f"No session was compared: {row['not_compared']}")
    else:
        lines.append(
            f"Compared with the store: {counted(row['same'], 'session')} as before, {row['changed']} changed since, "
            f"{row['gone']} gone."
        )
    return "\n".join([*lines, "The backup is whole, and can be restored."])
