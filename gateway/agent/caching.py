"""A request's messages, and where the marks of prompt caching go for models that want them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final

from gateway.domain.message import HOST, Message
from gateway.providers.base import ModelSpec

BEFORE: Final = 1  # messages of a request in front of the conversation's: the system prompt
_MARKED_MESSAGES = 3  # the last ones, beside the system prompt: four marks are allowed in all


def prompt(system_prompt: str, messages: Iterable[Message], spec: ModelSpec) -> list[Message]:
    """What a model is sent of a conversation: always the same for the same messages."""
    whole: list[Message] = [{"role": "system", "content": system_prompt}, *messages]
    return with_marks(whole, spec.cache_ttl) if spec.cache_marks else whole


def with_marks(messages: Sequence[Message], ttl: str) -> list[Message]:
    """A copy of the request's messages with marks on the system prompt and on the last three others
    that can carry one; the input is not touched."""
    mark: dict[str, str] = {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}
    marked = list(messages)
    # From either end only as far as needed: the cost of a mark must not grow with the conversation.
    able = (i for i, message in enumerate(messages) if message["role"] == "system" and _can_carry(message))
    last = (i for i in range(len(messages) - 1, -1, -1) if messages[i]["role"] != "system" and _can_carry(messages[i]))
    for index in (*islice(able, 1), *islice(last, _MARKED_MESSAGES)):
        marked[index] = _marked(marked[index], mark)
    return marked


def _can_carry(message: Message) -> bool:
    return message["role"] != "tool" and bool(message.get("content"))


def _marked(message: Message, mark: dict[str, str]) -> Message:
    content = message.get("content")
    parts: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])
    if isinstance(parts[-1], dict):
        parts[-1] = {**parts[-1], "cache_control": mark}
    copy: dict[str, Any] = {key: value for key, value in message.items() if key != HOST}
    copy["content"] = parts
    return copy  # type: ignore[return-value]
