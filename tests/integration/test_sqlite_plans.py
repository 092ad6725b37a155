"""No step costs more because more is stored: every statement of a turn is a search by index."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

from gateway.domain.message import user
from gateway.domain.usage import CanonicalUsage, LedgerEntry
from gateway.store.records import Cap, Opening, Patch, Reservation, StepRecord, ToolIntent
from gateway.store.sqlite import SqliteStore
from tests.contract.test_store_sessions import compaction
from tests.support.fakes import ManualClock
from tests.support.store_kit import (
    START,
    arrival,
    exchange,
    in_session,
    key,
    new_session,
    outbound,
    put,
    step,
    transcript,
)

EXPENSIVE = re.compile(r"\bSCAN\b|TEMP B-TREE")
# Small by nature: an unfinished rest, or nothing but an ordered walk cut off by a LIMIT.
ALLOWED = re.compile(r"SCAN (CONSTANT ROW|o$|\(subquery|message_search|json_each|(?:f|k|sought) VIRTUAL TABLE)")

# A handful of rows of one session or item, a report, or what a search found: sorting them is as good as free.
SORTED = re.compile(r"FROM (compactions|signals|ledger) |FROM messages WHERE id IN \(SELECT value FROM json_each")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """An open, empty store."""
    made = SqliteStore(tmp_path / "legato.db", clock=ManualClock(START))
    await made.open()
    yield made
    await made.aclose()


class Plans:
    """Every distinct statement that connections run from now on."""

    def __init__(self, *connections: apsw.Connection) -> None:
        self.statements: set[str] = set()
        self._connections = connections
        for connection in connections:
            connection.exec_trace = self._note

    def _note(self, cursor: apsw.Cursor, sql: str, bindings: apsw.Bindings | None) -> bool:
        self.statements.add(sql)
        return True

    def scans(self) -> list[tuple[str, str]]:
        """(statement, plan line) of each scan."""
        connection = self._connections[-1]
        for each in self._connections:
            each.exec_trace = None
        found = []
        for sql in sorted(self.statements):
            if not re.match(r"SELECT|INSERT|UPDATE|DELETE", sql):
                continue
            count = max(map(int, re.findall(r"\?(\d+)", sql)), default=sql.count("?"))
            plan = connection.execute("EXPLAIN QUERY PLAN " + sql, (None,) * count).fetchall()
            lines = [row[3] for row in plan if EXPENSIVE.search(row[3]) and not ALLOWED.search(row[3])]
            found.extend((sql, line) for line in lines if not ("TEMP B-TREE" in line and SORTED.search(sql)))
        return found


async def test_nothing_in_a_turn_scans(store: SqliteStore) -> None:
    plans = Plans(*store._database._connections)
    claim, session = await in_session(store)
    await put(store, "e2", "e3", "e4")
    await store.signal(key(), "stop", START)
    await store.signals(claim.item)
    await store.journal(claim.item)
    (receipt,) = await store.accept([arrival("b", bypass=True)], cap=9)
    assert receipt.item is not None
    await store.finish_bypassed(receipt.item, [outbound("o1")])
    await store.open_reply(claim.lease, claim.item, outbound("o2", text=""))
    await store.note_streamed("o2", "m")
    intents = [ToolIntent(call_id="c", tool="t")]
    await store.begin_tools(claim.lease, session.ref, claim.item, step(user("x")), intents)
    waiting = await store.waiting(key(), 1)
    await store.record_step(claim.lease, session.ref, claim.item, step(*exchange(1), absorbed=[waiting[0].id]))
    child = Opening(session=new_session("s2", parent_id="s1"), transcript=[user("summary", summary=True)])
    session = await store.continue_session(claim.lease, session.ref, child, 1, compaction("s1", "s2"))
    session = await store.update_session(claim.lease, session.ref, model="n", system_prompt="p", title="t")
    entry = LedgerEntry(
        at=START, purpose="turn", provider="p", model="m", usage=CanonicalUsage(input_tokens=1), cost_usd=None
    )
    record = StepRecord(messages=exchange(2), patch=Patch(at=START, usage=entry.usage), ledger=[entry])
    end = await store.finish_turn(
        claim.lease, session.ref, claim.item, record, "answered", [outbound("o2"), outbound("o3")]
    )
    assert end.next is not None
    await store.mark_sent("o1", "m")
    await store.mark_retry("o2", 0.0, ambiguous=True)
    await store.claim_outbound(9)
    await store.mark_refused("o2", "no", outbound("o4"))
    await store.rename_chat("test", "1", "2")
    await store.first_name("test", "2", "e2")
    await store.later_name("test", "1")
    await store.close_chat(outbound("o").to, "gone")
    await store.closed(outbound("o").to)
    await store.open_chat(outbound("o").to)
    await store.release(claim.lease)
    claim = await store.claim_next("w")
    await store.end_session(claim.lease, session.ref, "reset", START, Opening(session=new_session("s3")))
    await store.hook_done("s2")
    await store.refuse(arrival("r"), outbound("o5"))
    await store.tip(key())
    await transcript(store, "s1")
    await store.claim_due_sessions(START, 9)
    await store.pending_hooks(9)
    await store.sessions(key(), 9)
    await store.lineage("s1")
    await store.compactions("s1")
    await store.search("question", key(), 9)
    await store.search("问", None, 9)
    await store.usage(START, "model", session_id="s2")
    await store.outbox(outbound("o").to, 9)
    cap = Cap(name="gateway", account="gateway", limit=9, resets_at=START)
    await store.reserve(Reservation(id="r", amount=9, caps=(cap,)))
    await store.settle(Reservation(id="r", amount=9, caps=(cap,)), 1)
    await store.spent(["gateway"])
    assert len(plans.statements) > 60
    assert plans.scans() == []


async def test_whoever_writes_too_much_is_refused_by_few_statements(store: SqliteStore) -> None:
    """Each statement of the writer's thread holds up everybody else."""
    await store.accept([arrival(f"e{number}") for number in range(3)], cap=3)
    ran: list[str] = []

    def note(_: apsw.Cursor, sql: str, __: apsw.Bindings | None) -> bool:
        ran.append(sql)
        return True

    store._database._connections[-1].exec_trace = note
    receipts = await store.accept([arrival(f"more{number}") for number in range(100)], cap=3)
    assert {receipt.status for receipt in receipts} == {"full"}
    assert len(ran) < 10
