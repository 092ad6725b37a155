"""Hygiene: the compaction before a turn, for growth that the agent's own loop cannot foresee: overnight accumulation, a
switch to a smaller model, or a restored backup.

It uses the same engine and the same continuation as every other compaction, has a deadline, and never keeps a turn from
running.
"""

from __future__ import annotations

from collections.abc import Collection

import structlog
from msgspec import Struct

from gateway.agent.compaction import CompactionReport, Compactor
from gateway.agent.conversation import Conversation
from gateway.context.policy import HygieneRules
from gateway.runtime.clock import Clock

log = structlog.get_logger(__name__)


class HygieneResult(Struct, frozen=True, kw_only=True):
    """The outcome of a pass; with neither report nor failure there was nothing to do.

    `technical`: the failure is in the words of a provider.
    """

    report: CompactionReport | None = None
    failure: str | None = None
    technical: bool = False


class Hygiene(Struct, frozen=True):
    """The pass before every turn."""

    rules: HygieneRules
    clock: Clock
    enabled: bool = True

    def due(self, conversation: Conversation) -> bool:
        """Whether the pass has something to do; the check takes constant time at any length.

        A transcript that a pass could not shrink must grow by a tenth before the next try.
        """
        rules, length = self.rules, conversation.length
        if not self.enabled or length < rules.min_messages:
            return False
        full = rules.threshold * conversation.spec.context_length
        if length < rules.max_messages and conversation.prompt_tokens() < full:
            return False
        tried_at = _tried_at(conversation.fresh.announced)
        grown = not tried_at or length >= tried_at + max(rules.min_messages, tried_at // 10)
        return grown and not conversation.engine.rests  # the loop has the built-in engine help out

    async def run(self, conversation: Conversation, compactor: Compactor) -> HygieneResult:
        """Compact once, within the deadline. A compaction that fails raises nothing."""
        length = conversation.length
        try:
            async with self.clock.limit(self.rules.timeout):
                report = await compactor.run(conversation, "hygiene")
        except TimeoutError:
            failure = f"it took longer than {self.rules.timeout:g} seconds"
            log.warning("hygiene_timed_out")
            conversation.announce(_with_mark(conversation.fresh.announced, length))
            return HygieneResult(failure=failure)
        if report.changed:
            return HygieneResult(report=report)
        conversation.announce(_with_mark(conversation.fresh.announced, length))
        failure = report.outcome.error or "nothing could be compressed"
        return HygieneResult(failure=failure, technical=report.outcome.aborted)


_MARK = "hygiene-tried-at:"


def _tried_at(announced: Collection[str]) -> int:
    return next((int(mark.removeprefix(_MARK)) for mark in announced if mark.startswith(_MARK)), 0)


def _with_mark(announced: Collection[str], length: int) -> tuple[str, ...]:
    return (*(entry for entry in announced if not entry.startswith(_MARK)), f"{_MARK}{length}")
