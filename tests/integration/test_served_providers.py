"""The contract of every API of a server, against the emulator that speaks all of them, over the real HTTP stack."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from gateway.domain.message import Message, assistant, tool_result, user
from gateway.providers.adapting import Adapting
from gateway.providers.anthropic.messages import Messages
from gateway.providers.base import (
    Completed,
    Feature,
    ListsModels,
    ModelEvent,
    ModelRequest,
    ModelSpec,
    OfferedModel,
    Provider,
    ReasoningDelta,
    ReportsWindow,
    Restarted,
    TextDelta,
)
from gateway.providers.http import http_client
from gateway.providers.openai.chat_completions import ChatCompletions
from gateway.providers.openai_responses.responses import Responses
from gateway.providers.plugin import ModelSettings
from gateway.runtime.errors import (
    ContextOverflow,
    EmptyAnswer,
    FeatureRefused,
    NoModelThere,
    OutputCapTooLarge,
    ProviderError,
    ProviderRateLimited,
    ProviderRejected,
    ProviderUnavailable,
    QuotaExceeded,
)
from tests.emulators.llm import ChatWire, LlmServer
from tests.emulators.llm_messages import SIGNATURE, MessagesWire
from tests.emulators.llm_replies import (
    Answer,
    Cut,
    ErrorInside,
    Garbage,
    Refuse,
    Reply,
    Script,
    by_hand,
    error_body,
    server_error,
)
from tests.emulators.llm_responses import ResponsesWire
from tests.support.model import PATIENCE
from tests.support.pictures import png

SYSTEM: Message = {"role": "system", "content": "You are a test."}
TOOL = {"type": "function", "function": {"name": "clock", "description": "Time.", "parameters": {"type": "object"}}}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(png(2, 2)).decode()}}
Omit = frozenset[Feature]
WHOLE: Omit = frozenset(["stream"])
KINDS = [ChatCompletions, Messages, Responses]
Kind = type[ChatCompletions | Messages | Responses]


def words(text: str) -> int:
    return len(text.split())


@pytest.fixture
async def server() -> AsyncIterator[LlmServer]:
    async with LlmServer(count=words, context_length=100_000, api_key="k-test") as running:
        yield running


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
async def provider(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    made = request.param(http_client(read_timeout=PATIENCE), lambda text: text.replace("hunter2", "[REDACTED]"))
    yield made
    await made.aclose()


def spec_of(server: LlmServer, provider: Provider, **more: Any) -> ModelSpec:
    given: dict[str, Any] = {"name": "test-model", "api_key": "k-test", "context_length": 100_000, **more}
    return ModelSpec(provider=provider.name, base_url=server.url, **given)


def asking(*messages: Message, **more: Any) -> ModelRequest:
    return ModelRequest(messages=[SYSTEM, *(messages or [user("hello there")])], **more)


async def events_of(provider: Provider, spec: ModelSpec, request: ModelRequest) -> list[ModelEvent]:
    return [event async for event in provider.stream(spec, request)]


async def complete(provider: Provider, spec: ModelSpec, request: ModelRequest) -> Completed:
    last = (await events_of(provider, spec, request))[-1]
    assert isinstance(last, Completed)
    return last


def said(completed: Completed) -> Message:
    """An answer as the agent stores it."""
    kept = {"original": completed.original} if completed.original else {}
    message = assistant(completed.text or None, completed.tool_calls, **kept)
    if completed.reasoning:
        message["reasoning_content"] = completed.reasoning
    return json.loads(json.dumps(message))  # type: ignore[no-any-return]


# --- what is said ----------------------------------------------------------------------------


@pytest.mark.parametrize("omit", [frozenset(), WHOLE], ids=["streamed", "whole"])
async def test_words_thoughts_and_calls_of_one_answer(server: LlmServer, provider: Provider, omit: Omit) -> None:
    thoughts = "Hm, the time in two places is wanted."
    calls = [("clock", {"zone": "UTC"}), ("clock", {})]
    server.reply = Script(Reply(text="Let me see what time it is.", reasoning=thoughts, tool_calls=calls))
    events = await events_of(provider, spec_of(server, provider), asking(tools=[TOOL], omit=omit))
    completed = events[-1]
    assert ("stream" in server.requests[-1]) == (not omit)
    assert isinstance(completed, Completed)
    assert (completed.text, completed.reasoning) == ("Let me see what time it is.", thoughts)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == completed.text
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == thoughts
    assert [json.loads(call["function"]["arguments"]) for call in completed.tool_calls] == [{"zone": "UTC"}, {}]
    assert completed.stop == "tool_calls"
    assert completed.usage is not None
    assert completed.usage.prompt_tokens > 0
    assert not server.violations


async def test_a_conversation_with_tools_and_pictures_goes_back_as_it_was(
    server: LlmServer, provider: Provider
) -> None:
    looked: Message = {"role": "user", "content": [{"type": "text", "text": "What is this?"}, PICTURE]}
    server.reply = Script(
        Reply(reasoning="A picture.", text="I look.", tool_calls=[("clock", {"a": 1.5}), ("clock", {})])
    )
    first = said(await complete(provider, spec_of(server, provider), asking(looked, tools=[TOOL])))
    ids = [call["id"] for call in first["tool_calls"]]
    seen: Any = {"role": "tool", "tool_call_id": ids[0], "content": [{"type": "text", "text": "seen"}]}
    if provider.name != "openai":  # Chat Completions takes no picture in a result
        seen["content"].append(PICTURE)
    more = [looked, first, seen, tool_result(ids[1], "noon")]
    second = said(await complete(provider, spec_of(server, provider), asking(*more, tools=[TOOL])))
    third = await complete(provider, spec_of(server, provider), asking(*more, second, user("And now?"), tools=[TOOL]))
    assert third.text == "echo: And now?"
    assert not server.violations
    bodies = [json.dumps(body.get("messages") or body["input"]) for body in server.requests]
    assert bodies[1].startswith(bodies[0][:-1]), "what was sent once is sent again to the letter"
    assert bodies[2].startswith(bodies[1][:-1])


async def test_usage_that_nobody_reports_is_none(server: LlmServer, provider: Provider) -> None:
    server.reply = Script(Reply(text="Yes.", usage={}))
    assert (await complete(provider, spec_of(server, provider), asking())).usage is None


@pytest.mark.parametrize(
    ("finish", "stop"), [("length", "length"), ("content_filter", "refused"), (None, "stop")], ids=str
)
async def test_why_an_answer_ended(server: LlmServer, provider: Provider, finish: str | None, stop: str) -> None:
    server.reply = Script(Reply(text="So far", finish=finish))
    assert (await complete(provider, spec_of(server, provider), asking())).stop == stop


async def test_a_call_that_the_output_limit_cut_off_is_left_out(server: LlmServer, provider: Provider) -> None:
    server.reply = Script(Reply(text="So far", tool_calls=[("clock", {"zone": "UTC"})], finish="length"))
    completed = await complete(provider, spec_of(server, provider), asking(tools=[TOOL]))
    assert (completed.stop, len(completed.tool_calls), completed.cut_call) == ("length", 1, False)


# --- moving between APIs ---------------------------------------------------------------------


async def test_a_conversation_moves_between_the_apis_and_goes_on(server: LlmServer) -> None:
    providers: list[Provider] = [kind(http_client(), str) for kind in KINDS]
    server.reply = Script(
        *(
            Reply(reasoning=f"thoughts {turn}", text=f"words {turn}", tool_calls=[("clock", {"turn": turn})] * 2)
            for turn in range(6)
        )
    )
    transcript: list[Message] = [user("begin")]
    for provider in providers * 2:
        answer = said(await complete(provider, spec_of(server, provider), asking(*transcript, tools=[TOOL])))
        results = [tool_result(call["id"], "noon") for call in answer["tool_calls"]]
        transcript += [answer, *results, user("and?")]
    for provider in providers:
        last = await complete(provider, spec_of(server, provider), asking(*transcript, tools=[TOOL]))
        assert last.text == "echo: and?"
        sent = json.dumps(server.requests[-1])
        assert all(f"words {turn}" in sent for turn in range(6))
        await provider.aclose()
    assert not server.violations
    # The thoughts of an API went back to it alone: twice it had spoken.
    assert json.dumps(server.requests[-2]).count(SIGNATURE) == 2
    assert json.dumps(server.requests[-1]).count('encrypted_content": "') == 2


@pytest.mark.parametrize("kind", [Messages, Responses])
async def test_ids_of_other_servers_are_made_sound(server: LlmServer, kind: Kind) -> None:
    provider = kind(http_client(), str)
    function = {"name": "clock", "arguments": "["}
    odd: Any = [{"id": each, "type": "function", "function": function} for each in ("functions.clock:0", "x" * 80)]
    turn: list[Any] = [
        assistant(None, odd),
        *(tool_result(call["id"], "") for call in odd),
    ]
    completed = await complete(provider, spec_of(server, provider), asking(user(""), *turn, *turn, user("so?")))
    await provider.aclose()
    assert completed.text == "echo: so?"
    assert not server.violations


@pytest.mark.parametrize("kind", [Messages, Responses])
async def test_thoughts_that_are_refused_stay_at_home(server: LlmServer, kind: Kind) -> None:
    """The key is another account's by now."""
    provider = kind(http_client(), str)
    server.reply = Script(Reply(reasoning="hm", text="words"))
    spec = spec_of(server, provider)
    answer = said(await complete(provider, spec, asking()))
    for block in answer["_legato"]["original"]["blocks"]:
        for name in {"signature", "encrypted_content"} & block.keys():
            block[name] = "someone else's"
    completed = await complete(provider, spec, asking(user("hello"), answer, user("and?")))
    await provider.aclose()
    assert completed.text == "echo: and?"
    assert len(server.requests) == 2
    assert "somebody" not in json.dumps(server.requests[-1])
    assert "words" in json.dumps(server.requests[-1])


