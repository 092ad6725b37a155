"""An answer of the Messages API, put together from its events.

https://platform.claude.com/docs/en/build-with-claude/streaming: a message begins, its blocks begin, grow and stop one
after the other, then comes the reason for its end, with the figures. The blocks are kept as they came, for the day when
they go back (`codec`). No I/O, no clock.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

from msgspec import Struct, field

from gateway.domain.message import Original
from gateway.domain.usage import CanonicalUsage, estimated_output
from gateway.providers.answer import PendingCall, Room, Speech, completed, stop_reason, whole_characters
from gateway.providers.anthropic.codec import API, words_of
from gateway.providers.base import Completed, ModelEvent, StopReason
from gateway.providers.calls import is_object
from gateway.providers.usage import normalize_usage, usage_in
from gateway.runtime.structs import replace

# The key of a block that a delta adds to, by the type of the delta. The delta's own key has the same name.
_GROWS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


class _Block(Struct):
    """A block that is still arriving: as it began, and what was added to its keys. `input`: what a model gives a tool,
    ours (`call`) or one of the server's. `odd`: it grew in a way that nobody here knows, so that it cannot go back."""

    began: dict[str, Any]
    added: dict[str, list[str]] = field(default_factory=dict)
    citations: list[Any] = field(default_factory=list)
    call: PendingCall | None = None
    input: PendingCall | None = None
    odd: bool = False

    def whole(self) -> dict[str, Any] | None:
        """The block, as an answer that is not streamed has it; None if it cannot be known."""
        if self.odd:
            return None
        made = dict(self.began)
        if self.input is not None:
            if not is_object(self.input.arguments):
                return None
            made["input"] = json.loads(self.input.arguments)
        for key, pieces in self.added.items():
            made[key] = whole_characters(str(made.get(key) or "") + "".join(pieces))
        if self.citations:
            made["citations"] = [*(made.get("citations") or ()), *self.citations]
        return made


