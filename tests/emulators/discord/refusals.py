"""Discord's refusals: a status and `{"message", "code", "errors"}`.

Source: https://discord.com/developers/docs/topics/opcodes-and-status-codes#json. The codes and their wording are
Discord's, because clients and bots decide by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

MESSAGES: Final = {
    0: "401: Unauthorized",
    10003: "Unknown Channel",
    10004: "Unknown Guild",
    10008: "Unknown Message",
    10013: "Unknown User",
    10014: "Unknown Emoji",
    10015: "Unknown Webhook",
    10062: "Unknown interaction",
    20016: "This action cannot be performed due to slowmode rate limit",
    30034: "Max number of daily application command creates has been reached (200)",
    30046: "Maximum number of edits to messages older than 1 hour reached. Try again later",
    40005: "Request entity too large",
    40060: "Interaction has already been acknowledged.",
    40094: "This interaction has hit the maximum number of follow up messages.",
    50001: "Missing Access",
    50005: "Cannot edit a message authored by another user",
    50006: "Cannot send an empty message",
    50007: "Cannot send messages to this user",
    50008: "Cannot send messages in a non-text channel",
    50013: "Missing Permissions",
    50024: "Cannot execute action on this channel type",
    50027: "Invalid Webhook Token",
    50035: "Invalid Form Body",
    50083: "Thread is archived",
    50109: "The request body contains invalid JSON.",
    160004: "A thread has already been created for this message",
}


class Refusal(Exception):
    """A request that fails. `errors` names the fields of an invalid form, as nested objects."""

    def __init__(
        self,
        status: int,
        code: int,
        message: str = "",
        *,
        errors: Mapping[str, Any] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message or MESSAGES.get(code, ""))
        self.status, self.code = status, code
        self.errors, self.more = errors, dict(more or {})

    def body(self) -> dict[str, Any]:
        """The JSON of the answer."""
        body: dict[str, Any] = {"message": str(self), "code": self.code, **self.more}
        return {**body, "errors": self.errors} if self.errors else body


def not_found(code: int) -> Refusal:
    """There is no such thing."""
    return Refusal(404, code)


def forbidden(code: int) -> Refusal:
    """The bot may not."""
    return Refusal(403, code)


def bad(code: int) -> Refusal:
    """The request makes no sense."""
    return Refusal(400, code)


def invalid(path: str, code: str, message: str) -> Refusal:
    """An invalid form: `path` names the field by names and numbers with dots between."""
    errors: dict[str, Any] = {"_errors": [{"code": code, "message": message}]}
    for name in reversed(path.split(".")):
        errors = {name: errors}
    return Refusal(400, 50035, errors=errors)


def too_long(path: str, most: int) -> Refusal:
    """A text with too many characters."""
    return invalid(path, "BASE_TYPE_MAX_LENGTH", f"Must be {most} or fewer in length.")


def bad_length(path: str, least: int, most: int) -> Refusal:
    """A text or list that is too short or too long."""
    return invalid(path, "BASE_TYPE_BAD_LENGTH", f"Must be between {least} and {most} in length.")


def missing(path: str) -> Refusal:
    """A field that must be there."""
    return invalid(path, "BASE_TYPE_REQUIRED", "This field is required")


def bad_choice(path: str, message: str) -> Refusal:
    """A value that is none of the possible ones."""
    return invalid(path, "BASE_TYPE_CHOICES", message)
