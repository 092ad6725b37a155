"""The contract of every tool, Legato's own and those of installed packages: a new one is found and needs no edit here.

A tool's schema is what a model reads and what its arguments are held against, so it must be one that every provider
and every local server takes.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import structlog.testing

from gateway.agent.tools.arguments import Arguments
from gateway.agent.tools.base import FOR_PEOPLE, NeedsApproval, Tool, ToolContext, ToolHost
from gateway.agent.tools.offer import Caller, Toolbox
from gateway.agent.tools.outputs import OutputLimits, Outputs
from gateway.agent.tools.runtime import ToolRuntime
from gateway.agent.tools.web_fetch import WebSearchSettings
from gateway.app.config.models import ToolSettings
from gateway.app.plugins import configured_tools
from gateway.domain.chat import Source
from gateway.domain.message import Message, ToolCall, text_of
from gateway.domain.settings import Section
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import ToolError

# What llama.cpp's grammars, Gemini's subset and everybody else understand. A `pattern` is not among them.
PLAIN = frozenset((
    "type", "properties", "required", "additionalProperties", "items", "enum", "description", "minimum", "maximum",
    "minLength", "maxLength", "minItems", "maxItems", "default", "anyOf",
))  # fmt: skip
MOST_REPEATED = 1_000  # what a grammar can count

CALLER = Caller(source=Source(platform="fake", chat="c", chat_type="direct", user="u"), admin=True)


def switched_on(section: Section) -> Section:
    """A tool's section with the tool on."""
    if isinstance(section, WebSearchSettings):
        return WebSearchSettings(provider="searxng", base_url="http://127.0.0.1:1")  # where nobody listens
    return section.model_copy(update={"enabled": True}) if "enabled" in type(section).model_fields else section


@cache
def all_tools() -> list[Tool]:
    sections = [value for value in vars(ToolSettings()).values() if isinstance(value, Section)]
    host = ToolHost(
        sections=[switched_on(section) for section in sections],
        clock=SystemClock(),
        redact=lambda text: text,
        home=Path("/nowhere"),
    )
    return configured_tools(host)


every = pytest.mark.parametrize("tool", all_tools(), ids=lambda tool: tool.name)


def schemas_in(schema: Any) -> Iterator[Mapping[str, Any]]:
    """A schema and those inside it."""
    if not isinstance(schema, Mapping):
        return
    yield schema
    for inner in (*schema.get("properties", {}).values(), schema.get("items"), *schema.get("anyOf", ())):
        yield from schemas_in(inner)


class Nothing:
    """Stands for every part of a call's context: whatever is asked of it, it refuses."""

    def __getattr__(self, name: str) -> Any:
        raise ToolError("There is nothing here.")

    def __call__(self, *arguments: Any) -> Any:
        raise ToolError("There is nothing here.")


def context() -> ToolContext:
    nothing: Any = Nothing()
    given = dict.fromkeys(inspect.signature(ToolContext).parameters, nothing)
    return ToolContext(**{**given, "clock": SystemClock(), "admin": True, "todos": (), "hidden": {}, "found": ()})


async def result(tool: Tool, arguments: str) -> str:
    """Return the model's view of a call, through the runtime."""
    offer = Toolbox([tool]).offer((tool.name,), CALLER, 10**6)
    call: ToolCall = {"id": "1", "type": "function", "function": {"name": tool.name, "arguments": arguments}}
    results: dict[str, Message] = {}
    nothing: Any = Nothing()
    outputs = Outputs(limits=OutputLimits(), files=nothing, window=10**6, count=len, measured=lambda message: message)
    runtime = ToolRuntime(offer, SystemClock())
    runtime.questions([call], admin=True)
    await runtime.run([call], context(), {}, results, outputs)
    return text_of(results["1"])


@every
def test_what_a_model_reads_of_it(tool: Tool) -> None:
    assert re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_-]{1,63}", tool.name)
    assert 20 < len(tool.description) < 1_000
    assert tool.description == " ".join(tool.description.split())
    json.dumps(tool.parameters)


@every
def test_its_schema_is_one_that_everybody_understands(tool: Tool) -> None:
    assert tool.parameters["type"] == "object"
    assert tool.parameters["additionalProperties"] is False, "unknown arguments are refused"
    for schema in schemas_in(tool.parameters):
        assert set(schema) <= PLAIN
        assert max(schema.get("maxLength", 0), schema.get("maxItems", 0)) <= MOST_REPEATED
        assert set(schema.get("required", ())) <= set(schema.get("properties", {}))


@every
def test_its_schema_can_be_checked(tool: Tool) -> None:
    with structlog.testing.capture_logs() as logs, pytest.raises(ToolError, match="There is no argument `unheard_of`"):
        Arguments(tool.name, tool.parameters).read('{"unheard_of": 1}')
    assert not [line for line in logs if line["event"] == "schema_not_checked"]


@every
def test_it_says_how_it_behaves(tool: Tool) -> None:
    assert tool.read_only in (True, False)
    assert tool.idempotent in (True, False)
    assert 0 < tool.timeout <= 3_600 or tool.timeout == FOR_PEOPLE
    if isinstance(tool, NeedsApproval):
        assert tool.admins_only in (True, False)
        assert not tool.read_only, "a person is asked before something happens"


HOSTILE = [
    "", "{", "null", "[]", '"x"', "5", "{}", '{"unheard_of": 1}', '{"a":' * 5_000, "{" * 100_000, '{"url": "\\ud800"}',
    json.dumps({"x" * 100_000: 1}), "\x00", '{"a": NaN}',
]  # fmt: skip


def hostile_values(tool: Tool) -> Iterator[str]:
    """Each argument with values of each kind, the others left out."""
    for name in tool.parameters.get("properties", {}):
        for value in (None, "", " ", "x" * 100_000, "\ud800", "\x00", "../../etc", -1, 10**30, 1.5, True, [], [[]], {}):
            yield json.dumps({name: value})


@every
async def test_hostile_arguments_are_a_sentence(tool: Tool) -> None:
    if isinstance(tool, NeedsApproval):
        return  # nobody is here to say yes, so none of its calls runs
    for arguments in (*HOSTILE, *hostile_values(tool)):
        with structlog.testing.capture_logs() as logs:
            said = await result(tool, arguments)
        assert "unexpectedly" not in said, (arguments[:200], said, logs)
        assert len(said) < 5_000


@every
async def test_what_hangs_is_ended(tool: Tool) -> None:
    class Hanging:
        """The tool, which never comes back."""

        timeout = 0.01

        def __getattr__(self, name: str) -> Any:
            return getattr(tool, name)

        async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
            await asyncio.Event().wait()
            raise AssertionError

        def question(self, arguments: Mapping[str, Any]) -> str | None:
            return None

    hanging: Any = Hanging()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Arguments, "read", lambda *_: {})
        assert await result(hanging, "{}") == f"Error: {tool.name} did not finish within 0.01 seconds."
