"""An answer of Chat Completions, put together from the pieces it arrives in.

`ChatAnswer.feed` takes one decoded chunk (or a whole response, which is a chunk that says
everything) and gives the deltas in it; `finish` gives the `Completed`. No I/O, no clock.

When is an answer whole? A `finish_reason` says so. `[DONE]` says so too, provided that something
was said and every tool call has complete arguments. The end of the connection alone says nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

from gateway.domain.usage import CanonicalUsage
from gateway.providers.answer import PendingCall, Room, Speech, completed, stop_reason
from gateway.providers.base import Completed, ModelEvent, StopReason
from gateway.providers.openai.attached import OF_ANSWERS, OF_CALLS, attach, original
from gateway.providers.openai.codec import text_parts
from gateway.providers.usage import told
from gateway.runtime.structs import replace


class ChatAnswer:
    """One answer. `new_id` names tool calls that the server left without a usable id. `model` at `server`: who answers.
    `unopened`: the model is expected to begin with thoughts in its words that no tag opens. `tools`: the names
    of those that it was offered."""

    def __init__(
        self,
        new_id: Callable[[], str],
        *,
        model: str = "",
        server: str = "",
        unopened: bool = False,
        tools: Collection[str] = (),
    ) -> None:
        self._new_id = new_id
        self._model = model
        self._server = server
        self._attached: dict[str, Any] = {}  # to the answer
        self._speech = Speech(unopened=unopened, tools=tools)
        self._calls: list[PendingCall] = []
        self._room = Room()
        self._open: dict[int, PendingCall] = {}  # by the index the server uses for it
        self._by_id: dict[str, PendingCall] = {}
        self._finish: str | None = None
        self._refused = False
        self._done = False
        self.usage: CanonicalUsage | None = None

    @property
    def finished(self) -> bool:
        """Whether the server has ended the answer."""
        return self._finish is not None or self._done

    @property
    def unopened(self) -> bool:
        """Whether the answer began with such thoughts."""
        return self._speech.unopened

    @property
    def over(self) -> bool:
        """Whether nothing more will come: a `finish_reason` may be followed by the usage."""
        return self._done

    @property
    def pieces(self) -> int:
        """How much of calls has come."""
        return sum(call.size for call in self._calls)

    def done(self) -> None:
        self._done = True

    def refusal(self, data: Mapping[str, Any]) -> str | None:
        if data.get("error") or (data.get("object") == "error" and "choices" not in data):
            return json.dumps(data)
        return None

    def whole(self, data: Mapping[str, Any]) -> list[ModelEvent]:
        events = self.feed(data)
        if "choices" in data:
            self._done = True
        return events

    def feed(self, chunk: Mapping[str, Any]) -> list[ModelEvent]:
        if chunk.get("usage") or "x_groq" in chunk:
            self.figures(chunk)
        choices = chunk.get("choices")
        if not isinstance(choices, list):
            return []
        events: list[ModelEvent] = []
        for choice in choices:
            if isinstance(choice, dict) and not choice.get("index"):
                events += self._read_choice(choice)
        return events

    def figures(self, data: Any) -> None:
        """Take the usage that a chunk or an error's body may carry; it is cumulative where it comes more than once."""
        self.usage = told(data, "chat_completions") or self.usage

    def _read_choice(self, choice: Mapping[str, Any]) -> list[ModelEvent]:
        delta = choice.get("delta") or choice.get("message") or {}
        if not isinstance(delta, dict):
            delta = {}
        text, thoughts = text_parts(delta.get("content"))
        for name in ("reasoning_content", "reasoning"):  # some servers send both, saying the same
            if not thoughts and isinstance(delta.get(name), str):
                thoughts = delta[name]
        attach(self._attached, delta, OF_ANSWERS)
        self._read_calls(delta)
        events = self._speech.say(text, thoughts)
        refusal = delta.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._refused = True
            events += self._speech.say(refusal)
        if isinstance(choice.get("finish_reason"), str) and choice["finish_reason"]:
            self._finish = choice["finish_reason"].lower()
            events += self._speech.say(last=True)
        return events

    def _read_calls(self, delta: Mapping[str, Any]) -> None:
        legacy = delta.get("function_call")
        if isinstance(legacy, dict):
            self._read_call({"index": 0, "function": legacy})
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                self._read_call(call)

    def _read_call(self, piece: Mapping[str, Any]) -> None:
        function = piece.get("function")
        function = function if isinstance(function, dict) else {}
        call_id = piece["id"] if isinstance(piece.get("id"), str) else ""
        name = function["name"] if isinstance(function.get("name"), str) else ""
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments)
        arguments = arguments if isinstance(arguments, str) else ""
        call = self._call_for(piece.get("index"), call_id, name, arguments)
        if call_id and not call.id:
            call.id = call_id
            self._by_id.setdefault(call_id, call)
        # A name may come in parts, but only before the arguments; some servers repeat it throughout.
        if name != call.name and not call.size:
            call.name += name
        if arguments:
            call.add(arguments)
        attach(call.attached, piece, OF_CALLS)

    def _call_for(self, index: Any, call_id: str, name: str, arguments: str) -> PendingCall:
        """The call a piece belongs to. Servers count calls, or repeat ids, or neither."""
        if isinstance(index, int):
            found = self._open.get(index)
        else:
            found = self._by_id.get(call_id)
            if found is None and self._calls and not (call_id and name):
                found = self._calls[-1]
        if found is not None and not _begins_another(found, call_id, name, arguments):
            return found
        fresh = PendingCall(room=self._room)
        self._calls.append(fresh)
        if isinstance(index, int):
            self._open[index] = fresh
        return fresh

    def finish(self) -> Completed:
        """The whole answer. Raises ProviderUnavailable (malformed) if it is cut off or empty, and ContextOverflow if
        the window was full before it ended."""
        self._speech.say(last=True)
        begun = [call for call in self._calls if call.name] or self._speech.calls
        stop = self._stop(begun)
        ended = self._finish is not None
        whole = completed(
            self._speech, begun, stop, ended=ended, done=self._done, new_id=self._new_id, usage=self.usage
        )
        if whole.cut_call or stop == "length":
            return whole
        calls = ((named["id"], call.attached) for named, call in zip(whole.tool_calls, begun, strict=True))
        return replace(whole, original=original(self._model, self._server, self._attached, calls))

    def _stop(self, calls: list[PendingCall]) -> StopReason:
        stop = stop_reason(self._finish)
        if self._refused and stop == "stop":
            return "refused"
        if stop in ("stop", "tool_calls"):  # servers disagree about the end of a call
            return "tool_calls" if calls else "stop"
        return stop


def _begins_another(call: PendingCall, call_id: str, name: str, arguments: str) -> bool:
    """Whether a piece with the number of `call` is in truth the next call: servers that send whole calls often
    number all of them 0."""
    if not name or not call.name:
        return False
    if call_id and call.id and call_id != call.id:
        return True
    return not call_id and bool(arguments) and call.seems_whole()
