"""compress() without the model: planning, pruning, rendering for the summariser, verifying, assembling.

The summariser answers at once with notes of a usual length. Tokens are stored with every message,
as they are in a running gateway. A window of 200,000 tokens. What follows in the host (finding the
stored messages again in the result) is shown beside it. Medians of wall time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

from gateway.agent.compaction import reconcile
from gateway.clock import SystemClock
from gateway.context.assembly import sanitize
from gateway.context.compressor import Compressor
from gateway.context.policy import CompressionSettings
from gateway.domain.message import Message, noted
from gateway.redaction import Redactor
from gateway.tokens import TokenCounter
from tests.bench.long import messages
from tests.bench.table import Row, Rows, milliseconds

TITLE = "compress() without the model"
LENGTHS = (100, 2_000, 20_000)
PASSES = 9
NOTES = "## Active Task\nExplain the modules.\n\n## Completed Actions\n" + "\n".join(
    f"{number}. READ module_{number}.py: it writes report_{number}.csv [tool: read_file]" for number in range(1, 25)
)


async def measure() -> Rows:
    """Two lines for each length, and one for the rule-made fallback."""
    counter = TokenCounter()
    counter.text("load the vocabulary")
    rows: list[Row] = []
    for length in LENGTHS:
        transcript = [noted(message, id=str(number)) for number, message in enumerate(messages(length))]
        passes = [await _pass(transcript, counter, NOTES) for _ in range(PASSES)]
        goal = "goal ≤ 20 ms" if length == 2_000 else ""
        rows.append(Row(f"{length:>6,} messages: compress()", milliseconds(median(one for one, _ in passes)), goal))
        rows.append(Row(f"{length:>6,} messages: finding originals", milliseconds(median(two for _, two in passes))))
    transcript = [noted(message, id=str(number)) for number, message in enumerate(messages(2_000))]
    by_rule = median([(await _pass(transcript, counter, None))[0] for _ in range(PASSES)])
    rows.append(Row(" 2,000 messages: compress() by rule", milliseconds(by_rule)))
    return rows


async def _pass(transcript: list[Message], counter: TokenCounter, notes: str | None) -> tuple[float, float]:
    """Seconds of compress() and of what the host does with its result; `notes` None: no summariser."""
    engine = Compressor(CompressionSettings(), counter=counter, clock=SystemClock(), redact=Redactor(()))

    async def instant(prompt: Sequence[Message], max_tokens: int) -> str:
        return notes or ""

    call_model = {} if notes is None else {"call_model": instant}
    engine.on_session_start("s", model="bench", context_length=200_000, **call_model)
    start = time.perf_counter()
    result = await engine.compress(transcript, current_tokens=170_000, force=True)
    middle = time.perf_counter()
    reconcile(transcript, sanitize(result), counter)
    end = time.perf_counter()
    if len(result) >= len(transcript):
        raise RuntimeError(f"nothing was compressed: {engine.last_outcome}")
    return middle - start, end - middle
