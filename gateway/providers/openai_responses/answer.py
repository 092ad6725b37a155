"""An answer of the Responses API, put together from its events.

https://platform.openai.com/docs/api-reference/responses-streaming: items are added, grow and are done one after the
other; at the end the whole response is said again, with its status and the figures. The items are kept as they came,
for the day when they go back (`codec`). No I/O, no clock.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from gateway.domain.message import Original
from gateway.domain.usage import CanonicalUsage
from gateway.providers.answer import PendingCall, Room, Speech, completed, stop_reason
from gateway.providers.base import Completed, ModelEvent, StopReason
from gateway.providers.openai_responses.codec import API, words_in, words_of
from gateway.providers.usage import told
from gateway.runtime.structs import replace

_ENDS: Final = ("response.completed", "response.incomplete", "response.done")
_THOUGHTS: Final = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")


class ResponsesAnswer:
    """One answer of `model`. `new_id` names tool calls that the server left without a usable id. `tools`: the names of
    those that it was offered."""

    def __init__(self, model: str, new_id: Callable[[], str], tools: Collection[str] = ()) -> None:
        self._model = model
        self._new_id = new_id
        self._speech = Speech(tools=tools)
        self._calls: dict[int, PendingCall] = {}  # by the place among the items
        self._room = Room()
        self._items: dict[int, dict[str, Any]] = {}  # whole ones, by their place
        self._said: dict[int, int] = {}  # characters of the message at a place that were said
        self._thought: set[int] = set()  # the places of thoughts that were told as they came
        self._place = -1  # of the message that spoke last
        self._refused = False
        self._status: str | None = None
        self._reason: str | None = None
        self._done = False
        self.usage: CanonicalUsage | None = None

    @property
    def finished(self) -> bool:
        return self._status is not None

    @property
    def over(self) -> bool:
        return self.finished or self._done

    @property
    def pieces(self) -> int:
        """How many pieces of calls and items have come."""
        return len(self._items) + sum(call.size for call in self._calls.values())

    def done(self) -> None:
        self._done = True

    def refusal(self, data: Mapping[str, Any]) -> str | None:
        """The error that an event or a response carries, as JSON text; None for any other. The rest of a failed
        response, such as the instructions, is no error's text."""
        inner = data.get("response")
        response = inner if isinstance(inner, dict) else data
        if response.get("error"):
            return json.dumps({"error": response["error"]})
        if data.get("type") == "error":
            return json.dumps({"error": {key: data.get(key) for key in ("code", "message", "param")}})
        if data.get("type") == "response.failed" or response.get("status") == "failed":
            return json.dumps({"error": {"code": "server_error", "message": "The answer failed."}})
        return None

    def whole(self, data: Mapping[str, Any]) -> list[ModelEvent]:
        self.figures(data)
        return self._end(data) if isinstance(data.get("output"), list) else []

    def feed(self, data: Mapping[str, Any]) -> list[ModelEvent]:
        kind, delta, place = data.get("type"), data.get("delta"), data.get("output_index")
        place = place if isinstance(place, int) else 0
        if isinstance(delta, str):
            if kind == "response.output_text.delta":
                return self._say(place, delta)
            if kind == "response.function_call_arguments.delta":
                if place not in self._calls:
                    self._calls[place] = PendingCall(room=self._room)
                self._calls[place].add(delta)
                return []
            if kind in _THOUGHTS:
                self._thought.add(place)
                return self._speech.say(thoughts=delta)
            if kind == "response.refusal.delta":
                self._refused = True
                return self._say(place, delta)
            return []
        if kind == "response.output_item.added":
            item = data.get("item")
            if isinstance(item, Mapping) and item.get("type") == "function_call":
                self._calls[place] = self._pending(item)
        elif kind == "response.output_item.done":
            return self._keep(place, data.get("item"))
        elif kind == "response.reasoning_summary_part.added" and data.get("summary_index"):
            return self._speech.say(thoughts="\n\n")
        elif kind in _ENDS:
            response = data.get("response")
            return self._end(response if isinstance(response, dict) else {})
        return []

    def _say(self, place: int, text: str) -> list[ModelEvent]:
        if not text:
            return []
        apart = "\n\n" if self._place not in (-1, place) else ""
        self._place = place
        self._said[place] = self._said.get(place, 0) + len(text)
        return self._speech.say(apart + text)

    def _pending(self, item: Mapping[str, Any]) -> PendingCall:
        return PendingCall(id=str(item.get("call_id") or ""), name=str(item.get("name") or ""), room=self._room)

    def _keep(self, place: int, item: Any) -> list[ModelEvent]:
        """Take a whole item, and say what of it was not said yet: some servers send no deltas."""
        if not isinstance(item, dict) or not isinstance(item.get("type"), str) or place in self._items:
            return []
        self._items[place] = dict(item)
        if item["type"] == "function_call":
            call = self._pending(item)
            arguments = item.get("arguments")
            if isinstance(arguments, str):
                call.add(arguments)
            self._calls[place] = call
        elif item["type"] == "message":
            content = item.get("content")
            parts = content if isinstance(content, list) else []
            self._refused |= any(isinstance(part, dict) and part.get("type") == "refusal" for part in parts)
            return self._say(place, words_in(item)[self._said.get(place, 0) :])
        elif item["type"] == "reasoning" and place not in self._thought:
            return self._speech.say(thoughts=_thoughts_in(item))
        return []

    def figures(self, data: Any) -> None:
        self.usage = told(data, "responses") or self.usage

    def _end(self, response: Mapping[str, Any]) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        output = response.get("output")
        for place, item in enumerate(output if isinstance(output, list) else ()):
            events += self._keep(place, item)
        self.figures(response)
        status, details = response.get("status"), response.get("incomplete_details")
        self._status = status if isinstance(status, str) else "completed"
        self._reason = details.get("reason") if isinstance(details, dict) else None
        return events + self._speech.say(last=True)

    def finish(self) -> Completed:
        """The whole answer. Raises ProviderUnavailable (malformed) if it is cut off or empty, and ContextOverflow if
        the window was full before it ended."""
        self._speech.say(last=True)
        made = [self._calls[place] for place in sorted(self._calls) if self._calls[place].name]
        begun = made or self._speech.calls
        stop = self._stop(begun)
        ended = self._status in ("completed", "incomplete")
        whole = completed(
            self._speech, begun, stop, ended=ended, done=self._done, new_id=self._new_id, usage=self.usage
        )
        return whole if whole.cut_call or stop == "length" else replace(whole, original=self._original(whole.text))

    def _stop(self, calls: list[PendingCall]) -> StopReason:
        if self._status == "incomplete":
            return stop_reason(str(self._reason or "max_output_tokens"))
        if self._refused:
            return "refused"
        return "tool_calls" if calls else "stop"

    def _original(self, text: str) -> Original | None:
        """The items as they came, if the rest of the answer does not say all of them and the items say the rest."""
        items = [self._items[place] for place in sorted(self._items)]
        calls = [item.get("call_id") for item in items if item["type"] == "function_call"]
        if _is_plain(items) or words_of(items) != text or not all(calls) or len(set(calls)) < len(calls):
            return None
        # The server forgets its thoughts; without their contents it would not know them again.
        thoughts = (item for item in items if item["type"] == "reasoning")
        if not all(item.get("encrypted_content") or item.get("content") for item in thoughts):
            return None
        return {"api": API, "model": self._model, "blocks": items}


def _thoughts_in(item: Mapping[str, Any]) -> str:
    summary = item.get("summary") or item.get("content")
    parts = [part.get("text") for part in summary if isinstance(part, dict)] if isinstance(summary, list) else []
    return "\n\n".join(text for text in parts if isinstance(text, str))


def _is_plain(items: list[dict[str, Any]]) -> bool:
    """Whether the items are at most one message, without a phase or notes, and calls behind it."""
    if any(item["type"] != "function_call" for item in items[1:]):
        return False
    if not items or items[0]["type"] == "function_call":
        return True
    first, content = items[0], items[0].get("content")
    parts = content if isinstance(content, list) else []
    return (
        first["type"] == "message"
        and not first.get("phase")
        and all(part.get("type") == "output_text" and not part.get("annotations") for part in parts)
    )
