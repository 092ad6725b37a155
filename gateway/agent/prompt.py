"""The system prompt: built when a session opens, stored with it, then byte-identical."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gateway.context.prompts import SYSTEM_NOTE
from gateway.domain.chat import ChatType
from gateway.domain.session import Todo

_IDENTITY = (
    "You are Legato, an assistant people talk to in a chat. Be accurate, warm and brief; answer in the language of "
    "the person. Say plainly when you do not know or could not do something."
)
_HISTORY = (
    "This conversation may be far older than what you see of it. The original wording of everything that was said is "
    "kept: look it up with `search_history` before you say that you do not remember."
)
_SHARED = (
    "Several people share this conversation. Each of their messages begins with the speaker's name in square brackets; "
    "do not begin your own messages like that."
)
_PLATFORM_HINTS: Mapping[str, str] = {
    "console": "The person reads you in a terminal: plain text, short lines, no tables wider than 80 characters.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBuilder:
    """What every prompt of this gateway shares. `context_files` are (name, text) pairs."""

    persona: str | None = None
    context_files: Sequence[tuple[str, str]] = field(default=())
    tool_names: Sequence[str] = ()

    def build(
        self, *, platform: str, chat_type: ChatType, shared: bool, compacted: bool, todos: Sequence[Todo] = ()
    ) -> str:
        """The system prompt of a session that opens now; nothing in it depends on the time."""
        parts = [self.persona or _IDENTITY]
        parts += [f"# {name}\n{text.strip()}" for name, text in self.context_files]
        if hint := _PLATFORM_HINTS.get(platform):
            parts.append(hint)
        if shared and chat_type != "direct":
            parts.append(_SHARED)
        if "search_history" in self.tool_names:
            parts.append(_HISTORY)
        if compacted:
            parts.append(SYSTEM_NOTE)
        open_items = [todo.text for todo in todos if todo.status == "open"]
        if compacted and open_items:
            listed = "\n".join(f"- {item}" for item in open_items)
            parts.append(f"Open items of your to-do list when the earlier turns were condensed:\n{listed}")
        return "\n\n".join(parts)
