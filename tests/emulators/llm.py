"""A loopback server that speaks the APIs of models as strictly as the real ones.

OpenAI's Chat Completions and Responses and Anthropic's Messages are served side by side, under the vendors' own paths.

    async with LlmServer() as server:
        spec = ModelSpec(provider="openai", name="test", base_url=server.url)

Every request is checked (`llm_rules`), counted against a context window and kept in
`server.requests`; what was wrong with any is in `server.violations`, so that a test can end with
`assert not server.violations`. What it answers is `server.reply`, a hook (`llm_replies`) that may
be replaced at any time.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any, Self

from aiohttp import web

from gateway.domain.message import text_of
from gateway.runtime.tokens import TokenCounter
from tests.emulators import llm_attached
from tests.emulators.llm_cache import PrefixCache
from tests.emulators.llm_messages import MessagesWire
from tests.emulators.llm_replies import (
    Answer,
    Cut,
    EmptyChoices,
    ErrorInside,
    Garbage,
    Hang,
    Hook,
    Refuse,
    Reply,
    SlowLoris,
    error_body,
    summarising,
    unauthorized,
)
from tests.emulators.llm_responses import ResponsesWire
from tests.emulators.llm_rules import violations
from tests.emulators.llm_wires import Frames, Wire, pieces

OVERHEAD = 4  # tokens of every message beside its text
CLOSE = 0.2  # seconds that open answers get when the server closes


@cache
def default_count() -> Callable[[str], int]:
    """The project's own counter, one per process: its vocabulary takes 75 MB."""
    return TokenCounter().text


