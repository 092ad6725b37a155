"""A loopback server that speaks OpenAI's Chat Completions as strictly as the real one.

    async with LlmServer() as server:
        spec = ModelSpec(provider="openai", name="test", base_url=server.url)

Every request is checked (`llm_rules`), counted against a context window and kept in
`server.requests`; what was wrong with any is in `server.violations`, so that a test can end with
`assert not server.violations`. What it answers is `server.reply`, a hook (`llm_replies`) that may
be replaced at any time. To run it alone: `python -m tests.emulators.llm --port 8900`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, Self

from aiohttp import web

from gateway.domain.message import text_of
from gateway.runtime.tokens import TokenCounter
from tests.emulators.llm_cache import PrefixCache
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
from tests.emulators.llm_rules import violations

OVERHEAD = 4  # tokens of every message beside its text
WORDS_PER_DELTA = 3
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
        """What goes into `base_url`."""
        return f"http://{self._host}:{self._port}/v1"

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 28)
        app.router.add_post("/v1/chat/completions", self._completions)
        app.router.add_get("/v1/models", self._models)
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
        entry = {"id": "test-model", "object": "model", "owned_by": "emulator", "context_length": self.context_length}
        return web.json_response({"object": "list", "data": [entry]})

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        self.calls += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        self._changed.set()
        try:
            return await self._checked(request)
        except (asyncio.CancelledError, ConnectionError):
            self.abandoned += 1
            raise
        finally:
            self.in_flight -= 1
            self._changed.set()

    async def _checked(self, request: web.Request) -> web.StreamResponse:
        if self.api_key and request.headers.get("Authorization") != f"Bearer {self.api_key}":
            return _refusal(unauthorized())
        try:
            body = json.loads(await request.read())
        except ValueError:
            self.violations.append("The body is not JSON.")
            return _refusal(Refuse(status=400, body=error_body("We could not parse the JSON body of your request.")))
        wrong = list(violations(body))
        if wrong:
            self.violations += wrong
            return _refusal(Refuse(status=400, body=error_body(wrong[0])))
        self.requests.append(body)
        self._changed.set()
        prompt = self.prompt_tokens(body)
        too_long = self._too_long(prompt, _cap(body))
        if too_long:
            self.overflows += 1
            return _refusal(Refuse(status=400, body=error_body(too_long, code="context_length_exceeded")))
        return await self._answer(request, body, self.reply(body), prompt)

    def prompt_tokens(self, body: Mapping[str, Any]) -> int:
        """The tokens of a request, tools included."""
        tools = body.get("tools")
        total = self._count(json.dumps(tools)) if tools else 0
        for message in body["messages"]:
            calls = message.get("tool_calls")
            total += self._count(text_of(message)) + OVERHEAD
            total += sum(self._count(call["function"]["arguments"]) + OVERHEAD for call in calls or ())
        return total

    def _too_long(self, prompt: int, cap: int | None) -> str | None:
        window = f"This model's maximum context length is {self.context_length} tokens. However, "
        if prompt > self.context_length:
            return f"{window}your messages resulted in {prompt} tokens. Please reduce the length of the messages."
        if prompt + (cap or 0) > self.context_length:
            return (
                f"{window}you requested {prompt + (cap or 0)} tokens ({prompt} in the messages, {cap} in the "
                "completion). Please reduce the length of the messages or completion."
            )
        return None

    # -- answers ----------------------------------------------------------------------------

    async def _answer(
        self, request: web.Request, body: dict[str, Any], answer: Answer, prompt: int
    ) -> web.StreamResponse:
        streaming = body.get("stream") is True
        if isinstance(answer, Reply):
            reply, cached = self._capped(answer, _cap(body)), self._cache.read(body) if self._cache else 0
            frames = Frames(body, reply, prompt, self._count, next(self._numbers), cached=min(cached, prompt))
            if answer.hold is not None and not answer.hold_after:
                await answer.hold.wait()
            if not streaming:
                return web.Response(text=frames.whole(), content_type="application/json")
            if answer.hold is None or not answer.hold_after:
                return web.Response(text="".join(frames), content_type="text/event-stream")
            return await self._held(request, list(frames), answer)
        if isinstance(answer, Refuse):
            return _refusal(answer)
        if isinstance(answer, Garbage):
            return web.Response(text=answer.body, content_type=answer.content_type)
        return await self._misbehave(request, body, answer, streaming=streaming)

    async def _held(self, request: web.Request, frames: list[str], answer: Reply) -> web.StreamResponse:
        response = await _stream(request, frames[: answer.hold_after])
        assert answer.hold is not None
        await answer.hold.wait()
        await response.write("".join(frames[answer.hold_after :]).encode())
        return response

    async def _misbehave(
        self, request: web.Request, body: dict[str, Any], answer: Answer, *, streaming: bool
    ) -> web.StreamResponse:
        if isinstance(answer, Hang):
            await self._closing.wait()
            return web.Response(status=503)
        if isinstance(answer, Cut):
            frames = list(Frames(body, Reply(text=answer.text), 1, self._count, next(self._numbers)))
            response = await _stream(request, frames[: answer.after])
            if not answer.tidy and request.transport is not None:
                request.transport.abort()
            return response
        if isinstance(answer, SlowLoris):
            response = await _stream(request, [])
            for byte in itertools.cycle(b": still thinking\n"):
                if self._closing.is_set():
                    break
                await response.write(bytes([byte]))
                await asyncio.sleep(answer.interval)
            return response
        if isinstance(answer, ErrorInside):
            error = json.dumps({"error": dict(answer.error)})
            if not streaming:
                return web.Response(text=error, content_type="application/json")
            frames = list(Frames(body, Reply(text="One two three four five six."), 1, self._count, next(self._numbers)))
            sent = frames[: answer.after]
            return web.Response(text="".join([*sent, f"data: {error}\n\n"]), content_type="text/event-stream")
        assert isinstance(answer, EmptyChoices)
        if not streaming:
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


class Frames:
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
        self._calls = [
            {
                "id": f"call_{number}_{index}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for index, (name, arguments) in enumerate(reply.tool_calls)
        ]
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
        choice = {"index": 0, "message": message, "finish_reason": self._finish, "logprobs": None}
        response = {**self._head, "object": "chat.completion", "choices": [choice]}
        return json.dumps({**response, "usage": self._usage} if self._usage else response)

    def __iter__(self) -> Iterator[str]:
        yield self._frame({"role": "assistant", "content": "", "refusal": None})
        if self._reply.reasoning:
            yield self._frame({"reasoning_content": self._reply.reasoning})
        words = self._reply.text.split(" ") if self._reply.text else []
        for start in range(0, len(words), WORDS_PER_DELTA):
            space = " " if start else ""
            yield self._frame({"content": space + " ".join(words[start : start + WORDS_PER_DELTA])})
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


def _cap(body: Mapping[str, Any]) -> int | None:
    return body.get("max_completion_tokens") or body.get("max_tokens")


def _refusal(answer: Refuse) -> web.Response:
    return web.Response(
        status=answer.status, text=answer.body, headers=dict(answer.headers), content_type=answer.content_type
    )


async def _stream(request: web.Request, frames: list[str]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    if frames:
        await response.write("".join(frames).encode())
    return response


async def _serve(host: str, port: int, context_length: int) -> None:
    async with LlmServer(host=host, port=port, context_length=context_length) as server:
        print(server.url, flush=True)
        await asyncio.Event().wait()


def main() -> None:
    """Run the emulator until it is interrupted."""
    parser = argparse.ArgumentParser(description="A strict loopback Chat Completions server.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--context-length", type=int, default=128_000)
    options = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(options.host, options.port, options.context_length))


if __name__ == "__main__":
    main()
