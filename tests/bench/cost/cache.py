"""A provider's cache of prompts, as its vendor documents it.

Anthropic ("Prompt caching" in its documentation): the order is tools, system prompt, messages. An entry is written at
each mark, and holds everything before it. A request reads the longest entry at or up to 20 blocks before one of its
marks; that entry lives its whole time again. A prefix of fewer than 1,024 tokens is not stored. What lies between the
entry that was read and the last mark is written at 1.25 times the input price (five minutes) or twice (an hour), a read
costs a tenth, and what follows the last mark is input.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.domain.message import wire
from gateway.domain.usage import CanonicalUsage
from gateway.providers.base import ModelRequest

LEAST: Final = 1_024  # tokens of a prefix
LOOK_BACK: Final = 20  # blocks
LIFETIMES: Final = {"5m": 300.0, "1h": 3_600.0}  # seconds


@dataclass(slots=True)
class PromptCache:
    """The entries of one model. `tokens`: of a text."""

    tokens: Callable[[str], int]
    _entries: dict[int, tuple[float, float]] = field(default_factory=dict)  # the hash of a prefix: (ends at, lifetime)

    def meet(self, request: ModelRequest, now: float) -> CanonicalUsage:
        """Return the prompt's usage."""
        hashes, sizes, marks = [], [], dict[int, float]()
        whole, total = hash(""), 0
        parts = [json.dumps(list(request.tools), sort_keys=True), *map(plain, request.messages)]
        for place, text in enumerate(parts):
            whole, total = hash((whole, text)), total + self.tokens(text)
            hashes.append(whole)
            sizes.append(total)
            if place and (lifetime := _mark(request.messages[place - 1])):
                marks[place] = lifetime
        read = self._longest(hashes, marks, now)
        for place in [read, *marks]:
            if place >= 0 and sizes[place] >= LEAST:
                lifetime = marks.get(place) or self._entries[hashes[place]][1]
                self._entries[hashes[place]] = now + lifetime, lifetime
        known = sizes[read] if read >= 0 else 0
        marked = max(known, sizes[max(marks)] if marks and sizes[max(marks)] >= LEAST else 0)
        return CanonicalUsage(
            input_tokens=total - marked, cache_read_tokens=known, cache_write_tokens=marked - known, output_tokens=0
        )

    def _longest(self, hashes: Sequence[int], marks: Sequence[int] | dict[int, float], now: float) -> int:
        near = {place - back for place in marks for back in range(LOOK_BACK + 1) if place >= back}
        alive = (place for place in near if self._entries.get(hashes[place], (0.0, 0.0))[0] > now)
        return max(alive, default=-1)


def plain(message: Any) -> str:
    """Return a message as it counts for the cache: without marks."""
    return json.dumps(unmarked(message), ensure_ascii=False, sort_keys=True)


def unmarked(message: Any) -> dict[str, Any]:
    """Return a message without marks, its words as one text where they are nothing else."""
    bare = {key: value for key, value in wire(message).items() if key != "cache_control"}
    parts = bare.get("content")
    if isinstance(parts, list):
        parts = [{key: value for key, value in part.items() if key != "cache_control"} for part in parts]
        only_text = len(parts) == 1 and parts[0].get("type") == "text"
        bare["content"] = parts[0]["text"] if only_text else parts
    return bare


def _mark(message: Any) -> float:
    """Return the lifetime that a mark on a message asks for, 0.0 without one."""
    content = message.get("content")
    places = [message, *(content if isinstance(content, list) else ())]
    marks = [place["cache_control"] for place in places if "cache_control" in place]
    return LIFETIMES[marks[0].get("ttl", "5m")] if marks else 0.0
