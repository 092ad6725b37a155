"""`Offline`: an embedded, deterministic model, so that all of Legato can be tried without a key.

It has no intelligence and says so. What it does have makes the product around it visible: it
streams, calls tools when asked to, remembers its prompt and nothing else, reports
usage, refuses prompts beyond its window, and writes summaries by extraction.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal

from gateway.domain.message import Message, ToolCall, note_of, text_of
from gateway.domain.notes import MEMORY_REQUEST, SUMMARY_REQUEST
from gateway.domain.usage import CanonicalUsage
from gateway.providers.base import Completed, ModelEvent, ModelRequest, ModelSpec, StopReason, TextDelta
from gateway.providers.offline.notes import checkpoint, memories
from gateway.providers.offline.replies import Answer, Call, answer
from gateway.providers.plugin import ProviderHost
from gateway.runtime.clock import SystemIds
from gateway.runtime.errors import ContextOverflow

_OVERHEAD: Final = 4  # tokens of every message beside its text
_LOOKED_AT: Final = 200  # characters of a message's first line


async def _no_pause() -> None:
    """The pause of tests and pipes: none."""


class Offline:
    """`Provider` without a network. `count` gives the tokens of a text; `pause` is awaited between
    two words, for people who like to see text being written."""

    name = "offline"
    has_one_model: Literal[True] = True

    def __init__(self, count: Callable[[str], int], *, pause: Callable[[], Awaitable[None]] = _no_pause) -> None:
        self._count = count
        self._pause = pause
        self._ids = SystemIds()

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Answer word by word. Raises ContextOverflow if the prompt exceeds the spec's window."""
        prompt = self._prompt_tokens(request)
        if prompt > spec.context_length:
            raise ContextOverflow(
                f"The conversation is longer than the model's window of {spec.context_length:,} tokens. "
                "Use /compress to shorten the conversation or /new to start fresh.",
                limit=spec.context_length,
            )
        reply = self._reply(request)
        text, stop = self._capped(reply.text, request.max_tokens)
        for word in words(text):
            yield TextDelta(text=word)
            await self._pause()
        calls = self._calls(reply) if stop == "stop" else ()
        spent = self._count(text) + sum(self._count(call["function"]["arguments"]) + _OVERHEAD for call in calls)
        yield Completed(
            text=text,
            tool_calls=calls,
            stop="tool_calls" if calls else stop,
            usage=CanonicalUsage(input_tokens=prompt, output_tokens=spent),
        )

    async def aclose(self) -> None:
        """Nothing is open."""

    def _reply(self, request: ModelRequest) -> Answer:
        if is_summary_request(request.messages):
            return Answer(text=checkpoint(request.messages, max_tokens=request.max_tokens, count=self._count))
        if is_memory_request(request.messages):
            calls = [Call(tool="memory", arguments=each) for each in memories(request.messages)]
            return Answer(text="" if calls else "Nothing.", calls=tuple(calls))
        tools = request.tools if request.tool_choice != "none" else ()
        return answer(request.messages, tools)

    def _calls(self, reply: Answer) -> tuple[ToolCall, ...]:
        return tuple(
            {
                "id": self._ids.new("call"),
                "type": "function",
                "function": {"name": call.tool, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
            }
            for call in reply.calls
        )

    def _capped(self, text: str, max_tokens: int | None) -> tuple[str, StopReason]:
        """The text up to the output cap, cut between two words as a real model's is anywhere."""
        if max_tokens is None or self._count(text) <= max_tokens:
            return text, "stop"
        grown = itertools.accumulate(words(text))
        return max(
            itertools.takewhile(lambda kept: self._count(kept) <= max_tokens, grown), key=len, default=""
        ), "length"

    def _prompt_tokens(self, request: ModelRequest) -> int:
        tools = [json.dumps(dict(tool), ensure_ascii=False) for tool in request.tools]
        return sum(map(self._message_tokens, request.messages)) + sum(map(self._count, tools))

    def _message_tokens(self, message: Message) -> int:
        said = text_of(message) + str(message.get("tool_calls") or "")
        return note_of(message).get("tokens") or self._count(said) + _OVERHEAD  # stored messages are counted


def words(text: str) -> list[str]:
    """The text in pieces that end with their white space; joined they are the text."""
    return re.findall(r"\S*\s+|\S+", text)


def is_summary_request(messages: Sequence[Message | Mapping[str, Any]]) -> bool:
    """Whether the first or last message opens with the marker, or the last part of the last one does, which an
    API may have joined with a person's words."""
    edges = [text_of(message) for message in (*messages[:1], *messages[-1:])]
    opens = any(SUMMARY_REQUEST in text[:_LOOKED_AT].partition("\n")[0] for text in edges)
    return opens or any(f"\n\n{SUMMARY_REQUEST}" in text for text in edges[-1:])


def is_memory_request(messages: Sequence[Message | Mapping[str, Any]]) -> bool:
    """Whether the first message opens with the marker of a memory flush."""
    return any(MEMORY_REQUEST in text_of(message)[:_LOOKED_AT].partition("\n")[0] for message in messages[:1])


def create(host: ProviderHost) -> Offline:
    """For `PLUGIN`."""
    return Offline(host.count, pause=host.pause)
