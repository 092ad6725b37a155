"""The answers of the LLM emulator, well-behaved or not.

A reply hook is `Callable[[dict], Answer]`: it gets the request's body and returns one of the
classes below. `echo`, `Script` and `summarising` are ready-made hooks.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.domain.message import text_of
from gateway.domain.notes import TITLE_REQUEST
from gateway.providers.offline.model import is_memory_request, is_summary_request
from gateway.providers.offline.notes import checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A proper answer. `tool_calls` are (name, arguments) pairs.

    `blocks`: what the API says beside it, in its own form (redacted thoughts, its own tools).
    `hold`: an event to wait for once `hold_after` deltas were sent (0: before anything is), so
    that a test decides when the model goes on. `usage`: None counts, {} reports nothing.
    """

    text: str = ""
    tool_calls: Sequence[tuple[str, Mapping[str, Any]]] = ()
    reasoning: str = ""
    blocks: Sequence[Mapping[str, Any]] = ()
    finish: str | None = None
    usage: Mapping[str, Any] | None = None
    hold: asyncio.Event | None = None
    hold_after: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """An HTTP error; `body` is JSON text or anything else."""

    status: int
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hang:
    """No answer ever; ends when the client gives up or the server closes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The connection drops after `after` deltas of `text`; `tidy`: it is closed properly, and only
    the end of the answer is missing."""

    text: str = "This answer never comes to its end, sorry."
    after: int = 2
    tidy: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Garbage:
    """A 200 whose body is not what was asked for."""

    body: str | bytes = "<html><body>Welcome to nginx!</body></html>"
    content_type: str = "text/html"

    @property
    def bytes(self) -> bytes:
        """The body as it is sent."""
        return self.body if isinstance(self.body, bytes) else self.body.encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyChoices:
    """A proper envelope with nothing in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorInside:
    """A 200 that carries an error object, after `after` deltas of text when streaming."""

    error: Mapping[str, Any]
    after: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowLoris:
    """Bytes that never add up to an answer: one of `said`, over and over, every `interval` seconds."""

    interval: float = 0.01
    said: bytes = b": still thinking\n"


Answer = Reply | Refuse | Hang | Cut | Garbage | EmptyChoices | ErrorInside | SlowLoris
Hook = Callable[[dict[str, Any]], Answer]


def error_body(message: str, *, kind: str = "invalid_request_error", code: str | None = None) -> str:
    """An error as the real API writes it."""
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}})


def rate_limited(retry_after: float | None = 1) -> Refuse:
    """A 429 that says how long to wait."""
    headers = {} if retry_after is None else {"Retry-After": f"{retry_after:g}"}
    body = error_body("Rate limit reached for requests per min (RPM).", kind="requests", code="rate_limit_exceeded")
    return Refuse(status=429, body=body, headers=headers)


def server_error(status: int = 500) -> Refuse:
    """A failure of the server's own."""
    return Refuse(status=status, body=error_body("The server had an error while processing.", kind="server_error"))


def unauthorized() -> Refuse:
    """A key that is not known."""
    return Refuse(status=401, body=error_body("Incorrect API key provided.", code="invalid_api_key"))


def last_user_text(body: Mapping[str, Any]) -> str:
    """The newest text of a person in a request."""
    said = [message for message in body.get("messages", ()) if message.get("role") == "user"]
    return text_of(said[-1]) if said else ""


def is_turn(body: Mapping[str, Any]) -> bool:
    """Whether a request is one of a conversation, and not one beside it, for a summary, the memory or a title."""
    messages = body["messages"]
    return not (is_summary_request(messages) or is_memory_request(messages) or is_title_request(messages))


def is_title_request(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a request asks for the title of a session."""
    return TITLE_REQUEST in str(messages[:1])


def echo(body: dict[str, Any]) -> Answer:
    """Say what was said."""
    return Reply(text=f"echo: {last_user_text(body)}")


class Script:
    """Answers in order, then those of `then`. More can be added at any time."""

    def __init__(self, *answers: Answer, then: Hook = echo) -> None:
        self.answers: deque[Answer] = deque(answers)
        self._then = then

    def add(self, *answers: Answer) -> None:
        """Append answers to the script."""
        self.answers.extend(answers)

    def __call__(self, body: dict[str, Any]) -> Answer:
        return self.answers.popleft() if self.answers else self._then(body)


def by_hand(body: dict[str, Any]) -> Answer:
    """For people who try things: a word at the beginning of a message says what goes wrong, the rest is echoed.

    "call NAME {…}" calls a tool twice at once, "think" thinks aloud, "tag" thinks inside the text, "429", "503" and
    "529" refuse with a Retry-After, "cut", "hang" and "slow" break off, fall silent and drip, "page" answers with a web
    page, "long" has no room for the prompt, "refuse tools", "refuse stream" and "refuse system" want less."""
    last = body["messages"][-1]
    if last["role"] == "tool":
        return Reply(text=f"The tool says: {text_of(last)}")
    word, _, rest = last_user_text(body).partition(" ")
    if word == "call":
        name, _, arguments = rest.partition(" ")
        call = (name or "clock", json.loads(arguments or "{}"))
        return Reply(reasoning="A tool is asked for.", text="I look.", tool_calls=[call, call])
    first = body["messages"][0]["role"]
    wants = {"tools": bool(body.get("tools")), "stream": body.get("stream") is True, "system": first == "system"}
    if word == "refuse" and wants.get(rest):
        return Refuse(status=400, body=error_body(_PICKY[rest]))
    return _FAULTS.get(word) or echo(body)


_PICKY: Mapping[str, str] = {
    "tools": "This model does not support tools.",
    "stream": "Your organization must be verified to stream this model.",
    "system": "System role not supported.",
}
_WAIT: Mapping[str, str] = {"Retry-After": "2"}
_FAULTS: Mapping[str, Answer] = {
    "think": Reply(reasoning="Let me think about it.", text="I thought about it."),
    "tag": Reply(text="Let me think about it.\n</think>\n\nI thought about it."),
    "429": Refuse(status=429, body=error_body("Rate limit reached for requests per min (RPM)."), headers=_WAIT),
    "503": Refuse(status=503, body=error_body("The engine is temporarily unavailable."), headers=_WAIT),
    "529": Refuse(status=529, body=error_body("Overloaded", kind="overloaded_error"), headers=_WAIT),
    "cut": Cut(),
    "hang": Hang(),
    "slow": SlowLoris(interval=0.1),
    "page": Garbage(),
    "long": Refuse(status=400, body=error_body("prompt is too long: 300000 tokens > 200000 maximum")),
}


def calling(name: str, arguments: Mapping[str, Any], *, then: Hook = echo) -> Script:
    """One call of a tool, then `then`."""
    return Script(Reply(tool_calls=[(name, arguments)]), then=then)


def summarising(other: Hook = echo) -> Hook:
    """Extractive summaries for summariser prompts, nothing to remember; `other` answers everything else."""

    def hook(body: dict[str, Any]) -> Answer:
        messages = body["messages"]
        if is_memory_request(messages):
            return Reply(text="Nothing.")
        if not is_summary_request(messages):
            return other(body)
        cap = body.get("max_tokens") or body.get("max_completion_tokens")
        return Reply(text=checkpoint(messages, max_tokens=cap, count=lambda text: len(text) // 3))

    return hook
