"""Claude's export: `chat_messages` in their order, each with blocks of text, tool calls and their results.

Source: the files of an export of 2026, and https://github.com/Sinity/polylogue (docs/providers/claude-ai.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, BinaryIO, Final

from gateway.domain.chat import one_line
from gateway.domain.message import Message
from gateway.store.imports.arrays import NO_CONVERSATION, elements
from gateway.store.imports.past import Past, Tally, call, moment, returned, said, title_text, whole, words

_ROLES: Final = {"human": "user", "user": "user", "assistant": "assistant"}
_THOUGHTS: Final = ("thinking", "redacted_thinking")
_PLACEHOLDER: Final = "This block is not supported on your current device yet."


def conversations(file: BinaryIO, tally: Tally) -> Iterator[Past]:
    """The conversations of one conversations.json."""
    return filter(None, map(partial(_conversation, tally), elements(file, tally)))


def _conversation(tally: Tally, entry: Any) -> Past | None:
    messages = entry.get("chat_messages") if isinstance(entry, Mapping) else None
    if not isinstance(messages, list):
        tally.leave_out(NO_CONVERSATION)
        return None
    past = Past(
        source=str(entry.get("uuid") or ""),
        title=title_text(entry.get("name")),
        started_at=moment(entry.get("created_at")),
        model=str(entry.get("model") or ""),
        messages=tuple(_messages(messages, tally)),
    )
    return whole(past, tally)


def _messages(messages: list[Any], tally: Tally) -> Iterator[Message]:
    for message in messages:
        role = _ROLES.get(str(message.get("sender"))) if isinstance(message, Mapping) else None
        if role is None:
            tally.leave_out("messages of an unknown kind")
            continue
        at, blocks = moment(message.get("created_at")), message.get("content")
        if role == "user":
            text = words([each for each in blocks if _is_text(each)]) if isinstance(blocks, list) else ""
            yield said("user", _with_files(text or words(message.get("text")), message), at)
        elif not isinstance(blocks, list) or not blocks:
            yield said("assistant", words(message.get("text")), at)
        else:
            yield from _answer(blocks, at, tally)


def _is_text(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type", "text") == "text" and words(block) != _PLACEHOLDER


def _answer(blocks: list[Any], at: float | None, tally: Tally) -> Iterator[Message]:
    """An answer and what it did on the way: text and calls, then their results, then text again."""
    texts: list[str] = []
    calls: list[Mapping[str, Any]] = []
    results: list[Mapping[str, Any]] = []

    def step() -> Iterator[Message]:
        made = [call(each.get("id"), each.get("name"), each.get("input")) for each in calls]
        if texts or made:
            yield said("assistant", "\n\n".join(texts), at, made)
        for each in results:
            yield returned(each.get("tool_use_id"), each.get("name"), words(each.get("content")), at)

    for block in blocks:
        kind = block.get("type") if isinstance(block, Mapping) else None
        if kind == "tool_result":
            results.append(block)
        elif kind in _THOUGHTS:
            tally.leave_out("thoughts of the model")
        elif kind == "tool_use" or _is_text(block):
            if results:
                yield from step()
                texts, calls, results = [], [], []
            if kind == "tool_use":
                calls.append(block)
            elif text := words(block):
                texts.append(text)
        else:
            tally.leave_out("parts of an unknown kind")
    yield from step()


def _with_files(text: str, message: Mapping[str, Any]) -> str:
    """A person's words, with the texts of the files that came with them, and the names of the others."""
    pieces = [text] if text.strip() else []
    for kind in ("attachments", "files"):
        for each in message.get(kind) or ():
            if isinstance(each, Mapping):
                name = one_line(str(each.get("file_name") or "")) or "a file"
                held = each.get("extracted_content")
                pieces.append(f"[{name}]\n{held}" if isinstance(held, str) and held.strip() else f"[{name}]")
    return "\n\n".join(pieces)
