"""A PostgreSQL database as a place where steps run.

A step is a transaction in SERIALIZABLE. It looks at indexes, and at what is not there, so locks by key would not keep
others from coming between. Where one does, the server says so, and the step runs again.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection, IsolationLevel
from psycopg.conninfo import make_conninfo
from psycopg.errors import DeadlockDetected, SerializationFailure

from gateway.runtime.errors import StoreUnavailable
from gateway.store.draft import Draft
from gateway.store.kinds import KINDS, names
from gateway.store.postgres.entries import ENTRIES, ServerEntries
from gateway.store.postgres.records import sql, statements

_LAYOUT: Final = "1"
_NOT_READY: Final = ("the database system is", "too many", "remaining connection slots")
# A server that went silent is found out.
_SETTINGS: Final[dict[str, Any]] = {"connect_timeout": 5, "keepalives_idle": 5, "tcp_user_timeout": 10_000}
# A process that froze in the midst of a step must not hold the others up.
_SETUP: Final = "SET search_path TO legato; SET idle_in_transaction_session_timeout TO '10s'; SET lock_timeout TO '60s'"
_NOTE_KINDS: Final = "INSERT INTO meta VALUES ('kinds', %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_VACUUM: Final = "VACUUM " + ", ".join(f'"{name}"' for name in (*(kind.name for kind in KINDS), "entry"))


class ServerAway(StoreUnavailable):
    """The server cannot be reached, or is not ready yet; later it may be."""


class UnknownEnd(Exception):
    """The connection broke as a transaction was to end, so that nobody knows yet whether it was done."""

    def __init__(self, transaction: str) -> None:
        super().__init__(transaction)
        self.transaction = transaction
        self.outcome: Any = None  # of the step


class ServerConnection(ServerEntries):
    """A connection to the schema `legato`, in a thread of its own. The first look begins a transaction, which sees
    records and index as they are at that moment; one that writes, as if no other came between."""

    _name = ""  # of a transaction that writes

    @property
    def is_closed(self) -> bool:
        """Whether it broke."""
        return self.connection.closed

    def lay_out(self) -> None:
        """Make what is not there yet. Raises StoreUnavailable for what another version has made."""
        self.connection.execute("SELECT pg_advisory_lock(hashtext('legato'))")
        self.connection.commit()  # what follows sees what others did meanwhile
        is_new = self.all("SELECT to_regclass('legato.meta')") == [None]
        filled = [] if is_new else "".join(self.all("SELECT value FROM meta WHERE name = 'kinds'")).split()
        if filled != names():
            self._grow(filled)
        if is_new:
            for each in ENTRIES:
                self.connection.execute(sql(each))
            self.connection.execute("INSERT INTO meta VALUES ('layout', %s)", (_LAYOUT,))
        if self.all("SELECT value FROM meta WHERE name = 'layout'") != [_LAYOUT]:
            raise StoreUnavailable(
                "The PostgreSQL database was made by another version of Legato. Run the version that made it."
            )
        self.connection.execute("SELECT pg_advisory_unlock_all()")
        self.connection.commit()

    def _grow(self, filled: Sequence[str]) -> None:
        """Make what the program did not have which filled these indexes, if any. Raises StoreUnavailable while one such
        runs."""
        if filled and self.all("SELECT 1 FROM member WHERE members_at > extract(epoch FROM clock_timestamp()) LIMIT 1"):
            raise StoreUnavailable(
                "An earlier Legato uses the PostgreSQL database. Stop all its processes, wait ten seconds, and start "
                "this Legato again."
            )
        for each in statements():
            self.connection.execute(sql(each))
        for kind in KINDS if filled else ():
            self.fill(kind, [each for each in kind.indexes if f"{kind.name}.{each.name}" not in filled])
        self.connection.execute(_NOTE_KINDS, (" ".join(names()),))

    def write(self, draft: Draft) -> None:
        super().write(draft)
        (self._name,) = self.all("SELECT pg_current_xact_id()::text")

    def tell(self, text: str) -> None:
        """Tell all processes something once the transaction is committed."""
        self.connection.execute("SELECT pg_notify('legato', %s)", (text,))

    def commit(self) -> None:
        """End the transaction. Raises UnknownEnd."""
        try:
            self.connection.commit()
        except PostgresPlace.errors as error:
            if self._name and self.connection.closed:
                raise UnknownEnd(self._name) from error
            raise

    def rollback(self) -> None:
        """End the transaction, if there is one, as if it had not been."""
        if not self.connection.closed:
            self.connection.rollback()
        self._name = ""
        self.begin()

    def was_done(self, transaction: str) -> bool | None:
        """Whether a transaction of an unknown end was committed; None: nobody knows yet."""
        return {"committed": True, "aborted": False}.get(self.all("SELECT pg_xact_status(%s::xid8)", transaction)[0])

    def now(self) -> float:
        """The server's time."""
        return float(self.all("SELECT extract(epoch FROM clock_timestamp())::float8")[0])

    def free(self) -> None:
        """Leave nothing of what was dropped, as far as the server can do that beside all else."""
        self.connection.autocommit = True
        try:
            self.connection.execute(sql(_VACUUM))
        finally:
            self.connection.autocommit = False

    def close(self) -> None:
        """Hang up."""
        self.connection.close()


class PostgresPlace:
    """The schema `legato` of the database at `url`. `again`: raised where another step came between; `errors`: raised,
    with those, where the server is away, or cannot write. Raises StoreUnavailable for what is no address."""

    name = "The PostgreSQL server"
    again: tuple[type[Exception], ...] = (SerializationFailure, DeadlockDetected)
    errors: tuple[type[Exception], ...] = (psycopg.OperationalError, psycopg.InterfaceError)

    def __init__(self, url: str) -> None:
        logging.getLogger("psycopg").setLevel(logging.ERROR)  # it warns of each step that has to run again
        try:
            self._conninfo = make_conninfo(url, application_name="legato", **_SETTINGS)
        except psycopg.ProgrammingError as error:
            raise StoreUnavailable(f"store.url is not the address of a PostgreSQL database: {error}.") from error

    def connect(self, *, writes: bool) -> ServerConnection:
        """A new connection."""
        connection = psycopg.connect(self._conninfo, autocommit=True)
        connection.execute(_SETUP)
        connection.autocommit = False
        connection.isolation_level = IsolationLevel.SERIALIZABLE if writes else IsolationLevel.REPEATABLE_READ
        return ServerConnection(connection)

    def trouble(self, error: Exception, *, connecting: bool) -> StoreUnavailable:
        """What an error means, for people; ServerAway for a server that is waited for."""
        said = (str(error).strip().splitlines() or [type(error).__name__])[-1]
        if connecting and ("FATAL" not in str(error) or any(each in str(error) for each in _NOT_READY)):
            return ServerAway(f"PostgreSQL cannot be reached ({said}). Start it, or correct store.url.")
        return StoreUnavailable(f"PostgreSQL refuses the request: {said}")

    async def news(self) -> AsyncGenerator[str | None, None]:
        """What processes tell, and None as soon as that is heard. Ends or raises where the connection breaks."""
        async with await AsyncConnection.connect(self._conninfo, autocommit=True) as connection:
            await connection.execute("LISTEN legato")
            yield None
            async for notice in connection.notifies():
                yield notice.payload
