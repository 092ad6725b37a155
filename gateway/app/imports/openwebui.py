"""Open WebUI's export ("Export All Chats", or one chat): `chat.history` is a tree of messages by id, `currentId` the
end of the branch that was in view; chats of its first versions have the list `chat.messages` alone. What the model
thought and which tools it used stands as HTML within its words: `<details type="reasoning">`, `<details
type="tool_calls">`.

Source: https://github.com/open-webui/open-webui (`Chats`, `serialize_output`), as of 2026.
"""

from __future__ import annotations

import html
import re
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

_DETAILS: Final = re.compile(r'<details type="(reasoning|tool_calls|code_interpreter)"([^<>]*)>')
_ATTRIBUTE: Final = re.compile(r'\b(\w+)="([^"]*)"')
_SUMMARY: Final = re.compile(r"\A\s*<summary>[^<]*</summary>")
_END: Final = "</details>"


def is_one(entry: Mapping[str, Any]) -> bool:
    """Whether this is a chat of Open WebUI's."""
    chat = _chat(entry)
    return isinstance(chat.get("history"), Mapping) or (chat is not entry and isinstance(chat.get("messages"), list))


def conversation(entry: Mapping[str, Any], tally: Tally) -> Past:
    """One conversation as it was said."""
    chat = _chat(entry)
    models = chat.get("models")
    return Past(
        source=str(entry.get("id") or chat.get("id") or ""),
        title=title_text(entry.get("title") or chat.get("title")),
        started_at=moment(entry.get("created_at") or chat.get("timestamp")),
        model=str(models[0]) if isinstance(models, list) and models else "",
        messages=tuple(_messages(_path(chat, tally), tally)),
    )


def _chat(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = entry.get("chat")
    return inner if isinstance(inner, Mapping) else entry


def _path(chat: Mapping[str, Any], tally: Tally) -> list[Mapping[str, Any]]:
    history = chat.get("history")
    tree = history.get("messages") if isinstance(history, Mapping) else None
    if not isinstance(history, Mapping) or not isinstance(tree, Mapping) or not tree:
        return objects(chat.get("messages"))
    found = {name: each for name, each in tree.items() if isinstance(each, Mapping)}
    nodes = {name: Node(each.get("parentId"), each.get("timestamp")) for name, each in found.items()}
    return [found[name] for name in branch(nodes, history.get("currentId"), tally)]


def _messages(path: list[Mapping[str, Any]], tally: Tally) -> Iterator[Message]:
    for number, message in enumerate(path):
        role, at, text = message.get("role"), moment(message.get("timestamp")), words(message.get("content"))
        if role == "user":
            yield said("user", with_files(text, map(_file, objects(message.get("files")))), at)
        elif role == "assistant":
            yield from _answer(text, at, f"call {number}", tally)
        else:
            tally.leave_out("instructions and settings" if role == "system" else "messages of an unknown kind")


def _file(file: Mapping[str, Any]) -> tuple[Any, Any]:
    inner = file.get("file")
    data = inner.get("data") if isinstance(inner, Mapping) else None
    return file.get("name") or file.get("type"), data.get("content") if isinstance(data, Mapping) else None


def _answer(text: str, at: float | None, name: str, tally: Tally) -> Iterator[Message]:
    """An answer and what it did on the way: text and a call, then its result, then text again."""
    before, start = "", 0
    while opens := _DETAILS.search(text, start):
        ends = text.find(_END, opens.end())
        if ends < 0:
            break
        before += text[start : opens.start()]
        start = ends + len(_END)
        if opens[1] == "reasoning":
            tally.leave_out("thoughts of the model")
            continue
        facts = {each[1]: html.unescape(each[2]) for each in _ATTRIBUTE.finditer(opens[2])}
        inside = html.unescape(_SUMMARY.sub("", text[opens.end() : ends]).strip())
        is_code = opens[1] == "code_interpreter"
        arguments, result = (inside, facts.get("output")) if is_code else (facts.get("arguments"), facts.get("result"))
        call_id = f"{name}.{start}"
        yield said("assistant", before.strip(), at, [call(call_id, facts.get("name") or opens[1], arguments or {})])
        yield returned(call_id, facts.get("name"), result or ("" if is_code else inside), at)
        before = ""
    if rest := (before + text[start:]).strip():
        yield said("assistant", rest, at)
