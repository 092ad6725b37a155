"""A model that follows a script, and the means to make it wait."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from gateway.domain.message import ToolCall, text_of
from gateway.domain.notes import TITLE_REQUEST, without_quotes
from gateway.domain.usage import CanonicalUsage
from gateway.providers.base import (
    Completed,
    ModelEvent,
    ModelRequest,
    ModelSpec,
    ReasoningDelta,
    Restarted,
    StopReason,
    TextDelta,
)
from gateway.providers.offline.model import is_memory_request, is_summary_request
from gateway.runtime.structs import replace

PATIENCE = 60.0  # seconds until a test that hangs is failed rather than waited for


class Changing:
    """Something a test can wait for."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """Let everybody who waits look again."""
        self._changed.set()

    async def until(self, condition: Callable[[], Any]) -> None:
        """Return once `condition` holds, which may also follow the last change. Fails after `PATIENCE`."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await self._changed.wait()


class Gate(Changing):
    """A place where a model waits until the test opens it. `waiting`: how many are there now."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = 0
        self._open = asyncio.Event()

    async def pass_through(self) -> None:
        """Wait here."""
        self.waiting += 1
        self.changed()
        try:
            await self._open.wait()
        finally:
            self.waiting -= 1
            self.changed()

    def open(self) -> None:
        """Let everybody through from now on."""
        self._open.set()

    async def until_waiting(self, count: int = 1) -> None:
        """Return once that many wait."""
        await self.until(lambda: self.waiting >= count)


class Say(Struct, frozen=True, kw_only=True):
    """One answer of the scripted model. `broken` is streamed before all else and is void. `first` is streamed before
    `gate` is waited at; `error` is raised after that. `prompt`: reported prompt tokens (0: counted by the fake; None:
    no report)."""

    text: str = ""
    calls: Sequence[tuple[str, str]] = ()  # (tool, arguments as JSON)
    first: str = ""
    pause: float = 0.0  # seconds until another attempt, which are told before `gate` is waited at
    gate: Gate | None = None
    error: Exception | None = None
    prompt: int | None = 0
    broken: str = ""
    stop: StopReason = "stop"
    cut_call: bool = False
    thoughts: str = ""


Script = Callable[[ModelSpec, ModelRequest], Say]


def newest(request: ModelRequest) -> str:
    """The newest words of a person in a request, without what stands in front of them."""
    said = next(text_of(message) for message in reversed(request.messages) if message["role"] == "user")
    return without_quotes(said)


def echo(spec: ModelSpec, request: ModelRequest) -> Say:
    """Say what was said."""
    return Say(text=f"echo: {newest(request)}")


def in_turn(*answers: Say | Exception, then: Script = echo) -> Script:
    """Answers one after the other (summaries not counted), then those of `then`."""
    left = list(answers)

    def script(spec: ModelSpec, request: ModelRequest) -> Say:
        if not left:
            return then(spec, request)
        answer = left.pop(0)
        return answer if isinstance(answer, Say) else Say(error=answer)

    return script


def summary_text(spec: ModelSpec, request: ModelRequest) -> Say:
    """Notes that pass for a summary."""
    return Say(text="## Active Task\nNone\n## Goal\nTalk to the person.\n## Critical Context\nThey greeted the bot.")


def nothing_to_remember(spec: ModelSpec, request: ModelRequest) -> Say:
    """The answer to most flushes."""
    return Say(text="Nothing.")


def no_title(spec: ModelSpec, request: ModelRequest) -> Say:
    """The answer of a model that has no name for a conversation."""
    return Say(text="-")


def remembering(*facts: Mapping[str, Any]) -> Say:
    """Ask for these to be remembered; each is the arguments of a call."""
    return Say(calls=[("memory", json.dumps({"action": "add", "about": "person", **each})) for each in facts])


class FakeModel(Changing):
    """A `Provider` that follows scripts: `script` for turns, `summary` for summaries, `flush` for flushes, `title` for
    titles."""

    name = "offline"

    def __init__(
        self,
        script: Script = echo,
        *,
        summary: Script = summary_text,
        flush: Script = nothing_to_remember,
        title: Script = no_title,
    ) -> None:
        super().__init__()
        self.title = title
        self.titles: list[ModelRequest] = []
        self.flush = flush
        self.flushes: list[ModelRequest] = []
        self.script = script
        self.summary = summary
        self.requests: list[ModelRequest] = []  # of turns, with the messages as they were then
        self.specs: list[ModelSpec] = []
        self.titled_by: list[str] = []
        self.summaries = 0
        self.closed_early = 0
        self._calls = itertools.count(1)

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Answer by the script."""
        if is_summary_request(request.messages):
            self.summaries += 1
            answer = self.summary(spec, request)
        elif is_memory_request(request.messages):
            self.flushes.append(request)
            answer = self.flush(spec, request)
        elif text_of(request.messages[0]).startswith(TITLE_REQUEST):
            self.titles.append(request)
            self.titled_by.append(spec.name)
            answer = self.title(spec, request)
        else:
            self.requests.append(replace(request, messages=[*request.messages]))
            self.specs.append(spec)
            answer = self.script(spec, request)
        self.changed()
        if answer.thoughts:
            yield ReasoningDelta(text=answer.thoughts)
        if answer.broken:
            yield TextDelta(text=answer.broken)
            yield Restarted(broke_off=True)
        if answer.first:
            yield TextDelta(text=answer.first)
        if answer.pause and request.pausing is not None:
            request.pausing(answer.pause)
        if answer.gate is not None:
            try:
                await answer.gate.pass_through()
            except asyncio.CancelledError:
                self.closed_early += 1
                raise
        if answer.error is not None:
            raise answer.error
        if answer.text:
            yield TextDelta(text=answer.text)
        calls: tuple[ToolCall, ...] = tuple(
            {"id": f"call-{next(self._calls)}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for name, arguments in answer.calls
        )
        usage = None
        if answer.prompt is not None:
            counted = sum(len(text_of(message)) for message in request.messages) // 4 + 1
            usage = CanonicalUsage(input_tokens=answer.prompt or counted, output_tokens=3)
        yield Completed(
            text=answer.first + answer.text,
            reasoning=answer.thoughts,
            tool_calls=calls,
            usage=usage,
            stop=answer.stop,
            cut_call=answer.cut_call,
        )

    async def aclose(self) -> None:
        """Nothing is open."""

    def spoken(self, index: int = -1) -> list[tuple[str, str]]:
        """A request's messages as (role, text), the system prompt left out."""
        messages = self.requests[index].messages
        return [(message["role"], text_of(message)) for message in messages if message["role"] != "system"]
