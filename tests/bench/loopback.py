"""The gateway against the least that any gateway must do.

Both talk to the same model server in another process, over loopback HTTP, for the same 100 chats,
in turns. The bare loop makes one streaming call with the same HTTP client, reads the answer to its
end, and makes one durable commit a message, of its own; the gateway does all that it does: accept,
turn, outbox. The server checks and counts every request and may well be the slower half.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median

import apsw
import httpx

from gateway.providers.base import ModelRequest, ModelSpec
from gateway.providers.http import http_client, json_bytes
from gateway.providers.openai.codec import encode_request, endpoint
from gateway.providers.plugin import ModelSettings as Model
from tests.bench.table import Row, Rows, milliseconds
from tests.bench.world import quiet, running, said, settings

TITLE = "The same over loopback HTTP, beside a bare loop"
CHATS = 100
EACH = 5
ROUNDS = 5
WINDOW = 10_000_000


@asynccontextmanager
async def model_server() -> AsyncIterator[str]:
    """The base URL of the LLM emulator in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.emulators",
        "llm",
        "--port",
        "0",
        "--context-length",
        str(WINDOW),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        yield (await process.stdout.readuntil(b'"}\n')).decode().split('"')[1]
    finally:
        process.terminate()
        await process.wait()


async def measure() -> Rows:
    """Rates, CPU and their ratios."""
    async with model_server() as url:
        with tempfile.TemporaryDirectory() as folder:
            return await _compare(Path(folder), url)


async def _compare(folder: Path, url: str) -> Rows:
    spec = ModelSpec(provider="openai", name="bench", base_url=url)
    model = Model(provider="openai", name="bench", base_url=url, context_length=WINDOW)
    names = [f"chat{number}" for number in range(CHATS)]
    bare: list[tuple[float, float]] = []
    ours: list[tuple[float, float]] = []
    async with http_client() as client, running(settings(folder / "bench.db", model)) as (gateway, chats):
        connection = durable(folder / "bare.db")
        for number in range(ROUNDS + 1):
            start, cpu = time.perf_counter(), time.process_time()
            async with asyncio.TaskGroup() as group:
                for name in names:
                    # The transcript grows by the same two messages each time, as it does in the gateway.
                    group.create_task(_bare_chat(client, spec, connection, name, number * EACH))
            bare.append(_spent(start, cpu))
            start, cpu = time.perf_counter(), time.process_time()
            await chats.talk_all(names, EACH)
            ours.append(_spent(start, cpu))
            await quiet(gateway)
        connection.close()
    return _rows(bare[1:], ours[1:])  # the first round of each opens the connections


def durable(path: Path) -> apsw.Connection:
    """A database with a table of chats and replies, synced on every commit."""
    connection = apsw.Connection(str(path))
    for sql in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "CREATE TABLE said(chat TEXT, reply TEXT)"):
        connection.execute(sql).fetchall()
    return connection


async def _bare_chat(
    client: httpx.AsyncClient, spec: ModelSpec, connection: apsw.Connection, name: str, start: int
) -> None:
    headers = {"Content-Type": "application/json"}
    for number in range(start, start + EACH):
        messages = [{"role": "user", "content": said(turn)} for turn in range(number + 1)]
        request = ModelRequest(messages=[{"role": "system", "content": "You are a bench."}, *messages])  # type: ignore[list-item]
        body = json_bytes(encode_request(spec, request))
        async with client.stream("POST", endpoint(spec), content=body, headers=headers) as response:
            answer = "".join([text async for text in response.aiter_text()])
        connection.execute("INSERT INTO said VALUES (?,?)", (name, answer)).fetchall()


def _spent(start: float, cpu: float) -> tuple[float, float]:
    messages = CHATS * EACH
    return messages / (time.perf_counter() - start), (time.process_time() - cpu) / messages


def _rows(bare: list[tuple[float, float]], ours: list[tuple[float, float]]) -> Rows:
    bare_rate, our_rate = median(rate for rate, _ in bare), median(rate for rate, _ in ours)
    bare_cpu, our_cpu = median(cpu for _, cpu in bare), median(cpu for _, cpu in ours)
    rates = median(one / other for (one, _), (other, _) in zip(ours, bare, strict=True))
    cpus = median(one / other for (_, one), (_, other) in zip(ours, bare, strict=True))
    loop = "a bare loop (one httpx call, one commit)"
    return [
        Row("bare loop: messages a second", f"{bare_rate:,.0f}/s"),
        Row("over HTTP: messages a second", f"{our_rate:,.0f}/s", "", rates, loop),
        Row("bare loop: CPU a message", milliseconds(bare_cpu)),
        Row("over HTTP: CPU a message", milliseconds(our_cpu), "goal ≤ 2.2", cpus, loop),
    ]
