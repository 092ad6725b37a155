"""Anti-thrashing: when automatic compaction no longer helps, stop doing it.

A pass that saved under 10 %, or after which the next real prompt was still over the threshold, is
a strike. Two in a row block automatic passes until a real fit, a model switch or a manual
`/compress`. A fit is a reported prompt under the threshold after a pass that helped; while
blocked, or after a pass that hardly helped, it must lie 10 % under it: otherwise the few tokens
that a useless pass saves would lift the block that it earned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from gateway.context.policy import EFFECTIVE_SAVING

STRIKES_TO_BLOCK: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Strikes:
    """How often in a row automatic compaction was in vain. `awaiting`: a pass that looked useful
    waits for the next reported prompt."""

    count: int = 0
    awaiting: bool = False

    @property
    def blocked(self) -> bool:
        """Whether automatic passes are held back."""
        return self.count >= STRIKES_TO_BLOCK

    def after_pass(self, *, effective: bool) -> Strikes:
        """After an automatic pass."""
        return replace(self, awaiting=True) if effective else Strikes(count=self.count + 1)

    def after_report(self, prompt_tokens: int, threshold_tokens: int) -> Strikes:
        """After the provider reported a prompt's size."""
        if prompt_tokens <= 0 or threshold_tokens <= 0:
            return self
        if self.awaiting:
            return Strikes(count=self.count + 1 if prompt_tokens >= threshold_tokens else 0)
        if self.count and prompt_tokens < threshold_tokens * (1 - EFFECTIVE_SAVING):
            return Strikes()
        return self

    def dump(self) -> dict[str, Any]:
        """JSON-able form."""
        return {"count": self.count, "awaiting": self.awaiting}

    @classmethod
    def load(cls, state: object) -> Strikes:
        """The inverse of `dump`; anything else gives none."""
        if not isinstance(state, Mapping):
            return cls()
        count = state.get("count")
        return cls(count=count if isinstance(count, int) and count > 0 else 0, awaiting=state.get("awaiting") is True)
