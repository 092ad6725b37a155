"""Spans of turns, model calls and tools, as the conventions for generative AI name them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.trace import SpanKind, StatusCode

from gateway import __version__
from gateway.app import build as bootstrap
from gateway.app.config.models import OtelSettings
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.providers.plugin import ModelSettings
from gateway.runtime.errors import ConfigError, ProviderRejected
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Reply
from tests.support.gateway import FakeAdapter, FakeModel, Live, Say, config_in, in_turn, running
from tests.support.program import KEY, environment, legato, write_config

KNOWN = {value for value in vars(gen_ai_attributes).values() if isinstance(value, str)}
PERSON, SECRET = "my cat is called Minka", "sk-ant-api03-" + "a1B2" * 20
LOCAL = ModelSettings(provider="openai", name="a-model", base_url="http://127.0.0.1:8080/v1", max_output_tokens=500)


@asynccontextmanager
async def traced(
    folder: Path, script: Any, monkeypatch: pytest.MonkeyPatch, **otel: bool
) -> AsyncIterator[tuple[Live, InMemorySpanExporter]]:
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    whole = bootstrap.Parts
    monkeypatch.setattr(bootstrap, "Parts", lambda **parts: whole(tracer=provider.get_tracer("test"), **parts))
    config = config_in(folder, model=LOCAL, otel=OtelSettings(enabled=True, **otel))
    async with running(folder, config=config, model=FakeModel(script)) as live:
        yield live, spans


def named(spans: Sequence[ReadableSpan], name: str) -> list[dict[str, Any]]:
    return [dict(each.attributes or {}) for each in spans if each.name == name]


async def test_a_turn_with_a_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = in_turn(Say(calls=[("clock", "{}")]), Say(text="It is late."))
    async with traced(tmp_path, script, monkeypatch) as (live, exported):
        assert await live.ask(PERSON) == "It is late."
        tip = await live.tip()
        assert tip is not None
        spans = exported.get_finished_spans()
    assert [each.name for each in spans] == [
        "chat a-model",
        "execute_tool clock",
        "chat a-model",
        "invoke_agent legato",
    ]
    turn = spans[-1]
    assert turn.parent is None
    assert {each.parent.span_id for each in spans[:-1] if each.parent} == {turn.context.span_id}
    assert [each.kind for each in spans] == [SpanKind.CLIENT, SpanKind.INTERNAL, SpanKind.CLIENT, SpanKind.INTERNAL]
    assert dict(turn.attributes or {}) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "legato",
        "gen_ai.agent.version": __version__,
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "a-model",
        "gen_ai.conversation.id": tip.id,
        "legato.platform": "fake",
    }
    first, second = named(spans, "chat a-model")
    assert first["gen_ai.response.finish_reasons"] == ("tool_call",)
    assert second["gen_ai.response.finish_reasons"] == ("stop",)
    assert (first["server.address"], first["server.port"]) == ("127.0.0.1", 8080)
    assert (first["gen_ai.request.max_tokens"], first["gen_ai.request.stream"]) == (500, True)
    assert second["gen_ai.usage.input_tokens"] > 0 < second["gen_ai.usage.output_tokens"]
    assert second["gen_ai.response.time_to_first_chunk"] >= 0
    (tool,) = named(spans, "execute_tool clock")
    assert (tool["gen_ai.operation.name"], tool["gen_ai.tool.name"]) == ("execute_tool", "clock")
    assert tool["gen_ai.tool.call.id"]
    used = {key for each in spans for key in each.attributes or {}}
    assert {key for key in used if key.startswith("gen_ai.")} <= KNOWN
    told = " ".join(each.to_json() for each in spans)
    assert PERSON not in told  # nobody's words, nor who they are
    assert "It is late" not in told
    assert '"u"' not in told


async def test_contents_where_somebody_wants_them_without_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = in_turn(Say(calls=[("clock", '{"timezone": "Asia/Tokyo"}')]), Say(text="It is late."))
    async with traced(tmp_path, script, monkeypatch, contents=True) as (live, exported):
        await live.ask(f"{PERSON}, and my key is {SECRET}")
        spans = exported.get_finished_spans()
    _, last = named(spans, "chat a-model")
    said = json.loads(last["gen_ai.input.messages"])
    assert [each["role"] for each in said][:1] + [each["role"] for each in said][-3:] == [
        "system",
        "user",
        "assistant",
        "tool",
    ]
    assert PERSON in said[-3]["parts"][0]["content"]
    assert said[-2]["parts"][0]["name"] == "clock"
    assert said[-1]["parts"][0]["type"] == "tool_call_response"
    assert json.loads(last["gen_ai.output.messages"])[0]["parts"] == [{"type": "text", "content": "It is late."}]
    (tool,) = named(spans, "execute_tool clock")
    assert tool["gen_ai.tool.call.arguments"] == '{"timezone": "Asia/Tokyo"}'
    assert tool["gen_ai.tool.call.result"]
    assert SECRET not in " ".join(each.to_json() for each in spans)


async def test_failures_are_named_by_their_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(spec: ModelSpec, request: ModelRequest) -> Say:
        if request.messages[-1]["role"] == "tool":
            raise ProviderRejected(f"no account for {PERSON}")
        return Say(calls=[("no_such_tool", "{}")])

    async with traced(tmp_path, refuses, monkeypatch) as (live, exported):
        assert "no account" in await live.ask("hello")
        spans = exported.get_finished_spans()
    failed = {each.name: (each.attributes or {}).get("error.type") for each in spans if not each.status.is_ok}
    assert failed == {
        "chat a-model": "provider_rejected",
        "execute_tool no_such_tool": "tool_error",
        "invoke_agent legato": "provider_rejected",
    }
    assert all(each.status.status_code is StatusCode.UNSET for each in spans if each.name not in failed)
    assert PERSON not in " ".join(each.to_json() for each in spans)


async def test_nothing_is_wrapped_where_it_is_off(tmp_path: Path) -> None:
    model = ModelSettings(provider="openai", name="a-model", base_url="http://127.0.0.1:9/v1")
    async with running(tmp_path, config=config_in(tmp_path, model=model)) as live:
        assert type(live.gateway.agents.metering.models.providers["openai"]) is FakeModel


def test_a_program_without_it_loads_nothing_of_it(tmp_path: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "gateway", "ask", "hello"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
    assert "gateway.app.build" in done.stderr
    assert "opentelemetry" not in done.stderr


async def test_an_installation_without_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    monkeypatch.delitem(sys.modules, "gateway.app.tracing", raising=False)
    config = config_in(tmp_path, otel=OtelSettings(enabled=True))
    with pytest.raises(ConfigError, match=r"otel\.enabled needs OpenTelemetry .* pip install 'legato\[otel\]'"):
        bootstrap.build(config, [FakeAdapter()])


async def test_the_program_sends_its_spans_where_the_variables_say(tmp_path: Path) -> None:
    from aiohttp import web
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    received: list[ExportTraceServiceRequest] = []

    async def collect(request: web.BaseRequest) -> web.Response:
        received.append(ExportTraceServiceRequest.FromString(await request.read()))
        return web.Response()

    server = web.Server(collect)
    runner = web.ServerRunner(server)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        async with LlmServer(api_key=KEY) as model:
            model.reply = lambda _: Reply(text="hello to you")
            write_config(tmp_path, model.url, otel={"enabled": True})
            where = {"OTEL_EXPORTER_OTLP_ENDPOINT": site.name, "OTEL_SERVICE_NAME": "our-bot"}
            status, out, err = await legato(tmp_path, "ask", "hello", **where)
            assert (status, out, err) == (0, "hello to you\n", "")
    finally:
        await runner.cleanup()
    spans = [
        span
        for each in received
        for resource in each.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    assert {"chat test-model", "invoke_agent legato"} == {span.name for span in spans}
    about = {each.key: each.value.string_value for each in received[0].resource_spans[0].resource.attributes}
    assert about["service.name"] == "our-bot"
