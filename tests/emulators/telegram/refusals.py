"""The refusals of the Bot API: `{"ok": false, "error_code", "description", "parameters"}`.

The wording is Telegram's, because clients and bots decide by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TITLES = {400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 409: "Conflict"}


class Refusal(Exception):
    """A call that fails. `code` is the HTTP status too; `parameters` may hold `retry_after` or `migrate_to_chat_id`."""

    def __init__(self, code: int, description: str, parameters: Mapping[str, int] | None = None) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = dict(parameters or {})

    def body(self) -> dict[str, Any]:
        """The JSON of the answer."""
        body: dict[str, Any] = {"ok": False, "error_code": self.code, "description": self.description}
        return {**body, "parameters": self.parameters} if self.parameters else body


def refusal(code: int, reason: str) -> Refusal:
    """A refusal with the title of its code in front. The reason's first letter becomes small, unless it begins a
    constant such as `BUTTON_DATA_INVALID`."""
    constant = len(reason) > 1 and (reason[1] == "_" or "A" <= reason[1] <= "Z")
    return Refusal(code, f"{_TITLES[code]}: {reason if constant else reason[:1].lower() + reason[1:]}")


def bad(reason: str) -> Refusal:
    """A 400."""
    return refusal(400, reason)


def forbidden(reason: str) -> Refusal:
    """A 403."""
    return refusal(403, reason)


def conflict(reason: str) -> Refusal:
    """A 409: two readers, or a reader beside a webhook."""
    return Refusal(409, f"Conflict: {reason}")


def too_many(retry_after: int) -> Refusal:
    """A 429."""
    return Refusal(429, f"Too Many Requests: retry after {retry_after}", {"retry_after": retry_after})


def migrated(to: int) -> Refusal:
    """The group has become a supergroup, whose id is in the parameters."""
    return Refusal(400, "Bad Request: group chat was upgraded to a supergroup chat", {"migrate_to_chat_id": to})
