"""Phases 5 and 6: head, summary and tail are put together, and any transcript is made valid to send.

Every engine's result passes `sanitize` before it is stored. That costs one walk, and sound messages stay the very
same objects.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field, to_builtins

from gateway.context.archive import Archive, Chapter, table
from gateway.context.facts import PersonalFact
from gateway.context.prompts import CONTINUED, RESULT_MISSING, SYSTEM_NOTE, framed
from gateway.context.readable import (
    Calls,
    derived,
    plain_call,
    plain_id,
    read_call,
    result_id,
    rewritten,
    sound,
    sources,
)
from gateway.context.standing import Instruction
from gateway.context.timelines import Saying
from gateway.domain.message import HOST, Message, note_of, noted, says_nothing, text_of, tool_result, user
from gateway.runtime.tokens import TokenCounter


class _Slot(Struct):
    """The place for a call's result, after its message. `name`: the id under which the call is sent."""

    row: list[Message]
    place: int
    name: str
    answered: bool = False

    def take(self, result: Message) -> None:
        """Put a result into the place, unless it already has one."""
        if not self.answered:
            plain = result.get("tool_call_id") == self.name
            self.row[self.place] = result if plain else derived(result, tool_call_id=self.name)
            self.answered = True


def sanitize(messages: Sequence[Message], *, opening: bool = True, calls: Calls | None = None) -> list[Message]:
    """Return `messages` in the form that providers accept; no shape raises.

    Unknown roles and contents become known ones (`shapes`), and anything but a message is left out. Tool results
    follow their call directly, in the order of the calls. A result without a call, or a second result, is removed. A
    call without a result gets a stub. A call without an id, or with an id that its message used before, is stripped,
    because nothing could answer it. A message of a person or the model that says nothing is removed. With `opening`, a
    short user message is put in front of a leading assistant message. `calls` receives every kept call under each
    of its ids; a reused id means its latest call.
    """
    index = Calls() if calls is None else calls
    if _in_order(messages, index):
        return _opened(list(messages)) if opening else list(messages)
    rows: list[list[Message]] = []  # each a message and the results of its calls
    slots: dict[str, _Slot] = {}
    for given in messages:
        message = sound(given)
        if message is None:
            continue
        if message.get("role") == "tool":
            slot = slots.get(result_id(message) or "")
            if slot is not None:
                slot.take(message)
        elif message.get("role") == "assistant" and "tool_calls" in message:
            rows.append(_with_results(message, index, slots))
        elif not says_nothing(message):
            rows.append([message])
    result = [message for row in rows for message in row]
    return _opened(result) if opening else result


def _in_order(messages: Sequence[Message], index: Calls) -> bool:
    """Whether nothing needs repair; if so, the calls go into `index`. This is one plain loop, because it runs over
    every message of the longest transcripts; anything doubtful is left to the repair."""
    raw: dict[str, Any] = {}
    waiting: list[str] = []  # ids of the calls whose results must follow, the last one first
    for message in messages:
        if type(message) is not dict:
            return False
        try:
            role, content = message["role"], message["content"]
        except KeyError:
            role, content = message.get("role"), message.get("content")
        if type(content) is str and content and not waiting and "tool_calls" not in message:
            if (role == "user" or role == "assistant") and not content.isspace():
                continue  # nearly every message
        elif type(content) is not str and (content is not None or role == "tool") and sound(message) is not message:
            return False
        if waiting:
            if role != "tool" or message.get("tool_call_id") != waiting.pop():
                return False
        elif role == "assistant" and "tool_calls" in message:
            waiting = _answerable(message["tool_calls"], raw)
            if not waiting:
                return False
        elif role != "user" and role != "assistant":
            if role != "system":
                return False
        elif (type(content) is not str or not content or content.isspace()) and says_nothing(message):
            return False
    if waiting:
        return False
    index.raw.update(raw)
    return True


def _answerable(calls: Any, raw: dict[str, Any]) -> list[str]:
    """The ids of calls that need no repair, last first, each put into `raw`; [] if one needs it."""
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


def _with_results(message: Message, index: Calls, slots: dict[str, _Slot]) -> list[Message]:
    """An assistant message with its answerable calls, and a stub for each result; [] if nothing of the message is left.
    The calls go into `index`, the places of their results into `slots`."""
    raw: Any = message.get("tool_calls")
    calls: list[Any] = list(raw) if isinstance(raw, list | tuple) else []
    row, kept, own = [message], [], set[str]()
    for call in calls:
        read = read_call(call)
        if not read.ids or not own.isdisjoint(read.ids):
            continue
        slot = _Slot(row, len(row), read.ids[0])
        for name in read.ids:
            slots[name], index.raw[name] = slot, call
        own.update(read.ids)
        row.append(tool_result(slot.name, RESULT_MISSING))
        kept.append(plain_call(call, read))
    if kept and isinstance(raw, list) and len(kept) == len(raw) and all(map(operator.is_, kept, raw)):
        return row
    rest = {key: value for key, value in message.items() if key != "tool_calls"}
    if not kept and says_nothing(rest):
        return []
    row[0] = derived(rest, tool_calls=kept) if kept else derived(rest)
    return row