@pytest.mark.parametrize(
    ("kind", "blocks"),
    [
        (
            Messages,
            [{"type": "redacted_thinking", "data": "EmwK"}, {"type": "container_upload", "file_id": "f", "x": 1}],
        ),
        (Responses, [{"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search"}}]),
    ],
)
async def test_what_nobody_here_knows_goes_back_verbatim(
    server: LlmServer, kind: Kind, blocks: list[Mapping[str, Any]]
) -> None:
    provider = kind(http_client(), str)
    spec = spec_of(server, provider)
    for omit in (frozenset(), WHOLE):
        server.reply = Script(Reply(reasoning="hm", blocks=blocks, text="found it"))
        answer = said(await complete(provider, spec, asking(omit=omit)))
        await complete(provider, spec, asking(user("hello"), answer, user("and?")))
        body = server.requests[-1]
        sent = body["input"] if kind is Responses else body["messages"][1]["content"]
        assert [block for block in sent if block["type"] in {each["type"] for each in blocks}] == blocks
    await provider.aclose()
    assert not server.violations


# --- refusals and faults ---------------------------------------------------------------------

OVERLOADED = error_body("Overloaded", kind="overloaded_error")
FAULTS: list[tuple[Answer, type[ProviderError]]] = [
    (Refuse(status=529, body=OVERLOADED, headers={"Retry-After": "7"}), ProviderUnavailable),
    (server_error(503), ProviderUnavailable),
    (Refuse(status=429, body=error_body("This request would exceed your rate limit."), headers={"Retry-After": "7"}),
     ProviderRateLimited),
    (Refuse(status=400, body=error_body("Your credit balance is too low to access the API.")), QuotaExceeded),
    (Refuse(status=404, body=error_body("model: claude-9")), ProviderRejected),
    (Refuse(status=400, body=error_body("The secret hunter2 is wrong")), ProviderRejected),
    (Refuse(status=302, headers={"Location": "/elsewhere"}), ProviderRejected),
    (Refuse(status=413, body=error_body("Request exceeds the maximum size")), ContextOverflow),
    (Refuse(status=502, body="<html>Bad gateway</html>", content_type="text/html"), ProviderUnavailable),
    (ErrorInside(error={"message": "Overloaded", "type": "overloaded_error"}), ProviderUnavailable),
    (ErrorInside(error={"message": "Overloaded", "type": "overloaded_error"}, after=5), ProviderUnavailable),
    (ErrorInside(error={"message": "prompt is too long: 300 tokens > 200 maximum"}, after=2), ContextOverflow),
    (Garbage(), NoModelThere),
    (Garbage(body="data: {\n\n", content_type="text/event-stream"), ProviderUnavailable),
    (Garbage(body="data: [DONE]\n\n", content_type="text/event-stream"), ProviderUnavailable),
    (Garbage(body="", content_type="text/event-stream"), ProviderUnavailable),
    (Garbage(body="[]", content_type="application/json"), ProviderUnavailable),
    (Garbage(body="{}", content_type="application/json"), ProviderUnavailable),
    (Garbage(body=b'data: {"type":"content_block_delta","index":0,"delta":\xff\xfe', content_type="text/event-stream"),
     ProviderUnavailable),
    (Reply(text=""), EmptyAnswer),
    (Reply(text="", reasoning="only thoughts"), EmptyAnswer),
    (Cut(after=1), ProviderUnavailable),
    (Cut(text="on and on " * 9, after=5), ProviderUnavailable),
    (Cut(text="on and on " * 9, after=6, tidy=True), ProviderUnavailable),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "kind"), FAULTS)
