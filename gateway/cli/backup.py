"""`legato backup`, `legato restore` and `legato upgrade`: what they did to the store, in words."""

from __future__ import annotations

from gateway.app.backup.making import Made
from gateway.app.backup.restoring import Restored, Verified
from gateway.domain.wording import counted
from gateway.store.sqlite.rehearsal import Rehearsal


def made_text(made: Made) -> str:
    """A line for people, and one for each backup that was deleted."""
    deleted = [f"Deleted: {name}" for name in made.deleted]
    return "\n".join([f"The backup {made.file} holds the whole store ({made.bytes / 1e6:,.1f} MB).", *deleted])


def restored_text(restored: Restored) -> str:
    """What is now where."""
    of = f" of {restored.made_at}" if restored.made_at else ""
    holds = f"{counted(restored.sessions, 'session')} and {counted(restored.messages, 'message')}"
    lines = [f"The store {restored.store} is now the backup{of}, with {holds}."]
    if restored.aside:
        lines.append(f"The earlier data is in {restored.aside}. Delete that folder when all is well.")
    return "\n".join(lines)


def verified_text(found: Verified) -> str:
    """The rows of each table that has some, and how the sessions compare."""
    lines = [f"{table:<18} {count:>14,}" for table, count in found.rows.items() if count]
    if found.not_compared is not None:
        lines.append(f"No session was compared: {found.not_compared}")
    else:
        lines.append(
            f"Of the sessions in the backup, {found.same} are unchanged in the store, {found.changed} have changed, "
            f"and {found.gone} are gone."
        )
    return "\n".join([*lines, "The backup is complete and can be restored."])


def is_fit(found: Rehearsal) -> bool:
    """Whether a start has the room that it needs."""
    return found.needed_bytes <= found.free_bytes


def rehearsal_text(found: Rehearsal) -> str:
    """What a start would do."""
    if found.version == found.known:
        lines = [f"The store already has this program's version ({found.version}), so a start will not change it."]
    else:
        lines = [
            f"The next start would update the store from version {found.version} to {found.known}, in "
            f"{found.seconds:.1f} seconds.",
            f"The store takes {_mb(found.bytes)}. The update needs {_mb(found.needed_bytes)} more, and the disk has "
            f"{_mb(found.free_bytes)} free.",
        ]
    if found.unindexed:
        lines.append(f"Then Legato will rebuild the search index for {counted(found.unindexed, 'message')}.")
    if found.needed_bytes > found.free_bytes:
        lines.append("THE DISK IS TOO SMALL. Make room first.")
    if is_fit(found):
        lines.append(f"All {sum(found.rows.values()):,} rows of the store are in the updated copy.")
    return "\n".join(lines)


def _mb(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
