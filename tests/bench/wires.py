"""Model APIs: the CPU of one streamed event in each wire format, over loopback HTTP, and of a request's encoding.

A server in a thread of its own writes each event alone, as models do; only this thread's CPU is counted, beside that of
httpx alone, which cuts lines, and json. Then the marks for a prompt's cache and the whole body, for a conversation of
two thousand messages.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any, Final

from gateway.agent.caching import with_marks
from gateway.domain.message import Message, assistant, tool_result, user
from gateway.providers.anthropic import codec as messages
from gateway.providers.anthropic.messages import Messages
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.providers.http import http_client, json_bytes
from gateway.providers.openai import codec as chat
from gateway.providers.openai.chat_completions import ChatCompletions
from gateway.providers.openai_responses import codec as responses
from gateway.providers.openai_responses.responses import Responses
from tests.bench.table import Row, Rows, milliseconds
from tests.emulators.llm import ChatWire
from tests.emulators.llm_messages import MessagesWire
from tests.emulators.llm_replies import Reply
from tests.emulators.llm_responses import ResponsesWire
from tests.emulators.llm_wires import Wire

TITLE = "Model APIs"
EVENTS: Final = 3_000
LENGTH: Final = 2_000  # messages
TIMES: Final = 20
BODY: Final[Mapping[str, Any]] = {"model": "m", "stream_options": {"include_usage": True}}
WIRES: Final = ((ChatWire(), ChatCompletions), (MessagesWire(), Messages), (ResponsesWire(), Responses))
ENCODERS: Final = {"openai": chat.encode_request, "anthropic": messages.encode_request,
                   "openai-responses": responses.encode_request}  # fmt: skip


async def measure() -> Rows:
    """A line for each API and task."""
    rows: list[Row] = []
    for wire, kind in WIRES:
        ours, bare = await _streamed(wire, kind)
        rows.append(Row(f"{kind.name}: a streamed event", f"{ours:.1f} µs", "", ours / bare, "httpx's lines and json"))
    transcript = _transcript()
    written = _each(lambda: json_bytes({"messages": transcript}))
    calls: dict[str, Callable[[], object]] = {"marks": lambda: with_marks(transcript, "1h", results=True)}
    for name, encode in ENCODERS.items():
        spec, request = ModelSpec(provider=name, name="claude"), ModelRequest(messages=transcript)
        calls[f"{name}: a body"] = lambda e=encode, s=spec, r=request: e(s, r)
    for name, call in calls.items():
        took = _each(call)
        rows.append(
            Row(f"{name} of {LENGTH:,} messages", milliseconds(took), "", took / written, "writing these as JSON")
        )
    return rows


def _each(call: Callable[[], object]) -> float:
    start = time.process_time()
    for _ in range(TIMES):
        call()
    return (time.process_time() - start) / TIMES


def _transcript() -> list[Message]:
    call: Any = {"id": "c", "type": "function", "function": {"name": "clock", "arguments": '{"zone": "UTC"}'}}
    turn = [user("What time is it?"), assistant(None, [call]), tool_result("c", "noon"), assistant("It is noon.")]
    return [{"role": "system", "content": "Be kind."}, *turn * (LENGTH // 4)]


async def _streamed(wire: Wire, kind: type[ChatCompletions | Messages | Responses]) -> tuple[float, float]:
    """Microseconds of CPU an event, of ours and of the least that any reader does, in turns."""
    reply = Reply(text="word " * (3 * EVENTS))
    frames = [frame.encode() for frame in wire.frames(BODY, reply, 1, len, 1, 0)]
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_serve, args=(listener, frames), daemon=True).start()
    provider = kind(http_client(), str)
    spec = ModelSpec(provider=kind.name, name="m", base_url=f"http://127.0.0.1:{listener.getsockname()[1]}/v1")

    async def ours() -> None:
        async with aclosing(provider.stream(spec, ModelRequest(messages=[user("Go.")]))) as events:
            async for _ in events:
                pass

    async def bare() -> None:
        async with client.stream("POST", spec.base_url or "", content=b"{}") as response:
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    json.loads(line[6:])

    best = [float("inf")] * 2
    async with http_client() as client:
        for _ in range(3):
            for number, read in enumerate((ours, bare)):
                start = time.thread_time()
                await read()
                best[number] = min(best[number], time.thread_time() - start)
    await provider.aclose()
    listener.close()
    ours_best, bare_best = (each / len(frames) * 1e6 for each in best)
    return ours_best, bare_best


def _serve(listener: socket.socket, frames: list[bytes]) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection:
            head = b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
            for frame in frames:
                connection.sendall(frame)
