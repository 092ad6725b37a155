"""The ends of answers in the words of all vendors: one table for every wire format.

Words: OpenAI's `finish_reason` and `incomplete_details.reason`, Anthropic's `stop_reason`, and the words of servers
that speak these formats with reasons of their own (Gemini, Cohere, Mistral, DeepSeek, Z.ai, vLLM). An unknown word
counts as an ordinary end: the server has ended the answer on purpose.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gateway.providers.base import StopReason
from gateway.runtime.errors import ContextOverflow, ProviderUnavailable

_STOPS: Final[Mapping[str, StopReason]] = {
    **dict.fromkeys(("tool_calls", "tool_call", "tool_use", "function_call"), "tool_calls"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length"), "length"),
    **dict.fromkeys(("content_filter", "content_filtered", "refusal", "safety", "sensitive"), "refused"),
    **dict.fromkeys(("recitation", "blocklist", "prohibited_content", "spii"), "refused"),
}
_OVERFLOWS: Final = frozenset({"model_context_window_exceeded", "context_length_exceeded"})
_BROKEN: Final = frozenset(
    {"error", "network_error", "abort", "aborted", "insufficient_system_resource", "malformed_function_call"}
)


def stop_reason(word: str | None) -> StopReason:
    """The reason for which an answer ended; `word` is the vendor's, None for an answer that just ended.

    Raises ContextOverflow where the window was full before the answer was, and ProviderUnavailable where the vendor
    says that the answer broke off.
    """
    known = (word or "stop").lower()
    if known in _OVERFLOWS:
        raise ContextOverflow(
            "The answer did not fit into what the conversation leaves of the model's window. "
            "Use /compress to shorten it or /new to start fresh."
        )
    if known in _BROKEN:
        raise ProviderUnavailable("The model's answer broke off. Try again.", malformed=True)
    return _STOPS.get(known, "stop")
