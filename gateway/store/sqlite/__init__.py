"""The store on one SQLite file: nothing to install, one gateway process.

    the port      store           its methods, in the order of `gateway.store.port`
    the file      database        its lock, its connections and its threads (lock, connection)
                  writer          the one thread that writes, with group commit
                  migrations      the steps to this version of it
                  copying         a copy of it, beside a running gateway
                  holdings        what it holds: counts and samples, to compare
                  swapping        another one in its place, whole or not at all
                  rehearsal       an upgrade tried on a copy
                  mark            the sign that `legato migrate` is filling it
    a message     inbox           events, each accepted once
                  lanes           the lanes of this process, and their fences
                  turns           a turn's writes, until it ends
                  approving       questions of a turn
                  outbox          what is shown
                  renaming        chats that moved
    what is kept  sessions        sessions, and the way from one to the next
                  messages        rows that never change, and transcripts
                  keeping         files, pins and the guest book
                  remembering     facts
                  reminding       reminders
                  spending        money under caps, and silences that platforms asked for
                  forgetting      what goes, without a trace
    reports       reading         queries for people
                  search          the full-text index (vectors: of what messages mean)
    in memory     leases          leases, and moments to send at

`schema/` holds the steps from one version of the file to the next.
"""

from gateway.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