async def test_faults_become_provider_errors(
    server: LlmServer, provider: Provider, fault: Answer, kind: type[ProviderError]
) -> None:
    server.reply = Script(fault)
    with pytest.raises(ProviderError) as caught:
        await complete(provider, spec_of(server, provider), asking())
    assert type(caught.value) is kind
    assert "hunter2" not in str(caught.value)
    if isinstance(fault, Refuse) and "Retry-After" in fault.headers:
        assert caught.value.retry_after == 7  # type: ignore[attr-defined]
    # The next call is none the worse for it.
    assert (await complete(provider, spec_of(server, provider), asking())).text == "echo: hello there"


async def test_a_wrong_key(server: LlmServer, provider: Any) -> None:
    spec = spec_of(server, provider, api_key="wrong")
    for call in (complete(provider, spec, asking()), provider.models(spec), provider.reported_window(spec)):
        with pytest.raises(ProviderRejected, match="api_key"):
            await call


async def test_models_and_windows(server: LlmServer, provider: Any) -> None:
    assert isinstance(provider, ListsModels)
    assert isinstance(provider, ReportsWindow)
    spec = spec_of(server, provider)
    assert list(await provider.models(spec)) == [OfferedModel(name="test-model", window=100_000)]
    assert await provider.reported_window(spec) == 100_000


