"""The Chat Completions provider against a strict loopback server, over the real HTTP stack."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

import httpx
import pytest
from aiohttp import web

from gateway.domain.message import assistant, tool_result, user
from gateway.providers.base import READ_TIMEOUT, Completed, ModelEvent, ModelRequest, ModelSpec, OfferedModel, TextDelta
from gateway.providers.http import http_client
from gateway.providers.openai.chat_completions import ChatCompletions
from gateway.runtime.errors import (
    ContextOverflow,
    EmptyAnswer,
    NoModelThere,
    OutputCapTooLarge,
    ProviderError,
    ProviderRateLimited,
    ProviderRejected,
    ProviderUnavailable,
)
from gateway.runtime.structs import replace
from tests.emulators.llm import LlmServer
from tests.emulators.llm_local import KINDS, local_server
from tests.emulators.llm_replies import (
    Answer,
    Cut,
    EmptyChoices,
    ErrorInside,
    Garbage,
    Hang,
    Refuse,
    Reply,
    Script,
    SlowLoris,
    error_body,
    rate_limited,
    server_error,
)
from tests.support.fakes import ManualClock
from tests.support.model import PATIENCE

SYSTEM = {"role": "system", "content": "You are a test."}
TOOL = {"type": "function", "function": {"name": "clock", "description": "Time.", "parameters": {"type": "object"}}}


def words(text: str) -> int:
    return len(text.split())


@pytest.fixture
async def server() -> AsyncIterator[LlmServer]:
    async with LlmServer(count=words, context_length=200, api_key="k-test") as running:
        yield running


@pytest.fixture
async def provider() -> AsyncIterator[ChatCompletions]:
    made = ChatCompletions(http_client(read_timeout=PATIENCE), lambda text: text.replace("hunter2", "[REDACTED]"))
    yield made
    await made.aclose()


def spec_of(server: LlmServer, api_key: str = "k-test") -> ModelSpec:
    return ModelSpec(provider="openai", name="test-model", base_url=server.url, api_key=api_key)


def asking(text: str = "hello there", **more: object) -> ModelRequest:
    return ModelRequest(messages=[SYSTEM, user(text)], **more)  # type: ignore[list-item, arg-type]


async def collect(provider: ChatCompletions, spec: ModelSpec, request: ModelRequest) -> list[ModelEvent]:
    return [event async for event in provider.stream(spec, request)]


async def complete(provider: ChatCompletions, spec: ModelSpec, request: ModelRequest) -> Completed:
    last = (await collect(provider, spec, request))[-1]
    assert isinstance(last, Completed)
    return last


async def test_text_streams_and_usage_is_reported(server: LlmServer, provider: ChatCompletions) -> None:
    events = await collect(provider, spec_of(server), asking("one two three four five"))
    deltas = [event.text for event in events if isinstance(event, TextDelta)]
    completed = events[-1]
    assert isinstance(completed, Completed)
    assert "".join(deltas) == completed.text == "echo: one two three four five"
    assert len(deltas) > 1
    assert completed.stop == "stop"
    assert completed.usage is not None
    assert completed.usage.prompt_tokens == 9 + 8
    assert completed.usage.output_tokens == 6
    assert not server.violations


async def test_a_whole_tool_exchange_is_valid_on_the_wire(server: LlmServer, provider: ChatCompletions) -> None:
    server.reply = Script(Reply(text="Let me see.", tool_calls=[("clock", {"zone": "UTC"}), ("clock", {})]))
    first = await complete(provider, spec_of(server), asking("time?", tools=[TOOL]))
    assert first.stop == "tool_calls"
    assert [json.loads(call["function"]["arguments"]) for call in first.tool_calls] == [{"zone": "UTC"}, {}]
    said = assistant(first.text, first.tool_calls, tokens=5)
    said["reasoning_content"] = "private"
    results = [tool_result(call["id"], "", id="m1") for call in first.tool_calls]
    again = ModelRequest(messages=[SYSTEM, user("time?", id="m0"), said, *results], tools=[TOOL], max_tokens=50)  # type: ignore[list-item]
    assert (await complete(provider, spec_of(server), again)).text == "echo: time?"
    assert not server.violations
    sent = server.requests[-1]
    assert sent["max_tokens"] == 50
    assert all(not key.startswith("_") for message in sent["messages"] for key in message)


async def test_what_platforms_send_cannot_break_the_json(server: LlmServer, provider: ChatCompletions) -> None:
    completed = await complete(provider, spec_of(server), asking("half \ud83d emoji and nul \x00 here"))
    assert completed.text == "echo: half \ufffd emoji and nul  here"
    assert not server.violations


async def test_reasoning_is_kept_apart(server: LlmServer, provider: ChatCompletions) -> None:
    server.reply = Script(Reply(text="Yes.", reasoning="Hmm, let me think."))
    completed = await complete(provider, spec_of(server), asking())
    assert (completed.text, completed.reasoning) == ("Yes.", "Hmm, let me think.")


async def test_an_answer_without_a_usage_report_has_none(server: LlmServer, provider: ChatCompletions) -> None:
    server.reply = Script(Reply(text="Yes.", usage={}))
    assert (await complete(provider, spec_of(server), asking())).usage is None


async def test_a_capped_answer_says_so(server: LlmServer, provider: ChatCompletions) -> None:
    completed = await complete(provider, spec_of(server), asking("a b c d e f g h i j", max_tokens=4))
    assert completed.stop == "length"
    assert words(completed.text) <= 4


async def test_a_prompt_beyond_the_window(server: LlmServer, provider: ChatCompletions) -> None:
    with pytest.raises(ContextOverflow) as caught:
        await complete(provider, spec_of(server), asking("word " * 300))
    assert caught.value.limit == 200
    assert server.overflows == 1


async def test_an_output_cap_beyond_the_window(server: LlmServer, provider: ChatCompletions) -> None:
    with pytest.raises(OutputCapTooLarge) as caught:
        await complete(provider, spec_of(server), asking("one two", max_tokens=199))
    assert caught.value.available == 200 - (2 + 4 + 4 + 4)


async def test_a_wrong_key(server: LlmServer, provider: ChatCompletions) -> None:
    with pytest.raises(ProviderRejected, match=r"api_key"):
        await complete(provider, spec_of(server, api_key="wrong"), asking())


@pytest.mark.parametrize("key", ["two\nlines", "schlüssel", "a\x00b"])
async def test_a_key_that_cannot_be_sent(server: LlmServer, provider: ChatCompletions, key: str) -> None:
    with pytest.raises(ProviderRejected, match=r"api_key"):
        await complete(provider, spec_of(server, api_key=key), asking())
    assert server.calls == 0


async def test_white_space_around_a_key_is_forgiven(server: LlmServer, provider: ChatCompletions) -> None:
    assert (await complete(provider, spec_of(server, api_key=" k-test\n"), asking())).text == "echo: hello there"


async def test_the_window_that_the_server_states(server: LlmServer, provider: ChatCompletions) -> None:
    assert await provider.reported_window(spec_of(server)) == 200
    with pytest.raises(ProviderUnavailable):
        await provider.reported_window(ModelSpec(provider="openai", name="m", base_url="http://127.0.0.1:9/v1"))
    async with Peculiar() as spec:
        assert await provider.reported_window(spec) is None


@pytest.mark.parametrize("kind", KINDS)
async def test_the_window_that_a_server_of_ones_own_runs_with(provider: ChatCompletions, kind: str) -> None:
    async with local_server(kind, window=8_192) as local:
        spec = ModelSpec(provider="openai", name="qwen3", base_url=local.url)
        assert await provider.reported_window(spec) == 8_192


async def test_ollama_loads_a_model_to_say_its_window(provider: ChatCompletions) -> None:
    async with local_server("ollama", window=4_096, loaded=False) as local:
        spec = ModelSpec(provider="openai", name="qwen3", base_url=local.url)
        assert await provider.reported_window(spec) == 4_096
        assert "/api/generate" in local.asked
        local.loaded, local.num_ctx = False, 16_384
        local.asked.clear()
        assert await provider.reported_window(spec) == 16_384  # its file says so
        assert "/api/generate" not in local.asked


FAULTS: list[tuple[Answer, type[ProviderError]]] = [
    (rate_limited(3), ProviderRateLimited),
    (server_error(), ProviderUnavailable),
    (server_error(503), ProviderUnavailable),
    (Garbage(), NoModelThere),
    (Garbage(body="data: {\n\n", content_type="text/event-stream"), ProviderUnavailable),
    (Garbage(body='data: {"choi\n\ndata: [DONE]\n\n', content_type="text/event-stream"), ProviderUnavailable),
    (Garbage(body="", content_type="text/event-stream"), ProviderUnavailable),
    (Garbage(body="data: [DONE]\n\n", content_type="text/event-stream"), ProviderUnavailable),
    (Garbage(body="null", content_type="application/json"), ProviderUnavailable),
    (Garbage(body="", content_type="application/json"), ProviderUnavailable),
    (EmptyChoices(), ProviderUnavailable),
    (Reply(text=""), EmptyAnswer),
    (Cut(after=0), ProviderUnavailable),
    (Cut(after=3), ProviderUnavailable),
    (Cut(after=3, tidy=True), ProviderUnavailable),
    (ErrorInside(error={"message": "Overloaded", "type": "overloaded_error"}), ProviderUnavailable),
    (ErrorInside(error={"message": "Overloaded", "code": 502}, after=3), ProviderUnavailable),
    (ErrorInside(error={"message": "prompt is too long: 300 tokens > 200 maximum"}, after=1), ContextOverflow),
    (Garbage(body=error_body("slow down", code="rate_limit_exceeded"), content_type="application/json"),
     ProviderRateLimited),
    (Refuse(status=400, body=error_body("The secret hunter2 is wrong")), ProviderRejected),
    (Refuse(status=301, headers={"Location": "/elsewhere"}), ProviderRejected),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "kind"), FAULTS)
async def test_faults_become_provider_errors(
    server: LlmServer, provider: ChatCompletions, fault: Answer, kind: type[ProviderError]
) -> None:
    server.reply = Script(fault)
    with pytest.raises(ProviderError) as caught:
        await complete(provider, spec_of(server), asking())
    assert type(caught.value) is kind
    assert "hunter2" not in str(caught.value)
    # The next call is none the worse for it.
    assert (await complete(provider, spec_of(server), asking())).text == "echo: hello there"


async def test_the_wait_of_a_429_is_passed_on(server: LlmServer, provider: ChatCompletions) -> None:
    server.reply = Script(rate_limited(3))
    with pytest.raises(ProviderRateLimited) as caught:
        await complete(provider, spec_of(server), asking())
    assert caught.value.retry_after == 3


@pytest.mark.parametrize("fault", [Hang()])
async def test_silence_ends_as_a_timeout(server: LlmServer, fault: Answer) -> None:
    impatient = ChatCompletions(http_client(read_timeout=0.05), str)
    server.reply = Script(fault)
    with pytest.raises(ProviderUnavailable) as caught:
        await complete(impatient, spec_of(server), asking())
    assert caught.value.timed_out
    await impatient.aclose()


@pytest.mark.parametrize("fault", [Hang(), SlowLoris(interval=0.001)])
async def test_a_stream_that_does_not_begin_in_time_is_given_up(server: LlmServer, fault: Answer) -> None:
    clock = ManualClock()
    patient = ChatCompletions(http_client(), str, clock=clock)
    server.reply = Script(fault)
    call = asyncio.create_task(complete(patient, replace(spec_of(server), silence=90), asking()))
    await server.until(lambda: bool(server.requests))
    await clock.advance(89)
    assert not call.done()
    await clock.advance(2)
    with pytest.raises(ProviderUnavailable) as caught:
        await call
    assert caught.value.timed_out
    assert (await complete(patient, replace(spec_of(server), silence=90), asking())).text == "echo: hello there"
    assert not clock.pending, "only the beginning is waited for"
    await patient.aclose()


@pytest.mark.parametrize("fault", [Hang(), SlowLoris(interval=0.001), SlowLoris(interval=0.001, said=b" ")])
async def test_an_answer_in_one_piece_that_does_not_end_in_time_is_given_up(server: LlmServer, fault: Answer) -> None:
    clock = ManualClock()
    patient = ChatCompletions(http_client(), str, clock=clock)
    spec, request = replace(spec_of(server), silence=1, whole_answer=300), asking(omit=frozenset({"stream"}))
    server.reply = Script(fault)
    call = asyncio.create_task(complete(patient, spec, request))
    await server.until(lambda: bool(server.requests))
    await clock.advance(299)
    assert not call.done(), "it takes longer than a stream takes to begin"
    await clock.advance(2)
    with pytest.raises(ProviderUnavailable) as caught:
        await call
    assert caught.value.timed_out
    assert (await complete(patient, spec, request)).text == "echo: hello there"
    assert not clock.pending
    await patient.aclose()


@pytest.mark.parametrize("said", [b"\n", b"\r", b"\r\n"])
async def test_comments_of_any_line_ends_hold_no_answer_up(said: bytes) -> None:
    """A router sends comments; then the words, and goes on thinking about the next ones."""
    more = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b": wait" + said + said)
        frame = json.dumps({"choices": [{"index": 0, "delta": {"content": "one"}}]}).encode()
        await response.write(b": wait" + said + b"data: " + frame + said + said + b": on" + said)
        await more.wait()
        return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    patient = ChatCompletions(http_client(read_timeout=PATIENCE), str)
    spec = ModelSpec(provider="openai", name="m", base_url=f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
    async with aclosing(patient.stream(spec, asking())) as events:
        assert await anext(events) == TextDelta(text="one")
    more.set()
    await patient.aclose()
    await runner.cleanup()


def chunk(**delta: object) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"


def growing(number: int) -> bytes:
    """A call whose arguments come in eight pieces."""
    if number == 0:
        return chunk(tool_calls=[{"index": 0, "id": "c", "function": {"name": "t", "arguments": '{"a": "'}}])
    return chunk(tool_calls=[{"index": 0, "function": {"arguments": '"}' if number == 7 else "x"}}])


@pytest.mark.parametrize(
    ("begins", "goes_on", "lives"),
    [
        (b"", lambda _: b": wait\n\n", False),
        (b"", lambda _: chunk(), False),
        (b"", lambda _: chunk(role="assistant", content=""), False),
        (b"", lambda _: b'data: {"choices": []}\n\n', False),
        (chunk(content="one"), lambda _: b": wait\n\n", False),
        (chunk(content="one"), lambda _: chunk(content=""), False),
        (chunk(content="one"), lambda _: chunk(content="more"), True),
        (chunk(content="one"), lambda _: chunk(reasoning="hm"), True),
        (b"", growing, True),
    ],
)
async def test_what_is_no_sign_of_life(begins: bytes, goes_on: Callable[[int], bytes], lives: bool) -> None:
    """A hundred seconds pass before each piece: an answer lives while something of it comes."""
    clock = ManualClock()

    async def body() -> AsyncIterator[bytes]:
        yield begins
        for number in range(8):
            await clock.advance(100)
            yield goes_on(number)
        yield chunk(content="end") + b"data: [DONE]\n\n"

    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=body()))
    provider = ChatCompletions(httpx.AsyncClient(transport=transport, timeout=READ_TIMEOUT), str, clock=clock)
    spec = ModelSpec(provider="openai", name="m", base_url="http://model/v1")
    if lives:
        assert (await complete(provider, spec, asking())).text.endswith("end")
    else:
        with pytest.raises(ProviderUnavailable) as caught:
            await complete(provider, spec, asking())
        assert caught.value.timed_out
    await provider.aclose()


@pytest.mark.parametrize("silence", [None, 90.0])
@pytest.mark.parametrize("fault", [Hang(), SlowLoris(interval=0.001)])
async def test_giving_up_ends_the_call_at_the_server(
    server: LlmServer, provider: ChatCompletions, fault: Answer, silence: float | None
) -> None:
    server.reply = Script(fault)
    task = asyncio.create_task(complete(provider, replace(spec_of(server), silence=silence), asking()))
    await server.until(lambda: bool(server.requests))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await server.until(lambda: not server.in_flight)
    assert server.abandoned == 1


async def test_closing_the_stream_early_ends_the_call_at_the_server(
    server: LlmServer, provider: ChatCompletions
) -> None:
    server.reply = Script(Reply(text="one two three four five six", hold=asyncio.Event(), hold_after=2))
    async with aclosing(provider.stream(spec_of(server), asking())) as events:
        first = await anext(events)
    assert first == TextDelta(text="one two three")
    await server.until(lambda: not server.in_flight)
    assert server.abandoned == 1


async def test_nobody_listens(provider: ChatCompletions) -> None:
    spec = ModelSpec(provider="openai", name="m", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ProviderUnavailable):
        await complete(provider, spec, asking())


@pytest.mark.parametrize("address", ["ftp://127.0.0.1/v1", "nonsense", "http://", "http://" + "ä" * 300 + "/v1"])
async def test_addresses_that_cannot_be(provider: ChatCompletions, address: str) -> None:
    with pytest.raises(ProviderError):
        await complete(provider, ModelSpec(provider="openai", name="m", base_url=address), asking())


async def test_a_proxy_of_the_environment_is_not_used_for_loopback(
    server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    provider = ChatCompletions(http_client(), str)
    assert (await complete(provider, spec_of(server), asking())).text == "echo: hello there"
    await provider.aclose()


# --- servers with habits of their own --------------------------------------------------------


class Peculiar:
    """A server that answers what a test says, and remembers what it was sent."""

    def __init__(self, *answers: tuple[int, str, str]) -> None:
        self.answers = list(answers)  # (status, content type, body)
        self.bodies: list[dict[str, object]] = []

    async def __aenter__(self) -> ModelSpec:
        async def answer(request: web.Request) -> web.Response:
            self.bodies.append(await request.json())
            status, kind, body = self.answers.pop(0)
            return web.Response(status=status, text=body, content_type=kind)

        app = web.Application()
        app.router.add_post("/chat/completions", answer)
        self.runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", 0).start()
        return ModelSpec(provider="openai", name="m", base_url=f"http://127.0.0.1:{self.runner.addresses[0][1]}/")

    async def __aexit__(self, *_: object) -> None:
        await self.runner.cleanup()


WHOLE = json.dumps(
    {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}}
)
SSE = 'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", WHOLE),
        ("text/plain", WHOLE),
        ("text/plain", SSE),
        ("application/octet-stream", f": hello\n\n{SSE}"),
        ("text/event-stream", f": PROCESSING\n\ndata: ping\n\n{SSE}data: [DONE]\n\n"),
        ("text/event-stream", SSE.replace("\n", "\r\n")),
        ("text/event-stream", SSE.rstrip("\n") + "\n\n"),
        ("Text/Event-Stream", SSE),
        ("text/event-stream", WHOLE),
        ("text/html", "\ufeff" + SSE),
    ],
)
async def test_other_ways_to_say_the_same(provider: ChatCompletions, kind: str, body: str) -> None:
    async with Peculiar((200, kind, body)) as spec:
        events = await collect(provider, spec, asking())
    assert events[0] == TextDelta(text="Hi")
    assert isinstance(events[-1], Completed)
    assert events[-1].text == "Hi"


async def test_a_refused_option_is_left_out_from_then_on(provider: ChatCompletions) -> None:
    refusal = error_body("Unrecognized request argument supplied: stream_options")
    peculiar = Peculiar((400, "application/json", refusal), *[(200, "text/event-stream", SSE)] * 2)
    async with peculiar as spec:
        assert (await complete(provider, spec, asking())).text == "Hi"
        assert (await complete(provider, spec, asking())).text == "Hi"
    assert ["stream_options" in body for body in peculiar.bodies] == [True, False, False]


async def test_the_other_name_of_the_output_cap_is_tried_once(provider: ChatCompletions) -> None:
    refusal = error_body(
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        code="unsupported_parameter",
    )
    both = error_body("Unsupported parameter: 'max_completion_tokens'.")
    peculiar = Peculiar((400, "application/json", refusal), (400, "application/json", both))
    async with peculiar as spec:
        with pytest.raises(ProviderRejected):
            await complete(provider, spec, asking(max_tokens=7))
    assert [body.get("max_tokens") for body in peculiar.bodies] == [7, None]
    assert peculiar.bodies[1]["max_completion_tokens"] == 7


async def test_the_models_of_a_server_are_listed_with_their_windows(
    server: LlmServer, provider: ChatCompletions
) -> None:
    assert await provider.models(spec_of(server)) == [OfferedModel(name="test-model", window=200)]


async def test_a_server_that_lists_nothing_offers_nothing(provider: ChatCompletions) -> None:
    async with Peculiar() as spec:
        assert await provider.models(spec) == []