class LlmServer:
    """The emulator. `count` gives the tokens of a text; `api_key`, if given, must be presented;
    `caches`: it has a prefix cache and reports what was read from it.

    After use: `requests` (the newest `keep` bodies), `violations`, `overflows` (prompts that did
    not fit), `abandoned` (calls the client ended early), `calls` (all requests), `in_flight` and
    `most_in_flight`.
    """

    def __init__(
        self,
        reply: Hook | None = None,
        *,
        context_length: int = 128_000,
        count: Callable[[str], int] | None = None,
        api_key: str | None = None,
        caches: bool = False,
        host: str = "127.0.0.1",
        port: int = 0,
        keep: int = 10_000,
    ) -> None:
        self.reply: Hook = reply or summarising()
        self.context_length = context_length
        self.api_key = api_key
        self.requests: deque[dict[str, Any]] = deque(maxlen=keep)
        self.violations: list[str] = []
        self.overflows = self.abandoned = self.calls = self.in_flight = self.most_in_flight = 0
        self._count = lru_cache(maxsize=65_536)(count or default_count())
        self._cache = PrefixCache(self._count) if caches else None
        self._host, self._port = host, port
        self._numbers = itertools.count(1)
        self._closing = asyncio.Event()
        self._changed = asyncio.Event()
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """Return the value of `base_url`."""
        return f"http://{self._host}:{self._port}/v1"

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 28)
        for wire in WIRES:
            app.router.add_post(wire.path, partial(self._completions, wire))
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/v1/models/{name}", self._models)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=CLOSE)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port, backlog=1024).start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        if self._runner is not None:
            await self._runner.cleanup()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return once `condition` holds; it is asked whenever a request comes, is kept or ends."""
        while not condition():
            self._changed.clear()
            await self._changed.wait()

    # -- one request ------------------------------------------------------------------------

    async def _models(self, request: web.Request) -> web.StreamResponse:
        wire: Wire = WIRES[-1] if "anthropic-version" in request.headers else WIRES[0]
        if not self._admits(wire, request):
            return _refusal(wire, unauthorized())
        listed = wire.models(["test-model"], self.context_length)
        name = request.match_info.get("name")
        if name is None:
            return web.json_response(listed)
        found = next((entry for entry in listed["data"] if entry["id"] == name), None)
        if found is None:
            return _refusal(wire, Refuse(status=404, body=error_body(f"model: {name}")))
        return web.json_response(found)

    def _admits(self, wire: Wire, request: web.Request) -> bool:
        return not self.api_key or wire.presented(request.headers) == self.api_key

    async def _completions(self, wire: Wire, request: web.Request) -> web.StreamResponse:
        self.calls += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        self._changed.set()
        try:
            return await self._checked(wire, request)
        except (asyncio.CancelledError, ConnectionError):
            self.abandoned += 1
            raise
        finally:
            self.in_flight -= 1
            self._changed.set()

    async def _checked(self, wire: Wire, request: web.Request) -> web.StreamResponse:
        if not self._admits(wire, request):
            return _refusal(wire, unauthorized())
        try:
            body = json.loads(await request.read())
        except ValueError:
            self.violations.append("The body is not JSON.")
            return _refusal(
                wire, Refuse(status=400, body=error_body("We could not parse the JSON body of your request."))
            )
        wrong = list(wire.violations(body))
        if wrong:
            self.violations += wrong
            return _refusal(wire, Refuse(status=400, body=error_body(wrong[0])))
        self.requests.append(body)
        self._changed.set()
        plain = wire.plain(body)
        prompt = self.prompt_tokens(plain)
        too_long = wire.too_long(prompt, wire.cap(body), self.context_length)
        if too_long:
            self.overflows += 1
            return _refusal(wire, Refuse(status=400, body=error_body(too_long, code="context_length_exceeded")))
        return await self._answer(Call(wire, request, body), self.reply(plain), prompt)

    def prompt_tokens(self, body: Mapping[str, Any]) -> int:
        """The tokens of a request, tools included."""
        tools = body.get("tools")
        total = self._count(json.dumps(tools)) if tools else 0
        for message in body["messages"]:
            calls = message.get("tool_calls")
            total += self._count(text_of(message)) + OVERHEAD
            total += sum(self._count(call["function"]["arguments"]) + OVERHEAD for call in calls or ())
        return total

    # -- answers ----------------------------------------------------------------------------

    async def _answer(self, call: Call, answer: Answer, prompt: int) -> web.StreamResponse:
        if isinstance(answer, Reply):
            reply = self._capped(answer, call.wire.cap(call.body))
            cached = self._cache.read(call.wire.plain(call.body)) if self._cache else 0
            frames = self._frames(call, reply, prompt, min(cached, prompt))
            if answer.hold is not None and not answer.hold_after:
                await answer.hold.wait()
            if not call.streaming:
                return web.Response(text=frames.whole(), content_type="application/json")
            if answer.hold is None or not answer.hold_after:
                return web.Response(text="".join(frames), content_type="text/event-stream")
            return await self._held(call.request, list(frames), answer)
        if isinstance(answer, Refuse):
            return _refusal(call.wire, answer)
        if isinstance(answer, Garbage):
            return web.Response(body=answer.bytes, content_type=answer.content_type)
        return await self._misbehave(call, answer)

    def _frames(self, call: Call, reply: Reply, prompt: int = 1, cached: int = 0) -> Frames:
        return call.wire.frames(call.body, reply, prompt, self._count, next(self._numbers), cached)

    async def _held(self, request: web.Request, frames: list[str], answer: Reply) -> web.StreamResponse:
        response = await _stream(request, frames[: answer.hold_after])
        assert answer.hold is not None
        await answer.hold.wait()
        await response.write("".join(frames[answer.hold_after :]).encode())
        return response

    async def _misbehave(self, call: Call, answer: Answer) -> web.StreamResponse:
        request = call.request
        if isinstance(answer, Hang):
            await self._closing.wait()
            return web.Response(status=503)
        if isinstance(answer, Cut):
            frames = list(self._frames(call, Reply(text=answer.text)))
            response = await _stream(request, frames[: answer.after])
            if not answer.tidy and request.transport is not None:
                request.transport.abort()
            return response
        if isinstance(answer, SlowLoris):
            response = await _stream(request, [])
            for byte in itertools.cycle(answer.said):
                if self._closing.is_set():
                    break
                await response.write(bytes([byte]))
                await asyncio.sleep(answer.interval)
            return response
        if isinstance(answer, ErrorInside):
            if not call.streaming:
                return web.Response(text=call.wire.error(200, answer.error), content_type="application/json")
            frames = list(self._frames(call, Reply(text="One two three four five six.")))
            sent = frames[: answer.after]
            return web.Response(
                text="".join([*sent, call.wire.error_inside(answer.error)]), content_type="text/event-stream"
            )
        assert isinstance(answer, EmptyChoices)
        if not call.streaming:
            return web.json_response({"id": "x", "object": "chat.completion", "choices": []})
        return web.Response(text='data: {"choices":[]}\n\ndata: [DONE]\n\n', content_type="text/event-stream")

    def _capped(self, reply: Reply, cap: int | None) -> Reply:
        """A reply that keeps to the output cap, as the real one's does: cut, and saying so."""
        if cap is None or self._count(reply.text) <= cap:
            return reply
        words = reply.text.split(" ")
        while words and self._count(" ".join(words)) > cap:
            words = words[: min(len(words) - 1, len(words) * 9 // 10)]
        return Reply(
            text=" ".join(words), finish="length", usage=reply.usage, hold=reply.hold, hold_after=reply.hold_after
        )


class ChatFrames:
    """A reply as the frames of a stream, or as one whole response."""

    def __init__(
        self,
        body: Mapping[str, Any],
        reply: Reply,
        prompt: int,
        count: Callable[[str], int],
        number: int,
        *,
        cached: int = 0,
    ) -> None:
        self._reply = reply
        self._usage_wanted = bool((body.get("stream_options") or {}).get("include_usage"))
        self._head = {"id": f"chatcmpl-{number}", "created": 1_700_000_000, "model": body["model"]}
        made = [
            {
                "id": f"call_{number}_{index}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for index, (name, arguments) in enumerate(reply.tool_calls)
        ]
        self._model = str(body["model"])
        self._calls: list[dict[str, Any]] = llm_attached.to_calls(self._model, made)
        self._usage: Mapping[str, Any] | None = reply.usage
        if reply.usage is None:
            output = count(reply.text) + count(reply.reasoning) + sum(count(str(call)) for call in self._calls)
            self._usage = {
                "prompt_tokens": prompt,
                "completion_tokens": output,
                "total_tokens": prompt + output,
                "prompt_tokens_details": {"cached_tokens": cached},
                "completion_tokens_details": {"reasoning_tokens": count(reply.reasoning)},
            }

    @property
    def _finish(self) -> str:
        return self._reply.finish or ("tool_calls" if self._calls else "stop")

    def whole(self) -> str:
        """The answer of a call without `stream`."""
        message: dict[str, Any] = {"role": "assistant", "content": self._reply.text or None, "refusal": None}
        if self._calls:
            message["tool_calls"] = self._calls
        if self._reply.reasoning:
            message["reasoning_content"] = self._reply.reasoning
            if whole := llm_attached.whole_details(self._model, self._reply.reasoning):
                message["reasoning_details"] = whole
        choice = {"index": 0, "message": message, "finish_reason": self._finish, "logprobs": None}
        response = {**self._head, "object": "chat.completion", "choices": [choice]}
        return json.dumps({**response, "usage": self._usage} if self._usage else response)

    def __iter__(self) -> Iterator[str]:
        yield self._frame({"role": "assistant", "content": "", "refusal": None})
        if self._reply.reasoning:
            yield self._frame({"reasoning_content": self._reply.reasoning})
        for detail in llm_attached.details(self._model, self._reply.reasoning):
            yield self._frame({"reasoning_details": [detail]})
        for piece in pieces(self._reply.text):
            yield self._frame({"content": piece})
        for index, call in enumerate(self._calls):
            function: Any = call["function"]
            opening = {**call, "index": index, "function": {"name": function["name"], "arguments": ""}}
            yield self._frame({"tool_calls": [opening]})
            half = len(function["arguments"]) // 2
            for part in (function["arguments"][:half], function["arguments"][half:]):
                yield self._frame({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
        yield self._frame({}, self._finish)
        if self._usage_wanted and self._usage:
            yield self._data({"choices": [], "usage": self._usage})
        yield "data: [DONE]\n\n"

    def _frame(self, delta: Mapping[str, Any], finish: str | None = None) -> str:
        return self._data({"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]})

    def _data(self, rest: Mapping[str, Any]) -> str:
        return f"data: {json.dumps({**self._head, 'object': 'chat.completion.chunk', **rest})}\n\n"


class ChatWire:
    """Chat Completions."""

    path = "/v1/chat/completions"

    def presented(self, headers: Mapping[str, str]) -> str | None:
        return headers.get("Authorization", "").removeprefix("Bearer ") or None

    def violations(self, body: Any) -> Iterator[str]:
        yield from list(violations(llm_attached.without(body))) or llm_attached.violations(body)

    def plain(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return dict(body)

    def cap(self, body: Mapping[str, Any]) -> int | None:
        return body.get("max_completion_tokens") or body.get("max_tokens")

    def frames(
        self, body: Mapping[str, Any], reply: Reply, prompt: int, count: Callable[[str], int], number: int, cached: int
    ) -> ChatFrames:
        return ChatFrames(body, reply, prompt, count, number, cached=cached)

    def too_long(self, prompt: int, cap: int | None, window: int) -> str | None:
        begin = f"This model's maximum context length is {window} tokens. However, "
        if prompt > window:
            return f"{begin}your messages resulted in {prompt} tokens. Please reduce the length of the messages."
        if prompt + (cap or 0) > window:
            return (
                f"{begin}you requested {prompt + (cap or 0)} tokens ({prompt} in the messages, {cap} in the "
                "completion). Please reduce the length of the messages or completion."
            )
        return None

    def error(self, status: int, error: Mapping[str, Any]) -> str:
        return json.dumps({"error": dict(error)})

    def error_inside(self, error: Mapping[str, Any]) -> str:
        return f"data: {self.error(200, error)}\n\n"

    def models(self, names: Sequence[str], window: int) -> dict[str, Any]:
        entries = [
            {"id": name, "object": "model", "created": 1_700_000_000, "owned_by": "emulator", "context_length": window}
            for name in names
        ]
        return {"object": "list", "data": entries}


WIRES: tuple[Wire, ...] = (ChatWire(), ResponsesWire(), MessagesWire())


@dataclass(frozen=True, slots=True)
class Call:
    """One request, and the wire format that it came in."""

    wire: Wire
    request: web.Request
    body: dict[str, Any]

    @property
    def streaming(self) -> bool:
        return self.body.get("stream") is True


def _refusal(wire: Wire, answer: Refuse) -> web.Response:
    """A refusal in the API's own words; a body that is no error of Chat Completions is sent as it is."""
    try:
        body = wire.error(answer.status, json.loads(answer.body)["error"])
    except (ValueError, KeyError, TypeError):
        body = answer.body
    return web.Response(status=answer.status, text=body, headers=dict(answer.headers), content_type=answer.content_type)


async def _stream(request: web.Request, frames: list[str]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    if frames:
        await response.write("".join(frames).encode())
    return response
