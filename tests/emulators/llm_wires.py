"""The wire formats of the LLM emulator: one class for each API, all served by the same `LlmServer`.

A wire reads its requests (`violations`, `plain`, `cap`) and words its answers (`frames`, `error`). Hooks see every
request as one of Chat Completions, whatever the API, so that a hook works with all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from tests.emulators.llm_replies import Reply

WORDS_PER_DELTA = 3


class Frames(Protocol):
    """A reply as the frames of a stream, or as one whole response."""

    def __iter__(self) -> Iterator[str]: ...

    def whole(self) -> str:
        """The answer of a call without `stream`."""


class Wire(Protocol):
    """One API."""

    path: str

    def presented(self, headers: Mapping[str, str]) -> str | None:
        """The key of a request."""

    def violations(self, body: Any) -> Iterator[str]:
        """Everything wrong with a request."""

    def plain(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """A request as one of Chat Completions."""

    def cap(self, body: Mapping[str, Any]) -> int | None:
        """The most tokens that the answer may have."""

    def frames(
        self, body: Mapping[str, Any], reply: Reply, prompt: int, count: Callable[[str], int], number: int, cached: int
    ) -> Frames:
        """An answer."""

    def too_long(self, prompt: int, cap: int | None, window: int) -> str | None:
        """Return the API's refusal of a request that does not fit; None for one that does."""

    def error(self, status: int, error: Mapping[str, Any]) -> str:
        """An error's body. `error` is one of Chat Completions."""

    def error_inside(self, error: Mapping[str, Any]) -> str:
        """An error as a frame of a stream."""

    def models(self, names: Sequence[str], window: int) -> dict[str, Any]:
        """The list of models."""


def pieces(text: str) -> Iterator[str]:
    """A text as the deltas of a stream."""
    words = text.split(" ") if text else []
    for start in range(0, len(words), WORDS_PER_DELTA):
        yield (" " if start else "") + " ".join(words[start : start + WORDS_PER_DELTA])


def named(kind: str, data: Mapping[str, Any]) -> str:
    """A frame that carries its kind twice, as two of the APIs have it."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n"
