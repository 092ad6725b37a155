"""`ContextEngine`: the port that keeps a transcript inside its budget.

The host calls an engine in this order: `on_session_start`; then for every provider call
`update_from_response` with the usage that was reported, and `should_compress` before the next
one; `compress` when it says so; `on_session_end` once, at the real end of the session, and not
when a compaction continues it. State that must survive a restart goes through `dump_state`.

Any method may be a plain function or a coroutine function, and may leave out optional
parameters it has no use for. An engine that raises never breaks a turn.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.domain.message import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How the last `compress` went, for the host to tell the person.

    `fallback`: a deterministic summary stands in for the model's. `dropped`: messages that the
    result no longer holds. `error`: why nothing, or less than wished, was done. `failed_model`:
    the auxiliary model that could not be used although another one then could. `aborted`: the
    transcript was left as it was because of `error`.
    """

    fallback: bool = False
    dropped: int = 0
    error: str | None = None
    failed_model: str | None = None
    aborted: bool = False


class ContextEngine(ABC):
    """What the host relies on. `messages` never holds the system prompt unless a caller put one in
    front, which is then kept; no method may change a list or message it was given."""

    name: str = ""

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

    # Whether a preparation in the background may run on a fresh instance of this engine.
    supports_background: bool = False

    @abstractmethod
    def update_from_response(self, usage: Mapping[str, int]) -> Any:
        """Learn what the last call really used: `CanonicalUsage.as_dict()`."""

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
        """A shorter transcript as a new list (or the same messages if nothing can be done)."""

    def should_compress_preflight(self, messages: Sequence[Message]) -> Any:
        """Whether to compact before the first call, beyond what the host's own estimate says."""
        return False

    def has_content_to_compress(self, messages: Sequence[Message]) -> Any:
        """Whether `compress` could do anything at all; must not call a model."""
        return True

    def on_session_start(self, session_id: str, **info: Any) -> Any:
        """A session begins or is taken up again: platform, model, context_length, home,
        parent_session_id, reason, call_model(messages, max_tokens) -> text."""
        return None

    def on_session_end(self, session_id: str, messages: Sequence[Message]) -> Any:
        """A session really ended (reset, expired, switched, undone)."""
        return None

    def on_session_reset(self) -> Any:
        """Forget counters: what follows has nothing to do with what was."""
        self.last_prompt_tokens = 0
        self.last_completion_tokens = 0
        self.last_total_tokens = 0
        self.compression_count = 0
        return None

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """OpenAI function schemas of tools this engine offers to the model."""
        return []

    def handle_tool_call(self, name: str, args: Mapping[str, Any], **context: Any) -> Any:
        """Run one of the engine's tools; the result is JSON text. `context` holds `messages`."""
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
        """The session's model changed: budgets follow its window."""
        self.context_length = context_length
        self.threshold_tokens = int(context_length * self.threshold_percent)
        return None

    def dump_state(self) -> dict[str, Any]:
        """What must survive a restart, as JSON-able data; the host keeps it on the session."""
        return {}

    def load_state(self, state: Mapping[str, Any]) -> Any:
        """Take up what `dump_state` gave, perhaps by an older version."""
        return None
