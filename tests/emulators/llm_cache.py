"""A provider's prefix cache: what a request has in common with an earlier one is read, not computed."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import Any

LEAST = 1_024  # tokens: a shorter prefix is not cached
BLOCK = 128  # tokens: prefixes are cached in whole blocks
KEPT = 64  # requests


class PrefixCache:
    """Remembers the newest requests, each as the texts that its prompt is made of: tools, then messages."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count
        self._prompts: deque[tuple[str, ...]] = deque(maxlen=KEPT)

    def read(self, body: Mapping[str, Any]) -> int:
        """The tokens of the longest prefix that `body` shares with an earlier request to the same model;
        `body` is remembered."""
        parts = (body["model"], json.dumps(body.get("tools")), *map(json.dumps, body["messages"]))
        shared = max((_shared(parts, known) for known in self._prompts), default=0)
        self._prompts.append(parts)
        tokens = sum(map(self._count, parts[1:shared]))
        return tokens // BLOCK * BLOCK if tokens >= LEAST else 0


def _shared(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
