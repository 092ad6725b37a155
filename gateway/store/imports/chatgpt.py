"""ChatGPT's export: `mapping` is a tree of messages by id, `current_node` the end of the branch that was in view.

Source: the files of an export of 2026, and https://whychose.com/seo/chatgpt-conversations-json-format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, BinaryIO, Final

from gateway.domain.message import Message
from gateway.store.imports.arrays import NO_CONVERSATION, elements
from gateway.store.imports.past import Past, Tally, call, moment, returned, said, title_text, whole, words

_THOUGHTS: Final = ("thoughts", "reasoning_recap")
_SETTINGS: Final = ("user_editable_context", "model_editable_context")
_EVERYBODY: Final = ("all", "", None)  # a message to anybody else is a call of that tool


def conversations(file: BinaryIO, tally: Tally) -> Iterator[Past]:
    """The conversations of one conversations.json."""
    return filter(None, map(partial(_conversation, tally), elements(file, tally)))


def _conversation(tally: Tally, entry: Any) -> Past | None:
    mapping = entry.get("mapping") if isinstance(entry, Mapping) else None
    if not isinstance(mapping, Mapping):
        tally.leave_out(NO_CONVERSATION)
        return None
    branch = _branch(mapping, entry.get("current_node"))
    spoken = sum(1 for node in mapping.values() if _message(node) is not None)
    tally.leave_out("messages of other branches", spoken - len(branch))
    past = Past(
        source=str(entry.get("conversation_id") or entry.get("id") or ""),
        title=title_text(entry.get("title")),
        started_at=moment(entry.get("create_time")),
        model=str(entry.get("default_model_slug") or ""),
        messages=tuple(_messages(branch, tally)),
    )
    return whole(past, tally)


def _message(node: Any) -> Mapping[str, Any] | None:
    message = node.get("message") if isinstance(node, Mapping) else None
    return message if isinstance(message, Mapping) else None


def _branch(mapping: Mapping[str, Any], end: Any) -> list[Mapping[str, Any]]:
    """The messages from the root to the node that was in view; without one, to the last leaf."""
    if not isinstance(end, str) or end not in mapping:
        leaves = [name for name, node in mapping.items() if isinstance(node, Mapping) and not node.get("children")]
        end = leaves[-1] if leaves else None
    branch: list[Mapping[str, Any]] = []
    seen: set[str] = set()
    while isinstance(end, str) and end in mapping and end not in seen:  # a damaged tree may lead back
        seen.add(end)
        node = mapping[end]
        if (message := _message(node)) is not None:
            branch.append(message)
        end = node.get("parent") if isinstance(node, Mapping) else None
    return branch[::-1]


def _messages(branch: list[Mapping[str, Any]], tally: Tally) -> Iterator[Message]:
    called = ""  # the tool of the call before
    for number, message in enumerate(branch):
        author, content, facts = (_inner(message, name) for name in ("author", "content", "metadata"))
        role, kind, at = author.get("role"), content.get("content_type"), moment(message.get("create_time"))
        to = message.get("recipient")
        text = words(content.get("parts", content))
        if role == "system" or kind in _SETTINGS or facts.get("is_visually_hidden_from_conversation"):
            tally.leave_out("instructions and settings", int(bool(text.strip())))
        elif kind in _THOUGHTS:
            tally.leave_out("thoughts of the model")
        elif role == "user":
            yield said("user", text, at)
        elif role == "assistant" and to not in _EVERYBODY and _answered(branch, number):
            called = f"call {number}"
            yield said("assistant", "", at, [call(called, to, text)])
        elif role == "assistant":
            yield said("assistant", text, at)
        elif role == "tool":
            yield returned(called, author.get("name"), text, at)
        else:
            tally.leave_out("messages of an unknown kind")


def _answered(branch: list[Mapping[str, Any]], number: int) -> bool:
    """Say whether what a tool returned follows. The tool may speak again: that is text then."""
    return number + 1 < len(branch) and _inner(branch[number + 1], "author").get("role") == "tool"


def _inner(message: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = message.get(name)
    return value if isinstance(value, Mapping) else {}
