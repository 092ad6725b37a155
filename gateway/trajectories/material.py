"""Turns of a run as the messages that a summariser's material is rendered from.

Collections write tool calls into the text, `<tool_call>{"name": …, "arguments": …}</tool_call>`, and
answers into `<tool_response>…</tool_response>`; here they become calls and results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from gateway.domain.message import HOST, Message, Role
from gateway.providers.written import read_call
from gateway.runtime.tokens import MESSAGE_OVERHEAD
from gateway.store.shared.documents import storable
from gateway.trajectories.sharegpt import Speaker, Turn

_ROLES: Final[Mapping[Speaker, Role]] = {"human": "user", "gpt": "assistant", "tool": "tool"}
_CALL, _CALL_END = "<tool_call>", "</tool_call>"
_RESPONSE, _RESPONSE_END = "<tool_response>", "</tool_response>"


def messages(turns: Sequence[Turn], counts: Sequence[int]) -> list[Message]:
    """One message for each turn, noted with its tokens. A result answers the call of its place; where
    one turn holds all the results, the first."""
    made: list[Message] = []
    open_calls: list[str] = []
    for number, (turn, tokens) in enumerate(zip(turns, counts, strict=True)):
        message: dict[str, Any] = {"role": _ROLES.get(turn.speaker, "system"), "content": storable(turn.text)}
        if turn.speaker == "gpt":
            message["content"], calls = _without_calls(message["content"], number)
            open_calls = [call["id"] for call in calls]
            if calls:
                message["tool_calls"] = calls
        elif turn.speaker == "tool":
            message["content"] = message["content"].replace(_RESPONSE, "").replace(_RESPONSE_END, "").strip()
            if open_calls:
                message["tool_call_id"] = open_calls.pop(0)
        message[HOST] = {"tokens": tokens + MESSAGE_OVERHEAD}
        made.append(cast(Message, message))
    return made


def _without_calls(text: str, number: int) -> tuple[str, list[dict[str, Any]]]:
    """Return the words of a turn, and its calls; a call that cannot be read stays text."""
    said, *rest = text.split(_CALL)
    calls: list[dict[str, Any]] = []
    for piece in rest:
        written, end, after = piece.partition(_CALL_END)
        call = read_call(written) if end else None
        if call is None:
            said += _CALL + piece
        else:
            function = {"name": call[0], "arguments": storable(call[1])}
            calls.append({"id": f"{number}.{len(calls)}", "type": "function", "function": function})
            said += after
    return said.strip(), calls
