"""Protects the window from long tool results, after the limits that tools set themselves.

A result beyond its tool's limit becomes a file of the conversation, and the model gets its beginning and the file's
name. After each step the same is done with the longest results while all together are too long. Nothing is lost:
`read_file` reads a kept result in parts, and its own results are never kept again. A result may be megabytes of
anything, so slow work on a long one is done in a thread.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from msgspec import Struct, field
from pydantic import Field

from gateway.agent.files.references import picture_part
from gateway.agent.tools.base import Files, Tool
from gateway.context.persisted import block
from gateway.context.prompts import neutralise
from gateway.domain.message import Message, text_of, tool_result
from gateway.domain.settings import Count, Section
from gateway.runtime.tokens import LONG_TO_MEASURE

_RESULT_SHARE: Final = 0.15  # of the window
_STEP_SHARE: Final = 0.30
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_NAME: Final = 40


class OutputLimits(Section):
    """The keys of `tools` about long results."""

    result_chars: Count = Field(
        100_000, description="characters; longer results become a file that the model reads in parts"
    )
    turn_chars: Count = Field(
        200_000, description="the same for all results of one step together; the longest become files"
    )
    preview_chars: Count = Field(1_500, description="characters of this file that the model sees immediately")


class Outputs(Struct, frozen=True, kw_only=True):
    """The results of one step. `window`: the tokens that the model reads at once. `count` gives a text's tokens;
    `measured` notes on a message its size and identifiers. Both are called in threads."""

    limits: OutputLimits
    files: Files
    window: int
    count: Callable[[str], int]
    measured: Callable[[Message], Message]
    _whole: dict[str, tuple[str, str]] = field(default_factory=dict)  # tools and results that stand here in full

    async def result(
        self, call_id: str, name: str, tool: Tool | None, text: str, pictures: Sequence[str] = ()
    ) -> Message:
        """The result of a call as a message: all of it, or its beginning and the name of the file that has all; and the
        pictures, by their digests."""
        limit: int | None = getattr(tool, "result_chars", self.limits.result_chars)
        note: dict[str, Any] = {"recalled": True} if hasattr(tool, "recalls") else {}
        if limit is not None and await self._is_beyond([text], limit, _RESULT_SHARE):
            return _pictured(tool_result(call_id, await self._kept(name, text), **note), pictures)
        if limit is not None:
            self._whole[call_id] = name, text
        message = _pictured(tool_result(call_id, neutralise(text), **note), pictures)
        return await asyncio.to_thread(self.measured, message) if len(text) > LONG_TO_MEASURE else message

    async def fit(self, results: dict[str, Message], among: Collection[str]) -> None:
        """Keep the longest results `among` these calls as files until all results of the step fit together."""
        while await self._is_beyond([*map(text_of, results.values())], self.limits.turn_chars, _STEP_SHARE):
            left = [call_id for call_id in among if call_id in self._whole]
            longest = max(left, key=lambda call_id: len(self._whole[call_id][1]), default="")
            if not longest or len(self._whole[longest][1]) <= 2 * self.limits.preview_chars:
                return
            content = await self._kept(*self._whole.pop(longest))
            results[longest] = self.measured(_with_text(results[longest], content))

    async def _is_beyond(self, texts: Collection[str], most: int, share: float) -> bool:
        """Whether texts have too many characters, or too many tokens for the window."""
        characters, tokens = sum(map(len, texts)), int(share * self.window)
        if characters > most:
            return True
        if characters <= tokens:  # no token is shorter than a character
            return False
        return await asyncio.to_thread(lambda: sum(map(self.count, texts))) > tokens

    async def _kept(self, tool: str, text: str) -> str:
        """Keep a result, and return the block that replaces it."""
        name = await self.files.keep(_UNSAFE.sub("_", tool)[:_LONGEST_NAME], text)
        return block(text, name, self.limits.preview_chars)


def _pictured(message: Message, digests: Sequence[str]) -> Message:
    """The message, with pictures after its text."""
    parts = [{"type": "text", "text": message["content"]}, *map(picture_part, digests)]
    return {**message, "content": parts} if digests else message


def _with_text(message: Message, text: str) -> Message:
    """The message with another text, and the same pictures."""
    content = message["content"]
    pictures = [part for part in content if part["type"] != "text"] if isinstance(content, list) else []
    return {**message, "content": [{"type": "text", "text": text}, *pictures] if pictures else text}