@asynccontextmanager
async def answering(*answers: tuple[int, str]) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """A server with these answers, (status, body) each; its address, and what it was sent."""
    left, bodies = list(answers), []

    async def answer(request: web.Request) -> web.Response:
        bodies.append(await request.json())
        status, body = left.pop(0)
        return web.Response(status=status, text=body, content_type="application/json")

    app = web.Application()
    app.router.add_post("/{rest:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1", bodies
    finally:
        await runner.cleanup()


MESSAGE = json.dumps({"type": "message", "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn"})
OUTPUT = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}]
RESPONSE = json.dumps({"object": "response", "status": "completed", "output": OUTPUT})
LEARNED: list[tuple[Kind, str, str, Callable[[dict[str, Any]], bool]]] = [
    (Responses, RESPONSE, error_body("Encrypted content is not supported with this model."),
     lambda body: "include" in body),
    (Responses, RESPONSE, error_body("Unknown parameter: 'store'."), lambda body: "store" in body),
    (Messages, MESSAGE,
     error_body("max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for m"),
     lambda body: body["max_tokens"] > 8192),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "answer", "refusal", "asked"), LEARNED)
async def test_what_a_server_refuses_is_left_out_from_then_on(
    kind: Kind, answer: str, refusal: str, asked: Callable[[dict[str, Any]], bool]
) -> None:
    provider = kind(http_client(), str)
    async with answering((400, refusal), (200, answer), (200, answer)) as (url, bodies):
        spec = ModelSpec(provider=provider.name, name="m", base_url=url)
        assert (await complete(provider, spec, asking())).text == "Hi"
        assert (await complete(provider, spec, asking())).text == "Hi"
    await provider.aclose()
    assert [asked(body) for body in bodies] == [True, False, False]


