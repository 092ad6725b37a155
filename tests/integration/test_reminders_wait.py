"""Reminders that wait cost nothing: every step of a look for due ones goes through the index of those that are due."""

from __future__ import annotations

from pathlib import Path

import apsw

from gateway.store.shared.platforms import Platforms
from gateway.store.sqlite import SqliteStore, reminding
from gateway.store.sqlite.connection import connect_reader
from tests.support.fakes import ManualClock
from tests.support.store_kit import START, reminder


async def test_a_look_for_due_reminders_reads_the_index_of_those_that_are_due(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "legato.db", clock=ManualClock(START))
    await store.open()
    for number in range(3):
        await store.add_reminder(reminder(f"r{number}", str(number), due_at=START + number), 9, 10_000)
    connection = connect_reader(tmp_path / "legato.db")
    asked: list[tuple[str, apsw.Bindings]] = []

    def note(_: object, sql: str, bindings: apsw.Bindings) -> bool:
        asked.append((sql, bindings))
        return True

    connection.exec_trace = note
    assert [each.id for each in reminding.due(connection, START, 9, Platforms())] == ["r0"]
    connection.exec_trace = None
    plans = [connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings).fetchall() for sql, bindings in asked]
    steps = [row[3] for plan in plans for row in plan]
    assert len(asked) == 3  # the first platform, the next, and what is due on the first
    assert all(step.startswith("SEARCH reminders USING") and "reminders_due" in step for step in steps), steps
    connection.close()
    await store.aclose()
