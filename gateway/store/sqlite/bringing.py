"""The step from tables with columns to a table for each kind of record: every fact is read as it lay, and put as a
record. What follows from facts is made anew by what makes it otherwise; the entries of the search index stay.

All of it happens in the transaction of its caller, so a file is of the one layout or of the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw

from gateway.runtime.errors import StoreUnavailable
from gateway.store.kinds import ITEM, MESSAGE, REST, Rest
from gateway.store.shared.facts import Milestones, Record, incomplete
from gateway.store.space import Space
from gateway.store.sqlite import former
from gateway.store.sqlite.connection import Connection, connect_writer, many, one, unavailable
from gateway.store.sqlite.migrations import migrate
from gateway.store.sqlite.records import FileRecords, WrittenRecords, lay_out
from gateway.store.steps import moving
from gateway.store.steps.copying import Copied, pages

Tell = Callable[[int, int], None]  # how many facts are brought over, and of how many


def bring(connection: apsw.Connection, tell: Tell) -> None:
    """Bring what a file of an earlier layout holds over, and let its tables go. Raises StoreError if less than all came
    over."""
    assert isinstance(connection, Connection)
    former.prepare(connection)
    total = former.size(connection)
    rests = [
        Rest(account=a, bucket=b, until=u, seconds=s)
        for a, b, u, s in many(connection, "SELECT account, bucket, until, seconds FROM rests")
    ]
    lay_out(connection, from_number=max(_highest(connection, "inbox", "id"), _highest(connection, "messages", "id")))
    filled, milestones = Filled(connection), Milestones()
    for page in former.dump(connection):
        filled.put(page)
        if milestones.reached(filled.count):
            tell(filled.count, total)
    filled.check()
    filled.written.run(_put_rests, rests)
    connection.set_rollback_hook(None)
    for table in former.TABLES:
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    connection.execute("DELETE FROM meta WHERE name = 'search_stemmed_from'")
    # The parts of the file that the tables left are given back when it is rewritten.
    connection.execute(
        "INSERT INTO meta(name, value) VALUES ('scrub_owed', 3) ON CONFLICT (name) DO UPDATE SET value = 3"
    )


@contextmanager
def scratch() -> Iterator[Filled]:
    """A file of this version that nobody sees, to be filled with what a server holds. Raises StoreUnavailable."""
    try:
        folder = TemporaryDirectory(prefix="legato-")
    except OSError as error:  # for a server's it would be taken
        raise StoreUnavailable(
            f"Nothing can be written to the folder for temporary files ({error.strerror or error}). Free some space "
            "there, or set TMPDIR to another folder, then try again."
        ) from error
    with folder as name:
        path = Path(name, "legato.db")
        try:
            with closing(connect_writer(path)) as connection:
                connection.execute("PRAGMA synchronous = OFF").fetchall()
                migrate(connection, path)
                yield Filled(connection)
        except apsw.Error as error:
            raise unavailable(error, path) from error


def _highest(connection: apsw.Connection, table: str, column: str) -> int:
    row = one(connection, f"SELECT max({column}) FROM {table}")
    return int(row[0] or 0) if row else 0


class Filled:
    """A file that is filled with facts."""

    def __init__(self, connection: Connection) -> None:
        self.written = WrittenRecords(connection)
        self._counts = Counter[str]()

    @property
    def count(self) -> int:
        """Count the facts that were put."""
        return self._counts.total()

    def put(self, page: Sequence[Record]) -> None:
        """Put facts, in the order in which they are read."""
        connection = self.written.connection
        # A savepoint would hide that the disk is full: SQLite lets go of the whole transaction then.
        is_alone = not connection.in_transaction
        if is_alone:
            connection.execute("BEGIN")
        self.written.run(moving.put, page)
        if is_alone:
            connection.execute("COMMIT")
        connection.stored = ()  # they are in the index, or were not meant to be
        self._counts.update(record.kind for record in page)

    def pages(self) -> Iterator[Sequence[Copied]]:
        """All that was put, as records in pages."""
        self.check()
        return pages([FileRecords(self.written.connection)])

    def last_number(self) -> int:
        """A number that is not below any of them."""
        connection = self.written.connection
        return max(self.written.last_number(), *(_highest(connection, each.name, "key") for each in (ITEM, MESSAGE)))

    def check(self) -> None:
        """Raises StoreError unless there are as many records as there were facts."""
        for fact, kind in moving.BECOMES.items():
            row = one(self.written.connection, f'SELECT count(*) FROM "{kind}"')
            found = 0 if row is None else int(row[0])
            if found != self._counts[fact]:
                raise incomplete("The store", f"{self._counts[fact]:,} {fact} became {found:,}")


def _put_rests(space: Space, rests: list[Rest]) -> None:
    for rest in rests:
        space.put(REST, rest)
