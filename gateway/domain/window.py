"""A model's window: its size where nobody knows it, the room for an answer, and the marks of its filling.

The room for an answer and the marks are used by providers, engines, the agent and the configuration alike.
"""

from __future__ import annotations

from typing import Final

UNKNOWN_WINDOW: Final = 128_000  # tokens of a model that neither configuration, provider nor price table knows

# Shares of the window, and the consequence of a prompt that reaches them.
LOGGED: Final = 0.65  # the log says so
TOLD: Final = 0.75  # the person is told
HYGIENE: Final = 0.85  # the conversation is compacted before its next turn; the default of hygiene.threshold
EMERGENCY: Final = 0.95  # the conversation is compacted, whatever holds automatic compaction back


def reserved_output(context_length: int, max_output_tokens: int | None) -> int:
    """Return the tokens of a window that are kept free for the answer."""
    return max_output_tokens or min(8_192, context_length // 10)


def is_emergency(prompt_tokens: int, context_length: int) -> bool:
    """Say whether a prompt has reached the last mark of a window; never for a window of unknown size (0)."""
    return context_length > 0 and prompt_tokens >= EMERGENCY * context_length
