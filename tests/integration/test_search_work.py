"""What a search does, counted: a chat of some hundred messages costs it few statements and few calls."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType

from gateway.runtime.clock import SystemClock
from gateway.store.records import Passage
from gateway.store.searching import Search, SearchMemory
from gateway.store.sqlite import SqliteStore
from gateway.store.sqlite.connection import connect_reader
from gateway.store.sqlite.records import FileRecords
from gateway.store.sqlite.search import FileEntries, OwnerNumbers
from tests.bench.recall.__main__ import fill
from tests.bench.recall.dialogues import dialogue
from tests.support.store_kit import key

STATEMENTS = 10  # a statement for each word took four times as many
CALLS = 3_000  # of Python functions; a tenth of them for lists, and for what held before a change


async def test_a_search_asks_the_file_a_few_times_whatever_the_number_of_words(tmp_path: Path) -> None:
    life, store = dialogue(4), SqliteStore(tmp_path / "legato.db", clock=SystemClock())
    await store.open()
    await fill(store, life, "1")
    await store.search("everything is indexed by now", key("1"), 1)
    connection, owners, memory = connect_reader(tmp_path / "legato.db"), OwnerNumbers(), SearchMemory()
    done = Counter[str]()

    def count(frame: FrameType, event: str, _: object) -> None:
        done[event] += event == "call"

    def trace(*_: object) -> bool:
        done["statement"] += 1
        return True

    def passages(text: str) -> list[Passage]:
        search = Search(FileRecords(connection), FileEntries(connection, owners), memory)
        return search.passages(text, key("1"), 10, 0.0, None)

    connection.exec_trace = trace
    asked = [question.text for question in life.questions[:40]]
    for text in asked:  # what is compiled and kept is not counted
        passages(text)
    done.clear()
    sys.setprofile(count)
    try:
        for text in asked:
            assert passages(text)
    finally:
        sys.setprofile(None)
    connection.close()
    await store.aclose()
    assert done["statement"] / len(asked) <= STATEMENTS
    assert done["call"] / len(asked) <= CALLS
