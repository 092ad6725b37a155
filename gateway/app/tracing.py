"""Spans for OpenTelemetry, by its conventions for generative AI (semantic-conventions-genai, 2026): `invoke_agent` for
a turn, `chat` for each model call, and `execute_tool`.

Loaded only where `otel.enabled` is set: elsewhere nothing is wrapped, and nothing is called. Where spans go say
OpenTelemetry's own variables, such as OTEL_EXPORTER_OTLP_ENDPOINT.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer

from gateway import __version__
from gateway.agent.conversation import Conversation
from gateway.agent.loop import Agent
from gateway.app.plugins import providers
from gateway.domain.message import Message, ToolCall, assistant, text_of
from gateway.providers.base import Completed, HasOneModel, ModelEvent, ModelRequest, ModelSpec, Provider, StopReason
from gateway.runtime.clock import Clock
from gateway.runtime.metrics import outcome_of
from gateway.runtime.redaction import Redact
from gateway.store.records import ToolIntent

_AGENT: Final = "legato"
_ENDS: Final[Mapping[StopReason, str]] = {"tool_calls": "tool_call", "refused": "content_filter"}


def exporting() -> tuple[Tracer, list[Callable[[], Awaitable[None]]]]:
    """A tracer whose spans are sent by OTLP over HTTP, and what sends the last of them at the end."""
    own = Resource({SERVICE_NAME: _AGENT, SERVICE_VERSION: __version__})
    provider = TracerProvider(resource=own.merge(OTELResourceDetector().detect()))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))

    async def close() -> None:
        await asyncio.to_thread(provider.shutdown)

    return provider.get_tracer(_AGENT, __version__), [close]


class Tracing(Struct, frozen=True, kw_only=True):
    """Makes the spans. `contents`: they hold what people, models and tools say, without credentials."""

    tracer: Tracer
    clock: Clock
    redact: Redact
    contents: bool = False

    async def invoke(self, agent: Agent, conversation: Conversation, intents: Collection[ToolIntent] = ()) -> str:
        """As `Agent.run`, in a span."""
        spec, session = conversation.spec, conversation.stored.session
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": _AGENT,
            "gen_ai.agent.version": __version__,
            "gen_ai.provider.name": _vendor(spec),
            "gen_ai.request.model": spec.name,
            "gen_ai.conversation.id": session.id,
            "legato.platform": session.key.platform,
        }
        with self._span(f"invoke_agent {_AGENT}", SpanKind.INTERNAL, attributes):
            return await agent.run(conversation, intents)

    @contextmanager
    def tool(self, call: ToolCall) -> Iterator[Callable[[str], None]]:
        """The span of a tool call. Pass the call's result to what it yields."""
        name = call["function"]["name"]
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": call["id"],
            "gen_ai.tool.type": "function",
        }
        with self._span(f"execute_tool {name}", SpanKind.INTERNAL, attributes) as span:
            self._content(span, "gen_ai.tool.call.arguments", lambda: call["function"]["arguments"])
            yield lambda result: self._content(span, "gen_ai.tool.call.result", lambda: result)

    def providers(self, providers: Mapping[str, Provider]) -> dict[str, Provider]:
        """The providers, with a span around each call, except for a model inside this process, which is nobody's
        service."""
        return {
            name: each if isinstance(each, HasOneModel) else _Traced(each, self) for name, each in providers.items()
        }

    @contextmanager
    def chat(self, spec: ModelSpec, request: ModelRequest) -> Iterator[Span]:
        """The span of a model call. It is not made the present one, because its generator would leave it to whoever
        reads it."""
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": _vendor(spec),
            "gen_ai.request.model": spec.name,
            "gen_ai.request.stream": True,
        }
        if request.max_tokens is not None:
            attributes["gen_ai.request.max_tokens"] = request.max_tokens
        if spec.base_url is not None:
            where = urlsplit(spec.base_url)
            attributes["server.address"] = where.hostname or ""
            attributes["server.port"] = where.port or (443 if where.scheme == "https" else 80)
        span = self.tracer.start_span(f"chat {spec.name}", kind=SpanKind.CLIENT, attributes=attributes)
        self._content(span, "gen_ai.input.messages", lambda: _written(request.messages))
        try:
            yield span
        except Exception as error:
            _fail(span, error)
            raise
        finally:
            span.end()

    def completed(self, span: Span, completed: Completed) -> None:
        """Note the end of a model call."""
        end = "tool_calls" if completed.tool_calls else completed.stop
        span.set_attribute("gen_ai.response.finish_reasons", [_ENDS.get(end, end)])
        if (usage := completed.usage) is not None:
            span.set_attributes(
                {
                    "gen_ai.usage.input_tokens": usage.prompt_tokens,
                    "gen_ai.usage.output_tokens": usage.output_tokens,
                    "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
                    "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
                    "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
                }
            )
        said = assistant(completed.text, completed.tool_calls)
        self._content(span, "gen_ai.output.messages", lambda: _written([said]))

    @contextmanager
    def _span(self, name: str, kind: SpanKind, attributes: Mapping[str, Any]) -> Iterator[Span]:
        """A span around what runs in the block. An error is named by its class: its text may be a person's."""
        present = self.tracer.start_as_current_span(
            name, kind=kind, attributes=attributes, record_exception=False, set_status_on_exception=False
        )
        with present as span:
            try:
                yield span
            except Exception as error:
                _fail(span, error)
                raise

    def _content(self, span: Span, key: str, text: Callable[[], str]) -> None:
        if self.contents:
            span.set_attribute(key, self.redact(text()))


class _Traced:
    """A `Provider` around another one."""

    def __init__(self, provider: Provider, tracing: Tracing) -> None:
        self.name = provider.name
        self._provider = provider
        self._tracing = tracing

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        clock = self._tracing.clock
        began, silent = clock.monotonic(), True
        with self._tracing.chat(spec, request) as span:
            async with aclosing(self._provider.stream(spec, request)) as events:
                async for event in events:
                    if silent:
                        span.set_attribute("gen_ai.response.time_to_first_chunk", clock.monotonic() - began)
                        silent = False
                    if isinstance(event, Completed):
                        self._tracing.completed(span, event)
                    yield event

    async def aclose(self) -> None:
        await self._provider.aclose()


def _vendor(spec: ModelSpec) -> str:
    plugin = providers().get(spec.provider)
    return (plugin.vendor.traced_as if plugin and plugin.vendor else "") or spec.provider


def _fail(span: Span, error: Exception) -> None:
    span.set_attribute("error.type", outcome_of(error))
    span.set_status(StatusCode.ERROR)


def _written(messages: Sequence[Message]) -> str:
    return json.dumps([{"role": each["role"], "parts": list(_parts(each))} for each in messages], ensure_ascii=False)


def _parts(message: Message) -> Iterator[dict[str, Any]]:
    text = text_of(message)
    if message["role"] == "tool":
        yield {"type": "tool_call_response", "id": message.get("tool_call_id"), "result": text}
    elif text:
        yield {"type": "text", "content": text}
    for call in message.get("tool_calls") or ():
        function = call["function"]
        yield {"type": "tool_call", "id": call["id"], "name": function["name"], "arguments": function["arguments"]}
