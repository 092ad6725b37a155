"""Moves a whole store into another, and proves that everything arrived.

`migration` says how; `records` says what is moved, as records that are the same whichever store they lie in.
Each backend has a place (an open store to read or to fill) and a table of kinds: how records are read in their
order, and how they are written.
"""

from gateway.store.transfer.migration import Progress, Report, Tell, export, migrate, source_at, target_at, tell_nobody

__all__ = ["Progress", "Report", "Tell", "export", "migrate", "source_at", "target_at", "tell_nobody"]