class MessagesAnswer:
    """One answer of `model`. `new_id` names tool calls that the server left without a usable id. `tools`: the names of
    those that it was offered."""

    def __init__(self, model: str, new_id: Callable[[], str], tools: Collection[str] = ()) -> None:
        self._model = model
        self._new_id = new_id
        self._speech = Speech(tools=tools)
        self._blocks: dict[int, _Block] = {}
        self._room = Room()
        self._usage: dict[str, Any] = {}
        self._counted = False  # whether the figures are those of the end
        self._stop: str | None = None
        self._over = False

    @property
    def finished(self) -> bool:
        return self._stop is not None or self._over

    @property
    def over(self) -> bool:
        return self._over

    @property
    def pieces(self) -> int:
        """How much of calls and blocks has come."""
        blocks = self._blocks.values()
        return sum(len(pieces) for block in blocks for pieces in block.added.values()) + sum(
            block.input.size for block in blocks if block.input is not None
        )

    def done(self) -> None:
        self._over = True

    def refusal(self, data: Mapping[str, Any]) -> str | None:
        if data.get("type") == "error" or (data.get("error") and "content" not in data):
            return json.dumps(data)
        return None

    def whole(self, data: Mapping[str, Any]) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        self._counted, content = True, data.get("content")
        for index, block in enumerate(content if isinstance(content, list) else ()):
            events += self._begin(index, block)
        self.figures(data)
        return events + self._end(data)

    def feed(self, data: Mapping[str, Any]) -> list[ModelEvent]:
        kind = data.get("type")
        if kind == "content_block_delta":
            return self._grow(data.get("index"), data.get("delta"))
        if kind == "content_block_start":
            return self._begin(data.get("index"), data.get("content_block"))
        if kind == "message_start":
            self.figures(data)
        elif kind == "message_delta":
            self._counted = True
            self.figures(data)
            delta = data.get("delta")
            return self._end(delta if isinstance(delta, dict) else {})
        elif kind == "message_stop":
            self._over = True
        return []

    def figures(self, data: Any) -> None:
        """Take the usage that an event or an error's body may carry. Figures are cumulative; a later one that says
        nothing (0 of a proxy, null) does not undo an earlier one."""
        for name, value in usage_in(data).items():
            if value or name not in self._usage:
                self._usage[name] = value

    @property
    def usage(self) -> CanonicalUsage | None:
        """The figures so far; None: there are none. Those at the beginning know nothing of what came after it."""
        usage = normalize_usage(self._usage, "messages")
        if not usage.total_tokens:
            return None
        if self._counted:
            return usage
        said = estimated_output(self._speech.text + self._speech.reasoning)
        return replace(usage, output_tokens=max(usage.output_tokens, said))

    def _end(self, told: Mapping[str, Any]) -> list[ModelEvent]:
        word = told.get("stop_reason")
        if not isinstance(word, str) or not word:
            return []
        self._stop = word
        return self._speech.say(last=True)

    def _begin(self, index: Any, block: Any) -> list[ModelEvent]:
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            return []
        begun = _Block(began=dict(block))
        self._blocks[index if isinstance(index, int) else len(self._blocks)] = begun
        if block["type"] == "tool_use":
            begun.call = PendingCall(id=str(block.get("id") or ""), name=str(block.get("name") or ""), room=self._room)
            if block.get("input"):
                begun.call.add(json.dumps(block["input"], ensure_ascii=False))
        return self._speech.say(_string(block, "text", "text"), _string(block, "thinking", "thinking"))

    def _grow(self, index: Any, delta: Any) -> list[ModelEvent]:
        block = self._blocks.get(index)
        if block is None or not isinstance(delta, dict):
            return []
        kind = delta.get("type")
        if kind == "input_json_delta":
            piece = delta.get("partial_json")
            if isinstance(piece, str):
                block.input = block.input or block.call or PendingCall(room=self._room)
                if piece:
                    block.input.add(piece)
            return []
        if kind == "citations_delta":
            block.citations.append(delta.get("citation"))
            return []
        key = _GROWS.get(str(kind))
        piece = delta.get(key) if key else None
        if key is None or not isinstance(piece, str):
            block.odd = True
            return []
        block.added.setdefault(key, []).append(piece)
        if key == "text":
            return self._speech.say(piece)
        return self._speech.say(thoughts=piece) if key == "thinking" else []

    def finish(self) -> Completed:
        """The whole answer. Raises ProviderUnavailable (malformed) if it is cut off or empty, and ContextOverflow if
        the window was full before it ended."""
        self._speech.say(last=True)
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        begun = [block.call for block in blocks if block.call is not None and block.call.name] or self._speech.calls
        stop = self._reason(begun)
        ended = self._stop is not None
        whole = completed(
            self._speech, begun, stop, ended=ended, done=self._over, new_id=self._new_id, usage=self.usage
        )
        if whole.cut_call:
            return whole
        return replace(whole, original=self._original(whole.text, [block.whole() for block in blocks]))

    def _reason(self, calls: list[PendingCall]) -> StopReason:
        if self._stop == "pause_turn":  # the model would go on: its answer is no whole one
            return "length"
        stop = stop_reason(self._stop)
        return ("tool_calls" if calls else "stop") if stop in ("stop", "tool_calls") else stop

    def _original(self, text: str, blocks: list[dict[str, Any] | None]) -> Original | None:
        """The blocks as they came, if the rest of the answer does not say all of it and the blocks say the rest."""
        known = [block for block in blocks if block is not None and (block["type"] != "text" or block.get("text"))]
        plain = all(block.keys() <= {"type", "text", "id", "name", "input"} for block in known)
        if not known or plain or words_of(known) != text or not all(block.get("id", "-") for block in known):
            return None
        return {"api": API, "model": self._model, "blocks": known}


def _string(block: Mapping[str, Any], kind: str, key: str) -> str:
    value = block.get(key)
    return value if block["type"] == kind and isinstance(value, str) else ""
