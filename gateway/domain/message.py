"""`Message`: one OpenAI-format entry of a transcript, as a plain dict.

Engines, providers and stores all speak this dict. What the host must remember about one sits
under the single reserved key `HOST` and never reaches a provider: `wire` strips it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from typing import Any, Final, Literal, NotRequired, TypedDict

HOST: Final = "_legato"

# What a summary alone notes.
SUMMARY_NOTES: Final = (
    "summary", "fallback", "merged", "identifiers", "weights", "archive", "standing", "facts", "owned", "own_weights",
    "chapters", "corrected", "timelines",
)  # fmt: skip

Role = Literal["system", "user", "assistant", "tool"]


class Original(TypedDict):
    """An answer as its API worded it, with parts that no other API understands, such as signed thoughts. Only the API
    that gave it reads it, and only while it says the same as the message."""

    api: str  # a provider's name
    model: str
    blocks: list[Any]  # JSON
    server: NotRequired[str]  # host and port, where servers differ in what they take back


class HostNote(TypedDict, total=False):
    """The host's own notes on a message; absent keys mean "unknown"."""

    id: str  # row id in the store; absent on a message that is not stored yet
    tokens: int  # counted once, when the message was stored
    at: float  # seconds since the epoch
    summary: bool  # written by a compaction
    fallback: bool  # a summary made without a model
    merged: bool  # a summary merged in front of a real message's text
    derived_from: list[str]  # row ids of the messages this one was rewritten from
    identifiers: list[str]  # found once, when the message was stored; of a summary: those it holds, best first
    weights: list[float]  # of a summary: what each of these is worth to the next one
    owned: list[int]  # of a summary: the places of those identifiers that people said
    own_weights: list[float]  # what each of these is worth beside each other
    instructions: list[str]  # of a person: what is to hold for good, or ends that; found when the message was stored
    standing: list[dict[str, Any]]  # of a summary: the instructions that hold, each with its speaker and time
    facts: list[dict[str, Any]]  # of a summary: what people said of themselves, each with its speaker and weight
    timelines: list[dict[str, Any]]  # of a summary: what was said of things that have a name with a digit, and when
    corrected: list[str]  # of a summary: what its model wrote against the originals, in sentences
    archive: dict[str, Any]  # of a summary: how many messages it stands for, and the first and last time
    chapters: list[dict[str, Any]]  # of a summary: the table of contents of these messages
    origin: str  # of foreign words, of a tool or of what woke the conversation: whose they are, in a few words
    only: list[str]  # of a tool's result: no other tools may be called until the answer
    recalled: bool  # a tool's result that only repeats what was said before
    original: Original  # of an answer
    said: str  # what the person said, of a message that shows more: the texts of files
    withheld: bool  # a model refused what the person said: a sentence stands in its place, and it is not sent again
    own: str  # the person's own words, of a message that holds others' as well: forwarded, quoted, another bot's
    event: str  # the event that a person's message came by
    parts: list[str]  # the events by which the rest of it came, if its client cut it
    place: str  # what its platform calls it: another message's `reply_to` may name it
    person: str  # the speaker, by their platform's id
    reminded: str  # the id of the row by which a reminder said it
    files: list[dict[str, Any]]  # what came with it, as `gateway.domain.chat.file_note` writes it


class FunctionCall(TypedDict):
    """The function half of a tool call; `arguments` is JSON text."""

    name: str
    arguments: str


class ToolCall(TypedDict):
    """One tool call of an assistant message."""

    id: str
    type: Literal["function"]
    function: FunctionCall


class Message(TypedDict):
    """One OpenAI-format entry. `content` is text, a list of parts, or None beside tool calls."""

    role: Role
    content: NotRequired[str | list[dict[str, Any]] | None]
    name: NotRequired[str]
    tool_calls: NotRequired[list[ToolCall]]
    tool_call_id: NotRequired[str]
    reasoning_content: NotRequired[str]
    _legato: NotRequired[HostNote]


def user(text: str, **note: Any) -> Message:
    """A user message with an optional host note."""
    message: Message = {"role": "user", "content": text}
    return noted(message, **note) if note else message


def assistant(text: str | None, tool_calls: Sequence[ToolCall] = (), **note: Any) -> Message:
    """An assistant message; `tool_calls` is left out when empty."""
    message: Message = {"role": "assistant", "content": text}
    if tool_calls:
        message["tool_calls"] = list(tool_calls)
    return noted(message, **note) if note else message


def tool_result(call_id: str, text: str, **note: Any) -> Message:
    """The result of one tool call."""
    message: Message = {"role": "tool", "tool_call_id": call_id, "content": text}
    return noted(message, **note) if note else message


def note_of(message: Mapping[str, Any]) -> HostNote:
    """The host's note on a message; an empty one if there is none or it is malformed."""
    note = message.get(HOST)
    return note if isinstance(note, dict) else {}  # type: ignore[return-value]


def noted(message: Message, **changes: Any) -> Message:
    """A copy of `message` whose host note also holds `changes`; the input is not touched."""
    note = message.get(HOST)  # asked of every new message, many times: without a call
    copy: dict[str, Any] = {**message, HOST: {**note, **changes} if isinstance(note, dict) else changes}
    return copy  # type: ignore[return-value]


