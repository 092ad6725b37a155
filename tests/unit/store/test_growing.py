"""A file that a version without a kind and an index filled is completed when a later one opens it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from gateway.domain.chat import MOST_PLACE
from gateway.runtime.errors import StoreOutdated
from gateway.store.draft import Draft
from gateway.store.kinds import NOTE
from gateway.store.sqlite import migrations, records
from gateway.store.sqlite.connection import connect_writer
from gateway.store.sqlite.records import FileRecords, WrittenRecords
from gateway.store.steps.outbox import ROUND
from tests.support.growing import GROWN, coloured, later_version, noted, seen


def test_a_kind_and_an_index_are_added_to_a_filled_file(tmp_path: Path) -> None:
    path = tmp_path / "legato.db"
    with closing(connect_writer(path)) as connection:
        migrations.migrate(connection, path)
        WrittenRecords(connection).run(noted, NOTE, "fine", "so so")
        with later_version(records, migrations):
            with pytest.raises(StoreOutdated, match="The next run of Legato completes it"):
                migrations.check_readable(connection, path)
            migrations.migrate(connection, path)
            migrations.check_readable(connection, path)
            migrations.check_unaltered(connection, path)
            WrittenRecords(connection).run(coloured)
            WrittenRecords(connection).run(noted, GROWN, "splendid")
            assert seen(Draft(FileRecords(connection))) == (["fine", "so so", "splendid"], ["red", "blue"])
        migrations.migrate(connection, path)  # the earlier version again, which knows nothing of them
        WrittenRecords(connection).run(noted, NOTE, "ok")
        with later_version(records, migrations):
            migrations.migrate(connection, path)
            assert seen(Draft(FileRecords(connection))) == (["ok", "fine", "so so", "splendid"], ["red", "blue"])


def test_numbers_that_came_from_a_server_leave_room_for_the_places_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "legato.db"
    with closing(connect_writer(path)) as connection:
        migrations.migrate(connection, path)
        connection.execute("UPDATE meta SET value = ? WHERE name = 'numbers'", (2_870_000_000_000_000,))
        written = WrittenRecords(connection)
        one, other = written.number(), written.number()
    assert (written.dense, other - one) == (False, ROUND)
    assert one < MOST_PLACE
