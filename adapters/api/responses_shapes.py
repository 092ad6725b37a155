"""OpenAI's Responses as they are written, and a request of them as one of Chat Completions. Pure.

The format is https://platform.openai.com/docs/api-reference/responses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from adapters.api.shapes import BEAT, ApiError, ChatRequest, invalid, read, refuse, written
from gateway.domain.chat import Returns
from gateway.runtime.structs import replace

_REFUSED: Final[Mapping[str, tuple[Any, ...]]] = {
    "background": (False,),
    "conversation": (),
    "prompt": (),
    "max_tool_calls": (),
    "top_logprobs": (0,),
}
_SAME: Final = (
    "model",
    "temperature",
    "top_p",
    "parallel_tool_calls",
    "stream",
    "user",
    "safety_identifier",
    "metadata",
)
_WORDS: Final = ("input_text", "output_text", "text")


def read_response(data: Mapping[str, Any], *, loosely: bool = False) -> tuple[ChatRequest, str]:
    """The request in these fields, and the id of the response that it goes on from; "" for none. `loosely`: results
    of tools may answer what is only referred to. Raises ApiError."""
    refuse(data, _REFUSED)
    before = data.get("previous_response_id") or ""
    if not isinstance(before, str):
        raise invalid("previous_response_id", "`previous_response_id` must be the id of a response.")
    messages, places = _messages(data)
    if loosely:
        messages.append({"role": "user", "content": ""})
    chat = {name: data[name] for name in _SAME if name in data} | {"messages": messages}
    text, reasoning = _part(data, "text"), _part(data, "reasoning")
    chat |= {
        "max_tokens": data.get("max_output_tokens"),
        "verbosity": text.get("verbosity"),
        "reasoning_effort": reasoning.get("effort"),
        "response_format": _format(text.get("format")),
        "tools": [_tool(each) for each in _list(data, "tools")],
        "tool_choice": data.get("tool_choice"),
    }
    try:
        found = read(chat, goes_on=loosely or bool(before))
        turns = []
        for turn in found.turns:
            pieces = [replace(each, param=_own_name(each.param, places) or "") for each in turn.pieces]
            turns.append(replace(turn, pieces=tuple(pieces)))
        return replace(found, turns=tuple(turns)), before
    except ApiError as error:
        error.param = _own_name(error.param, places)
        raise


def _part(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = data.get(name)
    if found is not None and not isinstance(found, dict):
        raise invalid(name, f"`{name}` must be an object.")
    return found or {}


def _list(data: Mapping[str, Any], name: str) -> list[Any]:
    found = data.get(name)
    if found is not None and not isinstance(found, list):
        raise invalid(name, f"`{name}` must be a list.")
    return found or []


def _format(form: Any) -> Any:
    if isinstance(form, dict) and form.get("type") == "json_schema":
        return {"type": "json_schema", "json_schema": {name: form[name] for name in form if name != "type"}}
    return form


def _tool(tool: Any) -> Any:
    if isinstance(tool, dict) and tool.get("type") == "function" and "function" not in tool:
        return {"type": "function", "function": {name: tool[name] for name in tool if name != "type"}}
    return tool


def _messages(data: Mapping[str, Any]) -> tuple[list[Any], list[int]]:
    """What was said as messages of Chat Completions, and for each the place of its item; -1 for the instructions."""
    given = data.get("input")
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    if not isinstance(given, list) or not given:
        raise invalid("input", "`input` must be a text, or a list of items.")
    found: list[Any] = []
    places: list[int] = []
    if (instructions := data.get("instructions")) is not None:
        found, places = [{"role": "system", "content": instructions}], [-1]
    for at, item in enumerate(given):
        kind = item.get("type", "message") if isinstance(item, dict) else None
        if kind == "message":
            made = {"role": item.get("role"), "content": _content(item.get("content"))}
        elif kind == "function_call":
            function = {"name": item.get("name"), "arguments": item.get("arguments")}
            call = {"id": item.get("call_id"), "function": function}
            if found and found[-1]["role"] == "assistant":
                found[-1] = {**found[-1], "tool_calls": [*found[-1].get("tool_calls", ()), call]}
                continue
            made = {"role": "assistant", "tool_calls": [call]}
        elif kind == "function_call_output":
            made = {"role": "tool", "tool_call_id": item.get("call_id"), "content": _content(item.get("output"))}
        elif kind in ("reasoning", "item_reference"):
            continue
        else:
            raise invalid(f"input[{at}].type", f"`input[{at}]` must be a message, a function_call or its output.")
        found.append(made)
        places.append(at)
    return found, places


def _content(content: Any) -> Any:
    return [_content_part(part) for part in content] if isinstance(content, list) else content


def _content_part(part: Any) -> Any:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in _WORDS:
        return {"type": "text", "text": part.get("text")}
    if kind == "input_image" and isinstance(part.get("image_url"), str):
        return {"type": "image_url", "image_url": part["image_url"]}
    if kind == "input_file":
        return {"type": "file", "file": {name: part.get(name) for name in ("file_data", "file_id", "filename")}}
    return part


def _own_name(param: str | None, places: Sequence[int]) -> str | None:
    """A field of Chat Completions by its name here."""
    name, bracket, rest = (param or "").partition("[")
    if name == "messages":
        at, _, behind = rest.partition("]")
        if not bracket or (place := places[int(at)]) < 0:
            return "instructions" if bracket else "input"
        return f"input[{place}]{behind}"
    name, dot, rest = (param or "").partition(".")
    return {"max_tokens": "max_output_tokens", "response_format": "text.format"}.get(name, name) + dot + rest or None


# --- what is written -------------------------------------------------------------------------


class Reply(Struct, kw_only=True):
    """`Wire` of Responses. `before`: the id of the response that it goes on from. `created`: seconds since the epoch.
    `_number`: of the next event."""

    id: str
    model: str
    created: int
    before: str = ""
    tools: Sequence[Mapping[str, Any]] = ()
    _number: int = 0

    def whole(self, text: str, returns: Returns) -> bytes:
        items = [self._message(text)] if text or not returns.calls else []
        return written(self._ended(items, returns))

    def opening(self) -> bytes:
        facts = self._facts("in_progress", ())
        return b"".join(
            (
                self._event("created", response=facts),
                self._event("in_progress", response=facts),
                self._event("output_item.added", output_index=0, item=self._message(None)),
                self._event("content_part.added", **self._here, part=_words("")),
            )
        )

    def words(self, text: str) -> bytes:
        return self._event("output_text.delta", **self._here, delta=text, logprobs=[])

    def thought(self, text: str) -> bytes:
        return BEAT  # its events for thoughts would have to come before the answer's

    def ending(self, text: str, returns: Returns) -> bytes:
        message = self._message(text)
        made = [
            self._event("output_text.done", **self._here, text=text, logprobs=[]),
            self._event("content_part.done", **self._here, part=_words(text)),
            self._event("output_item.done", output_index=0, item=message),
        ]
        for at, item in enumerate(self._calls(returns), start=1):
            where, said = {"item_id": item["id"], "output_index": at}, item["arguments"]
            begun = {**item, "arguments": "", "status": "in_progress"}
            made += [
                self._event("output_item.added", output_index=at, item=begun),
                self._event("function_call_arguments.delta", **where, delta=said),
                self._event("function_call_arguments.done", **where, name=item["name"], arguments=said),
                self._event("output_item.done", output_index=at, item=item),
            ]
        whole = self._ended([message], returns)
        return b"".join((*made, self._event(whole["status"], response=whole)))

    def failure(self, error: ApiError) -> bytes:
        told = {"code": error.code or "server_error", "message": str(error)}
        return self._event("failed", response=self._facts("failed", ()) | {"error": told})

    def _ended(self, items: Sequence[Mapping[str, Any]], returns: Returns) -> dict[str, Any]:
        cut = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(returns.finish)
        usage = returns.usage
        return self._facts("incomplete" if cut else "completed", [*items, *self._calls(returns)]) | {
            "incomplete_details": {"reason": cut} if cut else None,
            "usage": {
                "input_tokens": usage.prompt_tokens,
                "input_tokens_details": {"cached_tokens": usage.cache_read_tokens},
                "output_tokens": usage.output_tokens,
                "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
                "total_tokens": usage.total_tokens,
            },
        }

    def _facts(self, status: str, output: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "model": self.model,
            "previous_response_id": self.before or None,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [{"type": "function", "strict": None, **tool["function"]} for tool in self.tools],
        }

    @property
    def _item(self) -> str:
        return f"msg_{self.id.removeprefix('resp_')}"

    @property
    def _here(self) -> dict[str, Any]:
        return {"item_id": self._item, "output_index": 0, "content_index": 0}

    def _calls(self, returns: Returns) -> list[dict[str, Any]]:
        made = {"type": "function_call", "status": "completed"}
        return [
            {**made, "id": f"fc_{self.id.removeprefix('resp_')}.{at}", "call_id": call["id"], **call["function"]}
            for at, call in enumerate(returns.calls)
        ]

    def _message(self, text: str | None) -> dict[str, Any]:
        """The answer's message; None: it only begins."""
        status, content = ("in_progress", []) if text is None else ("completed", [_words(text)])
        return {"id": self._item, "type": "message", "role": "assistant", "status": status, "content": content}

    def _event(self, kind: str, **facts: Any) -> bytes:
        named = f"response.{kind}"
        data = written({"type": named, "sequence_number": self._number, **facts})
        self._number += 1
        return b"event: %s\ndata: %s\n\n" % (named.encode(), data)


def _words(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
