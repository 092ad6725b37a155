"""The store on one SQLite file: nothing to install, one gateway process.

    the store     backend         runs steps in the file; `SqliteStore`, with what only a file can be asked
                  records         a table for each kind of record, and what the writer remembers
    the file      database        its lock, its connections and its threads (lock, connection)
                  writer          the one thread that writes, with group commit
                  forgetting      what is left of what was forgotten, and how it goes
                  copying         a copy of it, beside a running gateway
                  swapping        another one in its place, whole or not at all
                  mark            the sign that `legato migrate` is filling it
    a search      search          the full-text index, and vectors of what messages mean
    its layout    migrations      brings it to this version
                  former          the tables with columns that it had before
                  bringing        the step from them to tables of kinds
                  rehearsal       an upgrade tried on a copy

Another process may read a file beside its owner, and write notes and facts.
"""

from gateway.store.sqlite.backend import SqliteStore

__all__ = ["SqliteStore"]
