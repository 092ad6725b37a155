"""Phases 5 and 6: put head, summary and tail together, and make any transcript valid to send.

Every engine's result passes `sanitize` before it is stored. It costs one pass, and returns the
very same message objects wherever nothing was wrong with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.context.prompts import CONTINUED, RESULT_MISSING, SYSTEM_NOTE, framed
from gateway.context.shapes import Calls, derived, plain_call, plain_id, read_call, result_id, rewritten, sound, sources
from gateway.domain.message import HOST, Message, note_of, text_of, tool_result, user
from gateway.runtime.tokens import TokenCounter


@dataclass(slots=True)
class _Group:
    """An assistant message and the results of its calls. `answers` maps every id of a call to its
    slot in `results`."""

    message: Message
    answers: dict[str, int] = field(default_factory=dict)
    results: list[Message | None] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)


def sanitize(messages: Sequence[Message], *, opening: bool = True, calls: Calls | None = None) -> list[Message]:
    """`messages` as a provider accepts them; never raises on odd shapes.

    Roles and contents that no API knows become ones that it does (`shapes`), what is no message is
    left out. Tool results follow their call directly, in the order of the calls; a result without a call, or
    a second one, is removed; a call without a result gets a stub; a call without an id, or with
    one its message used already, is stripped, for nothing could answer it; an assistant message
    that is left with neither text nor calls is removed. With `opening`, a short user message is
    put first if the transcript would otherwise open with an assistant's. `calls` is given every call
    that was kept, under each of its ids: a reused id means its latest call.
    """
    index = Calls() if calls is None else calls
    if _in_order(messages, index):
        return _opened(list(messages)) if opening else list(messages)
    entries: list[_Group | Message] = []
    waiting: dict[str, _Group] = {}
    for given in messages:
        message = sound(given)
        if message is None:
            continue
        role = message.get("role")
        if role == "tool":
            _answer(waiting, message)
        elif role == "assistant" and "tool_calls" in message:
            group = _group(message, index)
            if group is None:
                continue
            for name in group.answers:
                waiting[name] = group
            entries.append(group)
        else:
            entries.append(message)
    result: list[Message] = []
    for entry in entries:
        if type(entry) is not _Group:
            result.append(entry)  # type: ignore[arg-type]
            continue
        result.append(entry.message)
        for found, name in zip(entry.results, entry.ids, strict=True):
            result.append(tool_result(name, RESULT_MISSING) if found is None else found)
    return _opened(result) if opening else result


def _in_order(messages: Sequence[Message], index: Calls) -> bool:
    """Whether there is nothing to repair; the calls go into `index` if so. One plain loop, because it runs
    over every message of the longest transcripts: what it does not know at sight is left to the repair."""
    raw: dict[str, Any] = {}
    waiting: list[str] = []  # ids of the calls whose results must come next, the last one first
    for message in messages:
        if type(message) is not dict:
            return False
        role, content = message.get("role"), message.get("content")
        if type(content) is not str and content is not None and sound(message) is not message:
            return False
        if waiting:
            if role != "tool" or message.get("tool_call_id") != waiting.pop():
                return False
        elif role == "assistant":
            if "tool_calls" in message:
                waiting = _answerable(message["tool_calls"], raw)
                if not waiting:
                    return False
        elif role != "user" and role != "system":
            return False
    if waiting:
        return False
    index.raw.update(raw)
    return True


def _answerable(calls: Any, raw: dict[str, Any]) -> list[str]:
    """The ids of calls that need no repair, the last one first, each put into `raw`; [] if one of them does."""
    names: list[str] = []
    if type(calls) is list:
        for call in calls:
            name = plain_id(call)
            if not name or name in names:
                return []
            raw[name] = call
            names.append(name)
    names.reverse()
    return names


def _answer(waiting: Mapping[str, _Group], message: Message) -> None:
    name = result_id(message)
    group = waiting.get(name) if name is not None else None
    if name is None or group is None:
        return
    slot = group.answers[name]
    if group.results[slot] is None:
        sent_as = message.get("tool_call_id") == group.ids[slot]
        group.results[slot] = message if sent_as else derived(message, tool_call_id=group.ids[slot])


def _group(message: Message, index: Calls) -> _Group | None:
    """The calls of an assistant message that can be answered; None if nothing of it is left."""
    raw: Any = message.get("tool_calls")
    calls: list[Any] = list(raw) if isinstance(raw, list | tuple) else []
    group = _Group(message)
    kept = []
    changed = not isinstance(raw, list)
    for call in calls:
        read = read_call(call)
        ids = read.ids
        if not ids or not group.answers.keys().isdisjoint(ids):
            continue
        for name in ids:
            group.answers[name] = len(group.results)
            index.raw[name] = call
        group.results.append(None)
        group.ids.append(ids[0])
        plain = plain_call(call, read)
        changed = changed or plain is not call
        kept.append(plain)
    if kept and len(kept) == len(calls) and not changed:
        return group
    if not kept and not text_of(message).strip() and not isinstance(message.get("content"), list):
        return None
    rest: dict[str, Any] = {key: value for key, value in message.items() if key != "tool_calls"}
    group.message = derived(rest, tool_calls=kept) if kept else derived(rest)
    return group


def _opened(messages: list[Message]) -> list[Message]:
    first = next((index for index, m in enumerate(messages) if m.get("role") != "system"), None)
    if first is not None and messages[first].get("role") != "user":
        messages.insert(first, user(CONTINUED))
    return messages


def with_system_note(message: Message, counter: TokenCounter) -> Message:
    """A leading system message that says once that earlier turns were condensed."""
    content: Any = message.get("content")
    if SYSTEM_NOTE in text_of(message):
        return message
    if isinstance(content, list):
        return rewritten(message, counter, content=[*content, {"type": "text", "text": SYSTEM_NOTE}])
    return rewritten(message, counter, content=f"{text_of(message)}\n\n{SYSTEM_NOTE}".strip())


def summary_message(
    notes: str,
    derived_from: Sequence[str],
    *,
    fallback: bool,
    counter: TokenCounter,
    identifiers: Mapping[str, float] | None = None,
) -> Message:
    """The summary as a user message; `joined` may give it another role or merge it. `identifiers`: those
    that the notes hold and their weights, noted so that the next compaction need not look for them."""
    note: dict[str, Any] = {"summary": True, "derived_from": list(derived_from)}
    if identifiers is not None:
        note["identifiers"], note["weights"] = list(identifiers), list(identifiers.values())
    if fallback:
        note["fallback"] = True
    message: dict[str, Any] = {"role": "user", "content": framed(notes), HOST: note}
    note["tokens"] = counter.message(message)
    return message  # type: ignore[return-value]


def joined(head: Sequence[Message], summary: Message, tail: Sequence[Message], counter: TokenCounter) -> list[Message]:
    """head + summary + tail, the summary under a role that repeats neither neighbour's.

    Without a head it must be a user's, since no transcript may open with an assistant. Where no
    role fits it is merged in front of the first tail message.
    """
    before = head[-1].get("role") if head else None
    after = tail[0].get("role") if tail else None
    roles = ("user", "assistant") if head else ("user",)
    role = next((role for role in roles if role not in (before, after)), None)
    if role is None:
        return [*head, _merged(summary, tail[0], counter), *tail[1:]]
    return [*head, summary if role == "user" else {**summary, "role": "assistant"}, *tail]


def _merged(summary: Message, message: Message, counter: TokenCounter) -> Message:
    content: Any = message.get("content")
    text = text_of(summary)
    note: dict[str, Any] = {**note_of(summary), "merged": True}
    note["derived_from"] = [*note["derived_from"], *sources(message)]
    if isinstance(content, list):
        combined: Any = [{"type": "text", "text": text}, *content]
    elif content is None or content == "":
        combined = text
    else:
        combined = f"{text}\n\n{text_of(message)}"
    return rewritten(message, counter, note, content=combined)
