"""Claude's export: `chat_messages`, each with blocks of text, tool calls and their results, and with the message that
it answers (`parent_message_uuid`): an edited question and a second answer are branches of a tree.

Source: the files of an export of 2026, and https://github.com/Sinity/polylogue (docs/providers/claude-ai.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gateway.app.imports.past import (
    Node,
    Past,
    Tally,
    branch,
    call,
    moment,
    objects,
    returned,
    said,
    title_text,
    with_files,
    words,
)
from gateway.domain.message import Message

_ROLES: Final = {"human": "user", "user": "user", "assistant": "assistant"}
_THOUGHTS: Final = ("thinking", "redacted_thinking")
_ROOT: Final = "00000000-0000-4000-8000-000000000000"  # what the first message answers
_PLACEHOLDER: Final = "This block is not supported on your current device yet."


def is_one(entry: Mapping[str, Any]) -> bool:
    """Whether this is a conversation of Claude's."""
    return isinstance(entry.get("chat_messages"), list)


def conversation(entry: Mapping[str, Any], tally: Tally) -> Past:
    """One conversation as it was said."""
    return Past(
        source=str(entry.get("uuid") or ""),
        title=title_text(entry.get("name")),
        started_at=moment(entry.get("created_at")),
        model=str(entry.get("model") or ""),
        messages=tuple(_messages(_path(entry, tally), tally)),
    )


def _path(entry: Mapping[str, Any], tally: Tally) -> list[Mapping[str, Any]]:
    """The messages of the branch that was in view last. Older exports have a list instead of a tree: a message that
    names no other one answers the one before."""
    given, found = entry["chat_messages"], dict[str, Mapping[str, Any]]()
    nodes, before = dict[str, Node](), ""
    for place, message in enumerate(objects(given)):
        name, parent = str(message.get("uuid") or place), message.get("parent_message_uuid")
        name = f"{name} {place}" if name in found else name
        answered = parent if isinstance(parent, str) and (parent == _ROOT or parent in found) else before
        found[name], nodes[name], before = message, Node(answered, message.get("created_at")), name
    tally.leave_out("messages of an unknown kind", len(given) - len(found))
    return [found[name] for name in branch(nodes, entry.get("current_leaf_message_uuid"), tally)]


def _messages(messages: list[Mapping[str, Any]], tally: Tally) -> Iterator[Message]:
    for message in messages:
        role = _ROLES.get(str(message.get("sender")))
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
    files = [*objects(message.get("attachments")), *objects(message.get("files"))]
    return with_files(text, ((each.get("file_name"), each.get("extracted_content")) for each in files))
