"""Models of Chat Completions that attach something to their answers and want it back to the letter.

By the name of the model, as the vendors do it:
- `gemini-3…`: the first call of an answer carries a signature, and a request is refused in which a call of the present
  turn came back without one (https://ai.google.dev/gemini-api/docs/thought-signatures);
- `router/…`: thoughts come as `reasoning_details`, the words in pieces and the signature last, and must come back whole
  (https://openrouter.ai/docs/use-cases/reasoning-tokens);
- `kimi…`: an answer with calls must come back with its `reasoning_content`.

What comes back is compared with what was made: signatures are digests of the call they belong to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

UNSIGNED = "skip_thought_signature_validator"


def signature(call_id: str) -> str:
    """The signature of a call."""
    return "sig-of-" + hashlib.sha256(call_id.encode()).hexdigest()[:24]


def to_calls(model: str, calls: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The calls of an answer, with what the model attaches to them."""
    if not model.startswith("gemini-3") or not calls:
        return list(calls)
    extra = {"google": {"thought_signature": signature(calls[0]["id"])}}
    return [{**calls[0], "extra_content": extra}, *calls[1:]]


def details(model: str, reasoning: str) -> list[dict[str, Any]]:
    """The thoughts of an answer as one list, in pieces as they are streamed."""
    if not model.startswith("router/") or not reasoning:
        return []
    words = reasoning.split(" ")
    pieces = [(" " if at else "") + word for at, word in enumerate(words)]
    common = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
    return [*[{**common, "text": piece} for piece in pieces], {**common, "signature": signature(reasoning)},
            {"type": "reasoning.encrypted", "index": 1, "data": signature(reasoning + "!")}]  # fmt: skip


def whole_details(model: str, reasoning: str) -> list[dict[str, Any]]:
    """The same, as it must come back."""
    pieces = details(model, reasoning)
    return [{**pieces[-2], "text": reasoning}, pieces[-1]] if pieces else []


def without(body: Any) -> Any:
    """A request without what its model takes back beside OpenAI's fields."""
    model = str(body.get("model")) if isinstance(body, dict) else ""
    taken = next((name for start, name in _TAKES.items() if model.startswith(start)), None)
    if taken is None or not isinstance(body.get("messages"), list):
        return body
    return {**body, "messages": [{key: each[key] for key in each if key != taken} for each in body["messages"]]}


_TAKES = {"router/": "reasoning_details", "kimi": "reasoning_content", "deepseek": "reasoning_content"}


def violations(body: Mapping[str, Any]) -> Iterator[str]:
    """What is missing or wrong in a request; what other models attached is wrong, too."""
    model = str(body["model"])
    present = _present_turn(body["messages"])
    for at, message in enumerate(body["messages"]):
        calls = message.get("tool_calls") or ()
        if at >= present and calls and model.startswith("gemini-3"):
            yield from _unsigned(at, calls[0])
        if at >= present and calls and model.startswith("kimi") and not message.get("reasoning_content"):
            yield (f"thinking is enabled but reasoning_content is missing in assistant tool call message at index {at}")
        kept = message.get("reasoning_details")
        if kept and kept[0].get("signature") != signature(kept[0].get("text", "")):
            yield f"Invalid 'messages[{at}].reasoning_details': the signature does not belong to the thoughts."
        if calls and "extra_content" in calls[0] and not model.startswith("gemini-3"):
            yield f"property 'messages[{at}].tool_calls[0].extra_content' is unsupported"


def _unsigned(at: int, call: Mapping[str, Any]) -> Iterator[str]:
    signed = ((call.get("extra_content") or {}).get("google") or {}).get("thought_signature")
    if signed is None:
        name = call["function"]["name"]
        yield (
            "Function call is missing a thought_signature in functionCall parts. Additional data, function call "
            f"`default_api:{name}`, position {at}."
        )
    elif signed not in (UNSIGNED, signature(call["id"])):
        yield "Corrupted thought signature."


def _present_turn(messages: Sequence[Mapping[str, Any]]) -> int:
    """The position behind the newest message of a person."""
    return max((at + 1 for at, message in enumerate(messages) if message["role"] == "user"), default=0)
