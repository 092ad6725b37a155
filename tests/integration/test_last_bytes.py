"""After `[DONE]` an answer is read to the end of its body, so that its connection can be used again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from gateway.providers.base import Completed, ModelEvent, ModelRequest, ModelSpec
from gateway.providers.http import http_client
from gateway.providers.openai.chat_completions import ChatCompletions
from tests.support.fakes import ManualClock

ANSWER = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
REQUEST = ModelRequest(messages=[{"role": "user", "content": "hello"}])

Handler = Callable[[web.Request, web.StreamResponse], Awaitable[None]]


@asynccontextmanager
async def serving(end: Handler) -> AsyncIterator[ModelSpec]:
    """A server that streams one whole answer and leaves the end of the body to `end`."""

    async def answer(request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(ANSWER)
        await end(request, response)
        return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield ModelSpec(provider="openai", name="m", base_url=f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
    finally:
        await runner.cleanup()


async def ask(provider: ChatCompletions, spec: ModelSpec) -> ModelEvent:
    return [event async for event in provider.stream(spec, REQUEST)][-1]


async def test_one_connection_serves_calls_that_follow_one_another() -> None:
    peers: set[object] = set()

    async def a_little_later(request: web.Request, response: web.StreamResponse) -> None:
        assert request.transport is not None
        peers.add(request.transport.get_extra_info("peername"))
        for _ in range(20):  # [DONE] is on its way alone
            await asyncio.sleep(0)
        await response.write_eof()

    async with serving(a_little_later) as spec:
        provider = ChatCompletions(http_client(), str)
        for _ in range(5):
            assert isinstance(await ask(provider, spec), Completed)
        await provider.aclose()
    assert len(peers) == 1


async def test_a_server_that_never_ends_its_answer_is_left() -> None:
    async def never(request: web.Request, response: web.StreamResponse) -> None:
        await asyncio.Event().wait()

    clock = ManualClock()
    async with serving(never) as spec:
        provider = ChatCompletions(http_client(), str, clock=clock)
        asking = asyncio.create_task(ask(provider, spec))
        await clock.until_pending()
        await clock.advance(1)
        completed = await asking
        await provider.aclose()
    assert isinstance(completed, Completed)
    assert completed.text == "Hi"