async def test_giving_up_ends_the_call_at_the_server(server: LlmServer, provider: Provider) -> None:
    server.reply = Script(Reply(text="one two three four five six", hold=asyncio.Event(), hold_after=4))
    task = asyncio.create_task(complete(provider, spec_of(server, provider), asking()))
    await server.until(lambda: bool(server.requests))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await server.until(lambda: not server.in_flight)
    assert server.abandoned == 1


async def test_settings_reach_the_server_under_its_own_names(server: LlmServer, provider: Provider) -> None:
    settings = ModelSettings(temperature=0.5, reasoning_effort="low", extra_body={"service_tier": "auto"})
    await complete(provider, spec_of(server, provider, settings=settings), asking())
    body = server.requests[-1]
    assert (body["temperature"], body["service_tier"]) == (0.5, "auto")
    section = {"anthropic": "output_config", "openai-responses": "reasoning"}.get(provider.name)
    assert (body[section]["effort"] if section else body["reasoning_effort"]) == "low"
    assert not server.violations


async def test_a_server_that_refuses_streams_is_asked_for_whole_answers(server: LlmServer, provider: Provider) -> None:
    adapting = Adapting(provider)
    server.reply = Script(
        Refuse(status=400, body=error_body("Your organization must be verified to stream this model."))
    )
    completed = await complete(adapting, spec_of(server, provider), asking())
    assert completed.text == "echo: hello there"
    assert completed.omitted == WHOLE
    assert ["stream" in body for body in server.requests] == [True, False]


HARMONY = (
    "<|channel|>analysis<|message|>I should greet.<|end|><|start|>assistant<|channel|>final<|message|>Hello there."
)


@pytest.mark.parametrize("text", ["I should greet.\n</think>\n\nHello there.", HARMONY, "<think>I</think>Hello there."])
async def test_thoughts_in_the_words_never_stay(server: LlmServer, provider: Provider, text: str) -> None:
    server.reply = Script(Reply(text=text), Reply(text=text))
    shown = []
    for _ in range(2):
        events = await events_of(provider, spec_of(server, provider), asking())
        words = ""
        for event in events:
            words = "" if isinstance(event, Restarted) else words
            words += event.text if isinstance(event, TextDelta) else ""
        completed = events[-1]
        assert isinstance(completed, Completed)
        assert words == completed.text == "Hello there."
        assert completed.reasoning
        shown.append(any(isinstance(event, Restarted) for event in events))
    if provider.name == "openai":  # what a model of somebody's own server does once is known from then on
        assert shown[1] is False


HERMES = '<tool_call>\n{"name": "clock", "arguments": {"zone": "UTC"}}\n</tool_call>'
DSML = (
    '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="clock">\n<｜DSML｜parameter name="zone" string="true">UTC'
    "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>"
)


@pytest.mark.parametrize("written", [HERMES, DSML], ids=["hermes", "deepseek"])
@pytest.mark.parametrize("omit", [frozenset(), WHOLE], ids=["streamed", "whole"])
async def test_a_call_in_the_words_is_called(server: LlmServer, provider: Provider, written: str, omit: Omit) -> None:
    text = f"I look.\n{written}"
    server.reply = Script(Reply(text=text), Reply(text=text))
    untold = await complete(provider, spec_of(server, provider), asking(omit=omit))
    assert (untold.text, untold.tool_calls) == (text, ())  # no tool was offered: these are words
    completed = await complete(provider, spec_of(server, provider), asking(tools=[TOOL], omit=omit))
    assert (completed.text.strip(), completed.stop) == ("I look.", "tool_calls")
    (call,) = completed.tool_calls
    assert call["function"] == {"name": "clock", "arguments": '{"zone": "UTC"}'}
    assert call["id"]