def wire(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message as a provider may see it: every key but the host's."""
    seen = {**message}
    seen.pop(HOST, None)
    return seen


def noted_tokens(messages: Iterable[Message]) -> int:
    """Return the tokens of messages by the counts noted on them; a message without a count adds none."""
    total = 0
    for message in messages:
        note = message.get(HOST)  # the same
        total += note.get("tokens", 0) if isinstance(note, dict) else 0
    return total


def same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two messages say the same to a model, whatever the host noted on them."""
    return wire(one) == wire(other)


def ends(text: str, edge: int) -> str:
    """The part of a text that is read: all of it, or the two ends of a long text, `edge` characters each."""
    return text if len(text) <= 2 * edge else f"{text[:edge]}\n{text[-edge:]}"


def text_of(message: Mapping[str, Any]) -> str:
    """All the text of a message's content; "" for none and for shapes that hold no text."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_part_texts(content))
    if content is None:
        return ""
    return str(content)


def says_nothing(message: Mapping[str, Any]) -> bool:
    """Whether a message of a person or the model has no words, calls, pictures or anything else to send.
    Providers refuse such messages."""
    if message.get("role") not in ("user", "assistant") or message.get("tool_calls") or message.get("refusal"):
        return False
    content: Any = message.get("content")
    if isinstance(content, list):
        return not text_of(message).strip() and all(part.get("type", "text") == "text" for part in _typed(content))
    return content is None or not str(content).strip()


def said_in(message: Mapping[str, Any]) -> str:
    """The words of a person or the model, without the texts of files; their names stay, and so do spoken words."""
    note = note_of(message)
    said, files = note.get("said"), note.get("files")
    if not isinstance(said, str):
        return text_of(message)
    named = (file.get(name) for file in files or () if isinstance(file, Mapping) for name in ("words", "name"))
    return "\n".join(each for each in (said, *named) if isinstance(each, str) and each)


def own_words(message: Mapping[str, Any]) -> str:
    """Return the words that a person wrote or spoke: no files, nothing forwarded or quoted."""
    note = note_of(message)
    own, said, files = note.get("own"), note.get("said"), note.get("files")
    if isinstance(own, str):
        return own
    if not isinstance(said, str):
        return text_of(message)
    spoken = (file.get("words") for file in files or () if isinstance(file, Mapping))
    return "\n".join(each for each in (said, *spoken) if isinstance(each, str) and each)


def _typed(parts: Iterable[Any]) -> Iterable[Mapping[str, Any]]:
    return (part for part in parts if isinstance(part, Mapping))


def _part_texts(parts: Iterable[Any]) -> Iterable[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping) and isinstance(part.get("text"), str):
            yield part["text"]


def is_summary(message: Mapping[str, Any]) -> bool:
    """Whether a compaction wrote this message."""
    return bool(note_of(message).get("summary"))


def summaries_in(messages: Iterable[Message]) -> list[Message]:
    """The messages that a compaction wrote."""
    # Asked of whole transcripts: without a call for each message.
    return [each for each in messages if isinstance(note := each.get(HOST), dict) and note.get("summary")]


def is_request(message: Mapping[str, Any]) -> bool:
    """Whether a person said this: a user message that is not (only) a summary."""
    note = note_of(message)
    return message.get("role") == "user" and (not note.get("summary") or bool(note.get("merged")))


def answer_mark(text: str) -> str:
    """A short hash of an answer, which tells apart several answers to the same words."""
    return sha256(text.strip().encode(errors="replace")).hexdigest()[:8]


def behind(messages: Sequence[Message], event: str) -> tuple[int, str] | None:
    """Where the exchange ends that began with an event's message, and the mark of its answer; None if it is not there.
    If the same words were asked again, whose event has a number at its end, the last ones are found."""
    end, mark = len(messages), ""
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        if message["role"] == "assistant" and not mark:
            mark = answer_mark(text_of(message))
        elif message["role"] != "assistant" and (known := note_of(message).get("event", "")):
            if is_of(known, event):
                return end, mark
            end, mark = at, ""
    return None


def last_event(messages: Sequence[Message]) -> str | None:
    """The event of the last message that a person, or their program, sent; None: none has one."""
    for message in reversed(messages):
        if message["role"] != "assistant" and (event := note_of(message).get("event")) and ":" not in event:
            return event
    return None


def is_of(event: str, name: str) -> bool:
    """Whether this event has a name, or is the same asked again."""
    return event == name or event.startswith(f"{name}-")


def last_requests(messages: Sequence[Message], count: int) -> list[int]:
    """The positions of the last `count` requests, in order. One that a summary was merged into is left out,
    because a cut there would cut the summary."""
    newest_first = range(len(messages) - 1, -1, -1)
    found = (at for at in newest_first if is_request(messages[at]) and not note_of(messages[at]).get("merged"))
    return list(islice(found, count))[::-1]


# -- handles -------------------------------------------------------------------------------------------


_HANDLE: Final = re.compile(r"(?<![\w#&/])#(\d{1,20}(?:p\d\d)?)\b")


def handle(message_id: str) -> str:
    """The handle of a message."""
    return f"#{message_id}"


def named_in(text: str) -> list[str]:
    """The handles in a text."""
    return [f"#{found}" for found in _HANDLE.findall(text)]


def message_named(text: str) -> str | None:
    """The id of the message that a text names by its handle, with or without the mark; None: it names none."""
    found = _HANDLE.fullmatch(text if text.startswith("#") else f"#{text}")
    return found[1] if found else None