def _opened(messages: list[Message]) -> list[Message]:
    first = next((index for index, m in enumerate(messages) if m.get("role") != "system"), None)
    if first is not None and messages[first].get("role") != "user":
        messages.insert(first, user(CONTINUED))
    return messages


def with_system_note(message: Message, counter: TokenCounter) -> Message:
    """Return a leading system message that says once that earlier turns were condensed."""
    content: Any = message.get("content")
    if SYSTEM_NOTE in text_of(message):
        return message
    if isinstance(content, list):
        return rewritten(message, counter, content=[*content, {"type": "text", "text": SYSTEM_NOTE}])
    return rewritten(message, counter, content=f"{text_of(message)}\n\n{SYSTEM_NOTE}".strip())


class Noted(Struct, frozen=True, kw_only=True):
    """What the host keeps with a summary for the next compaction: the identifiers in the notes, with the weights of
    those that people said; the instructions that hold; the facts that people told; what was said of things over time;
    and what was `corrected` in a model's notes."""

    identifiers: Mapping[str, float] | None = None
    owned: Mapping[str, float] = field(default_factory=dict)
    standing: Sequence[Instruction] = ()
    facts: Sequence[PersonalFact] = ()
    timelines: Sequence[Saying] = ()
    corrected: Sequence[str] = ()

    def note(self) -> dict[str, Any]:
        """Return the fields of the host's note."""
        note: dict[str, Any] = {}
        if self.identifiers is not None:
            note |= {"identifiers": list(self.identifiers), "weights": list(self.identifiers.values())}
            if own := {place: self.owned[value] for place, value in enumerate(self.identifiers) if value in self.owned}:
                note |= {"owned": list(own), "own_weights": list(own.values())}
        if self.standing:
            note["standing"] = to_builtins(self.standing)
        if self.facts:
            note["facts"] = to_builtins(self.facts)
        if self.timelines:
            note["timelines"] = to_builtins(self.timelines)
        if self.corrected:
            note["corrected"] = list(self.corrected)
        return note


def summary_message(
    notes: str,
    derived_from: Sequence[str],
    archive: Archive,
    chapters: Sequence[Chapter] = (),
    *,
    fallback: bool,
    kept: Noted = Noted(),
) -> Message:
    """Return the summary as a user message; `joined` counts it and may give it another role or merge it. `archive`: the
    messages that it stands for, and `chapters`: their table of contents. `kept`: noted for the next compaction."""
    note: dict[str, Any] = {"summary": True, "derived_from": list(derived_from), "archive": to_builtins(archive)}
    note |= kept.note()
    if chapters:
        note["chapters"] = to_builtins(chapters)
    if fallback:
        note["fallback"] = True
    text = framed(notes, archive.line(), table(chapters))
    message: dict[str, Any] = {"role": "user", "content": text, HOST: note}
    return message  # type: ignore[return-value]


def counted(summary: Message, counter: TokenCounter) -> Message:
    """Return a summary that stands by itself, with its tokens noted."""
    return noted(summary, tokens=counter.message(summary))


def joined(head: Sequence[Message], summary: Message, tail: Sequence[Message], counter: TokenCounter) -> list[Message]:
    """Return head, summary and tail, the summary with a role other than its neighbours'.

    Without a head the role must be a user's, because no transcript may open with an assistant. Where no role fits the
    summary is merged in front of the first tail message.
    """
    before = head[-1].get("role") if head else None
    after = tail[0].get("role") if tail else None
    roles = ("user", "assistant") if head else ("user",)
    role = next((role for role in roles if role not in (before, after)), None)
    if role is None:
        return [*head, merged(summary, tail[0], counter), *tail[1:]]
    alone = counted(summary, counter)
    return [*head, alone if role == "user" else {**alone, "role": "assistant"}, *tail]


def merged(summary: Message, message: Message, counter: TokenCounter) -> Message:
    """Return a message with a summary in front of its text."""
    content: Any = message.get("content")
    text = text_of(summary)
    note: dict[str, Any] = {**note_of(summary), "merged": True}
    originals = [*note["derived_from"], *sources(message)]
    # Only a message without a row of its own, because a summary was merged into it before, may be named twice.
    note["derived_from"] = originals if "id" in note_of(message) else list(dict.fromkeys(originals))
    if isinstance(content, list):
        combined: Any = [{"type": "text", "text": text}, *content]
    elif content is None or content == "":
        combined = text
    else:
        combined = f"{text}\n\n{text_of(message)}"
    return rewritten(message, counter, note, content=combined)
