"""The store on one SQLite file: nothing to install, one gateway process."""

from gateway.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
