"""Moves a whole store into another, and proves that everything arrived.

`migration` says how; `gateway.store.steps.copying` says what is moved: the records of all kinds, as they are. Each
backend has a place that is read or filled.
"""

from gateway.store.transfer.migration import (
    MigrationProgress,
    Report,
    Tell,
    export,
    migrate,
    source_at,
    target_at,
    tell_nobody,
)

__all__ = ["MigrationProgress", "Report", "Tell", "export", "migrate", "source_at", "target_at", "tell_nobody"]
