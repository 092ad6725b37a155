"""Hundreds of turns through the real program and a strict model server with a small window."""

from __future__ import annotations

import asyncio
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gateway.cli.main import app
from gateway.domain.message import text_of
from gateway.providers.offline.model import is_summary_request
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Answer, Reply, last_user_text, summarising
from tests.support.program import KEY, chatting, environment, legato, write_config

WINDOW = 8_000
_NUMBER = re.compile(r"turn (\d{3}):")


def said(number: int) -> str:
    """Return the person's words in a turn: short, long, Chinese, awkward characters, tool requests."""
    head = f"turn {number:03d}: "
    if number % 50 == 7:
        return head + " ".join(f"paragraph-{number}-{word} of a rather long explanation" for word in range(60))
    if number % 5 == 1:
        return head + f"第{number}次提问：请记住仓库编号 WH-{number}，我们的预算是{number}万元。"
    if number % 5 == 2:
        return (
            head
            + f"emoji 👩‍👩‍👧‍👦 {number}, combining e\u0301, RTL \u05e9\u05dc\u05d5\u05dd, tab\tand\nnewline, “quotes”"
        )
    if number % 10 == 3:
        return head + f"please put task {number} on the todo list"
    if number % 10 == 8:
        return head + "what does the clock say?"
    return head + f"my locker {number} is at /var/data/locker-{number}.txt and costs {number} EUR"


def replied(number: int) -> str:
    """Return the model's words in a turn."""
    more = " It was a long story, told again in full." * 12 if number % 25 == 4 else ""
    return f"answer {number:03d}: noted, 好的 №{number}.{more}"


def number_of(body: dict[str, Any]) -> int:
    """Return the turn of a request: the newest one named in its last user message."""
    return int(_NUMBER.findall(last_user_text(body))[-1])


def model(body: dict[str, Any]) -> Answer:
    """Tools where the person asked for them, else the turn's answer."""
    number = number_of(body)
    if body["messages"][-1]["role"] == "user":
        if number % 10 == 3:
            items = [{"text": f"task {number}", "status": "open"}]
            return Reply(tool_calls=[("todo", {"items": items}), ("clock", {"timezone": "Asia/Shanghai"})])
        if number % 10 == 8:
            return Reply(text="Let me look.", tool_calls=[("clock", {})])
    return Reply(text=replied(number))


@pytest.mark.parametrize("turns", [80, pytest.param(500, marks=pytest.mark.slow)])
async def test_hundreds_of_turns_in_a_small_window_lose_nothing(tmp_path: Path, turns: int) -> None:
    async with LlmServer(summarising(model), context_length=WINDOW, api_key=KEY) as server:
        config = write_config(
            tmp_path,
            server.url,
            model={"context_length": WINDOW},
            compression={"min_threshold_tokens": 0},
        )
        async with chatting(tmp_path, "--config", str(config)) as program:
            for number in range(turns):
                program.send({"id": f"t{number}", "text": said(number)})
                if number == turns // 2:
                    program.send({"id": "compress", "text": "/compress locker prices"})
            status, errors = await program.finish()
        check_requests(server, turns)
    assert status == 0, errors
    check_replies(program.lines, turns)
    await check_lineage(tmp_path, config, turns)


def check_replies(lines: list[dict[str, Any]], turns: int) -> None:
    """One reply a turn, each once, in order; the manual compaction answered in its place."""
    answers = [row for row in lines if row["kind"] != "notice"]
    expected = [f"t{number}" for number in range(turns)]
    expected.insert(turns // 2 + 1, "compress")
    assert [row["answers"] for row in answers] == expected
    compressed = answers.pop(turns // 2 + 1)
    assert compressed["kind"] == "command"
    assert re.search(r"Compressed: \d+ → \d+ messages", compressed["text"])
    assert [row["text"] for row in answers] == [replied(number) for number in range(turns)]
    assert {row["kind"] for row in answers} == {"reply"}
    assert len({row["id"] for row in lines}) == len(lines)


def check_requests(server: LlmServer, turns: int) -> None:
    """Every request was valid and fitted; the newest words of the person were always whole in it."""
    assert server.violations == []
    assert server.overflows == 0
    assert server.calls == len(server.requests)
    asked = [body for body in server.requests if not is_summary_request(body["messages"])]
    assert len(server.requests) - len(asked) >= 5, "summaries were asked for"
    for body in server.requests:
        assert server.prompt_tokens(body) + (body.get("max_tokens") or 0) <= WINDOW
    numbers = [number_of(body) for body in asked]
    assert all(one <= other for one, other in pairwise(numbers))
    assert sorted(set(numbers)) == list(range(turns))
    for number, body in zip(numbers, asked, strict=True):
        newest = last_user_text(body)
        assert newest.endswith(said(number))


async def check_lineage(folder: Path, config: Path, turns: int) -> None:
    """From the tip, every original can be reached by following what messages derive from."""
    status, listed, errors = await legato(folder, "sessions", "list", "--json", "--config", str(config))
    assert status == 0, errors
    (tip,) = [row["id"] for row in json.loads(listed) if row["ended_at"] is None]
    status, chain, errors = await legato(folder, "sessions", "lineage", tip, "--json", "--config", str(config))
    assert status == 0, errors
    lineage = json.loads(chain)
    assert len(lineage) >= 6
    assert lineage[-1]["id"] == tip
    for parent, child in pairwise(lineage):
        assert child["parent_id"] == parent["id"]
        assert parent["end_reason"] == "compression"
        assert child["started_at"] >= parent["ended_at"]

    shown = [await asyncio.to_thread(_show, row["id"], config) for row in lineage]
    known = {message["id"]: message for session in shown for message in session["messages"]}
    reached: dict[str, dict[str, Any]] = {}
    waiting = [message["id"] for message in shown[-1]["messages"]]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached[name] = known[name]
            waiting += known[name]["derived_from"]
    originals = {text_of(message) for message in reached.values() if not message["summary"]}
    missing = [number for number in range(turns) if said(number) not in originals or replied(number) not in originals]
    assert missing == []
    assert reached.keys() == known.keys(), "nothing in the lineage is out of the tip's reach"


def _show(session_id: str, config: Path) -> dict[str, Any]:
    arguments = ["sessions", "show", session_id, "--json", "--config", str(config)]
    result = CliRunner().invoke(app, arguments, env=environment())
    assert result.exit_code == 0, result.output
    shown: dict[str, Any] = json.loads(result.stdout)
    return shown
