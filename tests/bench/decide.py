"""Deciding not to compact: what every turn pays, at any length of the transcript.

`should_compress` of the engine, the host's estimate of the next request, and hygiene's check, each
over a conversation held in memory whose provider reported its size. None may walk the transcript.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from gateway.agent.compaction import Hygiene
from gateway.agent.conversation import Conversation, opened
from gateway.agent.models import Calibration
from gateway.context.compressor import Compressor
from gateway.context.guard import GuardedEngine
from gateway.context.policy import CompressionSettings, HygieneRules
from gateway.domain.chat import SessionKey
from gateway.domain.message import note_of
from gateway.domain.session import Session
from gateway.providers.base import ModelSpec
from gateway.runtime.clock import SystemClock
from gateway.runtime.redaction import Redactor
from gateway.runtime.tokens import TokenCounter
from tests.bench.long import messages
from tests.bench.table import Row, Rows
from tests.bench.world import WINDOW, said

TITLE = "Deciding whether to compact"
LENGTHS = (100, 10_000, 100_000)
TIMES = 2_000


async def measure() -> Rows:
    """Three lines for each length."""
    rows: list[Row] = []
    shortest: list[float] = []
    for length in LENGTHS:
        conversation, engine = _conversation(length)
        hygiene = Hygiene(HygieneRules(max_messages=1_000_000), SystemClock())
        size = conversation.prompt_tokens()
        label = f"{length:>7,} messages"
        calls: dict[str, Callable[[], object]] = {
            "should_compress": lambda engine=engine, size=size: engine.should_compress(size),
            "estimate": conversation.prompt_tokens,
            "hygiene due": lambda talk=conversation, due=hygiene.due: due(talk),
        }
        took = [_each(call) for call in calls.values()]
        shortest = shortest or took
        rows += [
            Row(f"{label}: {name}", f"{each:.2f} µs", "", each / first, f"that of {LENGTHS[0]:,} messages")
            for name, each, first in zip(calls, took, shortest, strict=True)
        ]
    return rows


def _each(call: Callable[[], object]) -> float:
    """Microseconds of CPU a call."""
    start = time.process_time()
    for _ in range(TIMES):
        call()
    return (time.process_time() - start) / TIMES * 1e6


def _conversation(length: int) -> tuple[Conversation, Compressor]:
    clock, counter = SystemClock(), TokenCounter()
    engine = Compressor(CompressionSettings(), counter=counter, clock=clock, redact=Redactor(()))
    engine.on_session_start("s", model="bench", context_length=WINDOW)
    transcript = messages(length)
    session = Session(
        id="s",
        key=SessionKey(platform="bench", chat="one"),
        chat_type="direct",
        parent_id=None,
        started_at=0.0,
        model="bench",
        system_prompt="",
        last_prompt_tokens=1_000,
        reported_messages=len(transcript),
        message_count=len(transcript),
        transcript_tokens=sum(note_of(message)["tokens"] for message in transcript),
    )
    stored, fresh = opened(session, tuple(transcript))
    conversation = Conversation(
        stored=stored,
        fresh=fresh,
        engine=GuardedEngine(engine, log=_Silent()),
        spec=ModelSpec(provider="offline", name="bench", context_length=WINDOW),
        counter=counter,
        calibration=Calibration(),
        overhead=500,
    )
    conversation.add({"role": "user", "content": said(1)}, clock.now())
    return conversation, engine


class _Silent:
    """A log that nobody reads."""

    def warning(self, event: str, **fields: object) -> None:
        """Nothing happens."""
