"""What a server attached to an answer or to a call of a tool beside its words: signatures of thoughts, and thoughts in
a form of the server's own. Pure.

Some models are lost without them: Gemini 3 refuses the result of a tool whose call comes back without its signature
(https://ai.google.dev/gemini-api/docs/thought-signatures), and routers want the thoughts of a turn back as they were
(https://openrouter.ai/docs/use-cases/reasoning-tokens). So they are kept as the answer's `Original`, and go back to
the letter to the model that gave them, at the same server, and to no other one: a namesake elsewhere may refuse them.

An original's blocks: at most one `{"type": "answer", …}`, and one `{"type": "call", "id": …, …}` for each call with
something attached to it, or with an id that this API would shorten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from gateway.domain.message import Message, Original, note_of

API: Final = "openai"
ID_LIMIT: Final = 40  # characters; OpenAI refuses longer tool call ids
OF_ANSWERS: Final = ("reasoning_details", "extra_content", "thinking_blocks")
OF_CALLS: Final = ("extra_content", "provider_specific_fields")
# Google's own words for a call that another model made.
UNSIGNED: Final[Mapping[str, Any]] = {"google": {"thought_signature": "skip_thought_signature_validator"}}

_GROWING: Final = ("text", "summary", "thinking")  # what arrives in pieces


def attach(attached: dict[str, Any], piece: Mapping[str, Any], names: Iterable[str]) -> None:
    """Add what a piece of an answer or of a call carries under `names`."""
    for name in names:
        value = piece.get(name)
        if isinstance(value, list):
            for part in value:
                _append(attached.setdefault(name, []), part)
        elif isinstance(value, dict):
            attached[name] = _merged(attached.get(name), value)


def _append(parts: Any, part: Any) -> None:
    if not isinstance(parts, list) or not isinstance(part, dict):
        return
    last = parts[-1] if parts else None
    if last is None or not _go_together(last, part):
        parts.append(dict(part))
        return
    for key, value in part.items():
        last[key] = (last.get(key) or "") + value if key in _GROWING and isinstance(value, str) else value


def _go_together(last: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    """Whether `part` goes on with the last one, which nothing has signed yet."""
    grows = any(isinstance(each.get(key), str) for each in (last, part) for key in _GROWING)
    same = all(last.get(key) == part.get(key) for key in ("type", "index"))
    return grows and same and not last.get("signature")


def _merged(one: Any, other: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(one) if isinstance(one, dict) else {}
    for key, value in other.items():
        made[key] = _merged(made.get(key), value) if isinstance(value, dict) else value
    return made


def original(
    model: str, server: str, answer: Mapping[str, Any], calls: Iterable[tuple[str, Mapping[str, Any]]]
) -> Original | None:
    """What to keep of an answer; None if nothing was attached. `calls`: (id, attached) of each."""
    blocks: list[Any] = [{"type": "answer", **answer}] if answer else []
    blocks += [
        {"type": "call", "id": call_id, **attached}
        for call_id, attached in calls
        if attached or len(call_id) > ID_LIMIT
    ]
    return {"api": API, "model": model, "server": server, "blocks": blocks} if blocks else None


def attached_to(
    message: Message | Mapping[str, Any], model: str | None, server: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `model` attached to an answer at this server, and to its calls by their ids."""
    kept = note_of(message).get("original")
    if not kept or kept["api"] != API or (kept["model"], kept.get("server", server)) != (model, server):
        return {}, {}
    answer: dict[str, Any] = {}
    calls: dict[str, Any] = {}
    for block in kept["blocks"]:
        fields = {key: value for key, value in block.items() if key not in ("type", "id")}
        if block["type"] == "answer":
            answer = fields
        else:
            calls[block["id"]] = fields
    return answer, calls
