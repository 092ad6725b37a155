"""A hundred turns through the real program with the engine that asks no model: `context.engine: window`."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from gateway.cli.main import app
from gateway.domain.message import text_of
from gateway.providers.offline.model import is_summary_request
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Answer, Reply, last_user_text
from tests.support.program import KEY, Program, chatting, environment, write_config

TURNS = 100
WINDOW = 8_000
THRESHOLD = 6_000
_MARKER = re.compile(r"([\d,]+) older messages \(said from [\d-]{10} [\d:]{5} to [\d-]{10} [\d:]{5} UTC\) left view\.")


def said(number: int) -> str:
    """Return the person's words in a turn: some hundred tokens, with a word that is only in this turn."""
    return (
        f"turn {number:03d}: the parcel zebra{number:03d} went to 北京仓库{number}."
        + f" Detail {number} and more." * 12
    )


def model(body: dict[str, Any]) -> Answer:
    """An answer to the newest turn; every tenth begins with a tool call."""
    number = int(re.findall(r"turn (\d{3}):", last_user_text(body))[-1])
    if number % 10 == 3 and body["messages"][-1]["role"] == "user":
        return Reply(tool_calls=[("clock", {"timezone": "Asia/Shanghai"}), ("clock", {})])
    return Reply(text=f"answer {number:03d}: " + f"the parcel {number} is under way. " * 10)


async def test_a_hundred_turns_without_a_summary_stay_inside_the_window_and_findable(tmp_path: Path) -> None:
    async with LlmServer(model, context_length=WINDOW, api_key=KEY) as server:
        config = write_config(tmp_path, server.url, model={"context_length": WINDOW}, context={"engine": "window"})
        async with chatting(tmp_path, "--config", str(config)) as program:
            for number in range(TURNS // 2):
                program.send({"id": f"t{number}", "text": said(number)})
            status, errors = await program.finish()
            assert status == 0, errors
        async with chatting(tmp_path, "--config", str(config)) as program:  # the engine goes on after a restart
            for number in range(TURNS // 2, TURNS):
                program.send({"id": f"t{number}", "text": said(number)})
            program.send({"id": "context", "text": "/context"})
            await check_recall(program)
            status, errors = await program.finish()
            assert status == 0, errors
        check_requests(server)
    (context,) = [row["text"] for row in program.lines if row["answers"] == "context" and row["kind"] == "command"]
    assert f"I compress the conversation at {THRESHOLD:,} tokens" in context
    await check_originals(config)


def check_requests(server: LlmServer) -> None:
    """Valid, inside the window, the newest words whole; no summary was asked for; one marker at most."""
    assert server.violations == []
    assert server.overflows == 0
    assert not any(is_summary_request(body["messages"]) for body in server.requests)
    assert sum(body["messages"][-1]["role"] == "user" for body in server.requests) == TURNS
    counts: list[int] = []
    for body in server.requests:
        assert server.prompt_tokens(body) + (body.get("max_tokens") or 0) <= WINDOW
        number = int(re.findall(r"turn (\d{3}):", last_user_text(body))[-1])
        assert last_user_text(body).endswith(said(number))
        markers = [found for message in body["messages"] for found in _MARKER.findall(text_of(message))]
        assert len(markers) <= 1
        counts += [int(markers[0].replace(",", "")) if markers else 0]
    assert counts == sorted(counts), "a marker counts what earlier ones stood for"
    assert len(set(counts)) >= 4, "the middle left view several times"
    assert counts[-1] > TURNS


async def check_recall(program: Program) -> None:
    """/recall finds what left view long ago, word for word."""
    for number in range(0, TURNS, 9):
        program.send({"id": f"recall{number}", "text": f"/recall zebra{number:03d}"})
        (row,) = await program.until_answered(f"recall{number}")
        assert row["kind"] == "command"
        assert said(number)[:60] in row["text"]


async def check_originals(config: Path) -> None:
    """Every message of the lineage is reachable from its tip by what messages derive from."""
    listed = await asyncio.to_thread(shown, "list", "--config", str(config))
    (tip,) = [row["id"] for row in listed if row["ended_at"] is None]
    lineage = await asyncio.to_thread(shown, "lineage", tip, "--config", str(config))
    known: dict[str, dict[str, Any]] = {}
    for session in lineage:
        messages = (await asyncio.to_thread(shown, "show", session["id"], "--config", str(config)))["messages"]
        known.update({message["id"]: message for message in messages})
    reached: set[str] = set()
    waiting = [message["id"] for message in messages]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += known[name]["derived_from"]
    assert reached == known.keys()
    originals = {text_of(known[name]) for name in reached if not known[name]["summary"]}
    assert [number for number in range(TURNS) if said(number) not in originals] == []


def shown(*arguments: str) -> Any:
    """Return the output of `legato sessions …`, read back."""
    result = CliRunner().invoke(app, ["sessions", *arguments, "--json"], env=environment())
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)
