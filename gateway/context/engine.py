"""`ContextEngine`: the port of everything that keeps a transcript inside its budget.

The host calls `on_session_start` first. For every provider call it then calls `update_from_response` with the
reported usage, and `should_compress` before the next call; it calls `compress` when the engine asks for that. It
calls `on_session_end` at the real end of the session, and not when a compaction continues the session: once, and again
later if the method raised, exited or took longer than two minutes. State that must survive a restart goes through
`dump_state`.

Any method may be a plain function or a coroutine function, and may leave out the optional parameters that it does
not use. An engine that raises never breaks a turn.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from gateway.domain.message import Message


class ModelText(str):
    """The text of a model's answer, with its circumstances.

    To any engine it is a plain str. `stop`: why the model stopped, as in `providers.base.StopReason`. `failed_model`:
    the auxiliary model that failed before another one answered.
    """

    __slots__ = ("failed_model", "stop")
    stop: str
    failed_model: str | None

    def __new__(cls, text: str, *, stop: str = "stop", failed_model: str | None = None) -> ModelText:
        """Make a text with its circumstances."""
        made = super().__new__(cls, text)
        made.stop = stop
        made.failed_model = failed_model
        return made


class Outcome(Struct, frozen=True, kw_only=True):
    """The outcome of the last `compress`, for the host to tell the person.

    `fallback`: rules made the summary instead of a model. `dropped`: how many messages the result no longer holds.
    `error`: why nothing, or less than intended, was done. `failed_model`: the auxiliary model that failed before
    another one could be used. `aborted`: because of `error`, the transcript is unchanged.
    """

    fallback: bool = False
    dropped: int = 0
    error: str | None = None
    failed_model: str | None = None
    aborted: bool = False


class ContextEngine(ABC):
    """What the host relies on. `messages` never holds the system prompt, unless a caller put one in front (which is
    kept) or the engine `takes_system_prompt`. No method may change a list or a message that it was given."""

    name: str = ""

    # The own folder of a plug-in's engine, set before the engine is made.
    home: Path | None = None

    # State the host reads.
    last_prompt_tokens: int = 0
    last_completion_tokens: int = 0
    last_total_tokens: int = 0
    threshold_tokens: int = 0
    context_length: int = 0
    compression_count: int = 0
    last_outcome: Outcome = Outcome()

    # Parameters.
    threshold_percent: float = 0.75
    protect_first_n: int = 3
    protect_last_n: int = 6

    # Whether messages begin with the system prompt when the host hands them over; the host takes it off again.
    takes_system_prompt: bool = False

    # Whether a preparation in the background may run on a fresh instance of this engine.
    supports_background: bool = False

    @abstractmethod
    def update_from_response(self, usage: Mapping[str, int]) -> Any:
        """Take the usage that the provider reported for the last call, as from `CanonicalUsage.as_dict()`."""

    @abstractmethod
    def should_compress(self, prompt_tokens: int | None = None) -> Any:
        """Whether the transcript must be compacted now; None means `last_prompt_tokens`."""

    @abstractmethod
    def compress(
        self,
        messages: Sequence[Message],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
        force: bool = False,
        memory_context: str = "",
    ) -> Any:
        """Return a shorter transcript as a new list, or the same messages if nothing can be done."""

    def should_compress_preflight(self, messages: Sequence[Message]) -> Any:
        """Whether to compact before the first call even though the host's own estimate does not ask for it."""
        return False

    def has_content_to_compress(self, messages: Sequence[Message]) -> Any:
        """Whether `compress` could do anything at all. Must not call a model."""
        return True

    def on_session_start(self, session_id: str, **info: Any) -> Any:
        """Begin a session, or take it up again. `info`: platform, model, context_length, home, parent_session_id,
        reason, call_model(messages, max_tokens) -> text; and, for engines written for another host, hermes_home,
        conversation_id (the same for all sessions of a key), old_session_id and boundary_reason."""
        return None

    def on_session_end(self, session_id: str, messages: Sequence[Message]) -> Any:
        """The session has really ended (reset, expired, switched, undone)."""
        return None

    def on_session_reset(self) -> Any:
        """Forget the counters: the next messages have nothing to do with the earlier ones."""
        self.last_prompt_tokens = 0
        self.last_completion_tokens = 0
        self.last_total_tokens = 0
        self.compression_count = 0
        return None

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return the OpenAI function schemas of the tools that this engine offers to the model."""
        return []

    def handle_tool_call(self, name: str, args: Mapping[str, Any], **context: Any) -> Any:
        """Run one of the engine's tools and return JSON text. `context` holds `messages`."""
        return json.dumps({"error": f"Unknown tool: {name}"})

    def get_status(self) -> dict[str, Any]:
        """Figures for people: the token state, `usage_percent` (at most 100) and the count."""
        percent = 100 * self.last_prompt_tokens / self.context_length if self.context_length else 0.0
        return {
            "engine": self.name,
            "last_prompt_tokens": self.last_prompt_tokens,
            "threshold_tokens": self.threshold_tokens,
            "context_length": self.context_length,
            "usage_percent": min(100.0, percent),
            "compression_count": self.compression_count,
        }

    def update_model(
        self, model: str, context_length: int, base_url: str = "", api_key: str = "", provider: str = ""
    ) -> Any:
        """The session's model has changed, and with it the window and the budgets."""
        self.context_length = context_length
        self.threshold_tokens = int(context_length * self.threshold_percent)
        return None

    def dump_state(self) -> dict[str, Any]:
        """The state that must survive a restart, as JSON-able data; the host stores it with the session."""
        return {}

    def load_state(self, state: Mapping[str, Any]) -> Any:
        """Take up a state from `dump_state`, perhaps from an older version."""
        return None
