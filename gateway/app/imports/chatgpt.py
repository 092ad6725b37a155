"""ChatGPT's export: `mapping` is a tree of messages by id, `current_node` the end of the branch that was in view.

Source: the files of an export of 2026, and https://whychose.com/seo/chatgpt-conversations-json-format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gateway.app.imports.past import Node, Past, Tally, branch, call, moment, returned, said, title_text, words
from gateway.domain.message import Message

_THOUGHTS: Final = ("thoughts", "reasoning_recap")
_SETTINGS: Final = ("user_editable_context", "model_editable_context")
_EVERYBODY: Final = ("all", "", None)  # a message to anybody else is a call of that tool


def is_one(entry: Mapping[str, Any]) -> bool:
    """Whether this is a conversation of ChatGPT's."""
    return isinstance(entry.get("mapping"), Mapping)


def conversation(entry: Mapping[str, Any], tally: Tally) -> Past:
    """One conversation as it was said."""
    nodes = {name: node for name, node in entry["mapping"].items() if isinstance(node, Mapping)}
    spoken = {name: node["message"] for name, node in nodes.items() if isinstance(node.get("message"), Mapping)}
    tree = {name: Node(node.get("parent"), spoken.get(name, {}).get("create_time")) for name, node in nodes.items()}
    path = [spoken[name] for name in branch(tree, entry.get("current_node"), tally) if name in spoken]
    return Past(
        source=str(entry.get("conversation_id") or entry.get("id") or ""),
        title=title_text(entry.get("title")),
        started_at=moment(entry.get("create_time")),
        model=str(entry.get("default_model_slug") or ""),
        messages=tuple(_messages(path, tally)),
    )


def _messages(path: list[Mapping[str, Any]], tally: Tally) -> Iterator[Message]:
    called = ""  # the tool of the call before
    for number, message in enumerate(path):
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
        elif role == "assistant" and to not in _EVERYBODY and _answered(path, number):
            called = f"call {number}"
            yield said("assistant", "", at, [call(called, to, text)])
        elif role == "assistant":
            yield said("assistant", text, at)
        elif role == "tool":
            yield returned(called, author.get("name"), text, at)
        else:
            tally.leave_out("messages of an unknown kind")


def _answered(path: list[Mapping[str, Any]], number: int) -> bool:
    """Whether what a tool returned follows. The tool may speak again: that is text then."""
    return number + 1 < len(path) and _inner(path[number + 1], "author").get("role") == "tool"


def _inner(message: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = message.get(name)
    return value if isinstance(value, Mapping) else {}
