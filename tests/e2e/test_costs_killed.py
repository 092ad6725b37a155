"""A spend cap of the real program, which is killed in the midst of fifty turns."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Reply
from tests.support.program import KEY, PATIENCE, Program, chatting, write_config
from tests.support.waiting import eventually

TURNS = [f"t{number}" for number in range(50)]
FEW = {"offered": {"*": ["clock", "read_file", "search_history", "send_file", "todo"]}}
CAP = 2_000_000  # millionths of a US dollar, as all amounts here
RAISED = CAP + 300_000  # the cap after the kill: room for some of the turns that were killed
COST = (700 + 3) * 100  # of an answered call, by its usage and the prices below; fifty of them are beyond the cap
HELD = range(6, 14)  # calls that the kill finds without an answer; the cap has room for 21 at once
MODEL = {"context_length": 32_000, "max_output_tokens": 10, "prices": {"input": 100, "output": 100}}


def amounts(folder: Path) -> tuple[int, list[int], int]:
    """Return today's spending, the part of it reserved for calls under way, and the number of calls in the ledger."""
    with closing(sqlite3.connect(folder / "legato.db")) as store:
        ((spent,),) = store.execute("SELECT sum(doc ->> '$.spent') FROM account")
        reserved = [amount for (amount,) in store.execute("SELECT doc ->> '$.amount' FROM reserved")]
        ((calls,),) = store.execute("SELECT count(*) FROM call")
        return spent, reserved, calls


def finals(program: Program) -> dict[str, str]:
    """Return the answer to each message."""
    rows = [row for row in program.lines if row["answers"] in TURNS and row["kind"] in ("reply", "command", "error")]
    assert len({row["answers"] for row in rows}) == len(rows), "a message was answered twice"
    return {row["answers"]: row["text"] for row in rows}


async def read(program: Program) -> None:
    """Keep what the program says, until it ends."""
    while await program.read_line():
        pass


@pytest.mark.slow
async def test_a_kill_amid_fifty_turns_neither_overruns_a_cap_nor_charges_twice(tmp_path: Path) -> None:
    answered = 0

    def reply(_: dict[str, Any]) -> Reply:
        nonlocal answered
        if server.calls in HELD and not killed:
            return Reply(text="late", hold=asyncio.Event())
        answered += 1
        return Reply(text="yes", usage={"prompt_tokens": 700, "completion_tokens": 3, "total_tokens": 703})

    killed = False
    async with LlmServer(reply, api_key=KEY) as server:
        write_config(tmp_path, server.url, model=MODEL, budgets={"daily_usd": CAP / 1e6}, tools=FEW)
        async with chatting(tmp_path) as program, asyncio.TaskGroup() as tasks:
            tasks.create_task(read(program))
            program.send(*({"id": name, "chat": name, "text": "hi"} for name in TURNS))
            held = len(HELD)
            await eventually(
                lambda: server.in_flight == held and len(finals(program)) == len(TURNS) - held, within=PATIENCE
            )
            program.process.send_signal(signal.SIGKILL)
            await program.process.wait()
        before, killed = finals(program), True
        spent, reserved, calls = amounts(tmp_path)
        assert len(reserved) == held
        assert list(before.values()).count("yes") == answered == calls
        assert CAP >= spent == answered * COST + sum(reserved)

        write_config(tmp_path, server.url, model=MODEL, budgets={"daily_usd": RAISED / 1e6}, tools=FEW)
        async with chatting(tmp_path) as program:
            rest = [name for name in TURNS if name not in before]
            await program.until_answered(*rest)
            status, errors = await program.finish()
        assert status == 0, errors
        after = finals(program)
        # What the kill found between being shown and being noted as shown is shown again, word for word.
        assert all(after[name] == before[name] for name in after.keys() & before.keys())
        again = [after[name] for name in rest].count("yes")
        assert 0 < again == answered - calls
        assert all(text == "yes" or "spend cap" in text for text in (before | after).values())
        now, _, calls = amounts(tmp_path)
        assert calls == answered
        assert RAISED >= now == spent + again * COST
        assert not server.violations