async def test_an_answer_without_an_end_is_left(
    server: LlmServer, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.providers.server._WHOLE_ANSWER", 10_000)
    monkeypatch.setattr("gateway.providers.server._AT_ONCE", 1_000)
    for content_type, body in (
        ("text/event-stream", "data: {}\n\n" * 5_000),
        ("application/json", " " * 50_000),
        ("application/json", "{" + " " * 6_000),
        ("text/event-stream", ": " + "x" * 6_000),
        ("text/event-stream", "data: " + "x" * 6_000 + "\n\n"),
        ("text/event-stream", "data:\n" * 1_500),
    ):
        server.reply = Script(Garbage(body=body, content_type=content_type))
        with pytest.raises(ProviderUnavailable, match="does not end"):
            await complete(provider, spec_of(server, provider), asking())


async def test_words_and_thoughts_without_an_end_are_left(
    server: LlmServer, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.providers.server._SAID", 1_000)
    for reply in (Reply(text="word " * 300), Reply(reasoning="word " * 300, text="yes")):
        server.reply = Script(reply)
        with pytest.raises(ProviderUnavailable, match="does not end"):
            await complete(provider, spec_of(server, provider), asking())


async def test_bytes_that_are_no_text_do_not_end_an_answer(server: LlmServer, provider: Provider) -> None:
    wire = {"openai": ChatWire(), "anthropic": MessagesWire(), "openai-responses": ResponsesWire()}[provider.name]
    frames = wire.frames({"model": "m"}, Reply(text="Grüße an alle."), 1, len, 1, 0)
    body = "".join(frames).replace("\\u00fc", "ü").encode().replace("ü".encode(), b"\xff")
    server.reply = Script(Garbage(body=body, content_type="text/event-stream"))
    assert (await complete(provider, spec_of(server, provider), asking())).text == "Gr\ufffdße an alle."


async def test_an_output_cap_beyond_the_window_is_told_from_a_long_prompt(server: LlmServer) -> None:
    provider = Messages(http_client(), str)
    spec = spec_of(server, provider)
    with pytest.raises(OutputCapTooLarge) as caught:
        await complete(provider, spec, asking(max_tokens=99_999))
    assert caught.value.available == 100_000 - server.prompt_tokens(MessagesWire().plain(server.requests[-1]))
    with pytest.raises(ContextOverflow) as long:
        await complete(provider, spec, asking(user("word " * 100_001)))
    assert long.value.limit == 100_000
    await provider.aclose()


ASKED = [
    ("call clock {}", Completed),
    ("think", Completed),
    ("tag", Completed),
    ("hello", Completed),
    ("429", ProviderRateLimited),
    ("529", ProviderUnavailable),
    ("cut", ProviderUnavailable),
    ("page", NoModelThere),
    ("long", ContextOverflow),
    ("refuse tools", FeatureRefused),
]
LESS = ["refuse tools", "refuse stream", "refuse system"]


@pytest.mark.parametrize(("text", "outcome"), ASKED)
async def test_the_emulator_by_hand(server: LlmServer, provider: Provider, text: str, outcome: type) -> None:
    server.reply = by_hand
    try:
        found: object = await complete(provider, spec_of(server, provider), asking(user(text), tools=[TOOL]))
    except ProviderError as error:
        found = error
    assert type(found) is outcome


@pytest.mark.parametrize("text", LESS)
async def test_a_model_that_wants_less_is_usable_over_each_api(
    server: LlmServer, provider: Provider, text: str
) -> None:
    server.reply = by_hand
    completed = await complete(Adapting(provider), spec_of(server, provider), asking(user(text), tools=[TOOL]))
    assert completed.text.startswith("echo: ")
    assert len(completed.omitted) == 1
