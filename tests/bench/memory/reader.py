"""A model that reads well and follows a script: it keeps what it is shown, by the tool or in a flush, and searches once
for what it is asked. It knows nothing that does not stand in its request."""

from __future__ import annotations

import json
import re
from typing import Any

from gateway.domain.message import text_of
from gateway.providers.base import ModelRequest, ModelSpec
from tests.bench.memory.lives import also_in, facts_in, frame_of
from tests.support.model import Say, newest

_KNOWN = re.compile(r"^- (?:#\d+ )?[\d-]+: (?P<fact>[^\n]+)$", re.MULTILINE)
_SAID = re.compile(r"^\[(\d+)\] person: (.*)$", re.MULTILINE)
ASKS = ("Remember this", "请记住")
QUESTION = "Q: "


def with_memory(spec: ModelSpec, request: ModelRequest) -> Say:
    """Save at once what a person asks to be remembered, and what they forward, as if it were theirs: that must be
    refused. Look first whether something else is known."""
    words = newest(request)
    step = [message for message in request.messages if message["role"] == "tool"]
    last = text_of(request.messages[-1]) if request.messages[-1]["role"] == "tool" else None
    if words.startswith(QUESTION):
        return Say(text="answered") if last is not None else _call(action="search", words=words.removeprefix(QUESTION))
    if not words.startswith((*ASKS, "[forwarded]")):
        return Say(text="all right")
    ((frame, fact),) = facts_in(words)
    if last is None:
        return _call(action="search", words=frame)
    if step and _is_change(request):
        return Say(text="noted")
    old = next((each for each in current_in(last) if frame_of(each) == frame), None)
    return _call(action="add", text=fact) if old is None else _call(action="replace", fact=old, text=fact)


def without_memory(spec: ModelSpec, request: ModelRequest) -> Say:
    """Search once in what was said."""
    words = newest(request)
    if not words.startswith(QUESTION) or request.messages[-1]["role"] == "tool":
        return Say(text="all right")
    return Say(calls=[("search_history", json.dumps({"words": words.removeprefix(QUESTION)}, ensure_ascii=False))])


def flush(spec: ModelSpec, request: ModelRequest) -> Say:
    """Keep every fact that somebody said themselves, in the place of what was known of it; friends are notes."""
    text = text_of(request.messages[-1])
    known = current_in(text.partition("What was said:")[0])
    calls: list[dict[str, Any]] = []
    for number, said in _SAID.findall(text):
        for frame, fact in facts_in(said):
            old = next((each for each in known if frame_of(each) == frame), None)
            if old == fact:
                continue
            call = {"action": "add", "about": "person"} if old is None else {"action": "replace", "fact": old}
            calls.append({**call, "text": fact, "message": int(number)})
            known = [each for each in known if each != old] + [fact]
        calls += [
            {"action": "add", "about": about, "text": fact, "message": int(number)}
            for about, fact in also_in(said)
            if fact not in known
        ]
    return Say(
        calls=[("memory", json.dumps(call, ensure_ascii=False)) for call in calls], text="" if calls else "Nothing."
    )


def current_in(text: str) -> list[str]:
    """The facts that hold, in a prompt or in what the tool found."""
    facts = [found["fact"] for found in _KNOWN.finditer(text)]
    return [fact for fact in facts if "(no longer true" not in fact]


def _is_change(request: ModelRequest) -> bool:
    calls = [call for message in request.messages[-4:] for call in message.get("tool_calls", ())]
    return bool(calls) and json.loads(calls[-1]["function"]["arguments"])["action"] != "search"


def _call(**arguments: str) -> Say:
    return Say(calls=[("memory", json.dumps(arguments, ensure_ascii=False))])
