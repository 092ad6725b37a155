"""compress() without the model: planning, pruning, rendering for the summariser, verifying, assembling.

The summariser answers at once with notes of a usual length. Tokens, identifiers and standing instructions are stored
with every message, as they are in a running gateway; what finding identifiers costs when a message is stored is shown
as well. A window of 200,000 tokens. What follows in the host (finding the stored messages again in the result) is shown
beside it. Medians of wall time, and the fastest pass, which a busy machine disturbs less; memory is the peak of what
one pass allocates.
"""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Sequence
from statistics import median

from gateway.agent.compaction import reconcile
from gateway.context import identifiers, instructions
from gateway.context.assembly import sanitize
from gateway.context.compressor import Compressor
from gateway.context.policy import CompressionSettings
from gateway.domain.message import Message, noted
from gateway.runtime.clock import SystemClock
from gateway.runtime.redaction import Redactor
from gateway.runtime.tokens import TokenCounter
from tests.bench.long import messages
from tests.bench.table import Row, Rows, milliseconds

TITLE = "compress() without the model"
LENGTHS = (100, 2_000, 20_000)
PASSES = 15
_BARE = "writing and reading it as JSON (both fastest)"
NOTES = "## Active Task\nExplain the modules.\n\n## Completed Actions\n" + "\n".join(
    f"{number}. READ module_{number}.py: it writes report_{number}.csv [tool: read_file]" for number in range(1, 25)
)


async def measure() -> Rows:
    """Two lines for each length, then the fallback by rule, memory, and storing a message."""
    counter = TokenCounter()
    counter.text("load the vocabulary")
    rows: list[Row] = []
    for length in LENGTHS:
        transcript = _stored(length)
        passes = [await _pass(transcript, counter, NOTES) for _ in range(PASSES)]
        took, found = [one for one, _ in passes], [two for _, two in passes]
        written = min(_written(transcript) for _ in range(PASSES))
        fastest = f"fastest {milliseconds(min(took))}"
        rows.append(
            Row(f"{length:>6,} messages: compress()", milliseconds(median(took)), fastest, min(took) / written, _BARE)
        )
        rows.append(Row(f"{length:>6,} messages: finding originals", milliseconds(median(found))))
    transcript = _stored(2_000)
    by_rule = [(await _pass(transcript, counter, None))[0] for _ in range(PASSES)]
    fastest = f"fastest {milliseconds(min(by_rule))}"
    rows.append(Row(" 2,000 messages: compress() by rule", milliseconds(median(by_rule)), fastest))
    rows.append(Row("20,000 messages: memory of a pass", f"{await _memory(counter):.1f} MB", "goal ≤ 15 MB"))
    rows.append(Row("a message: finding its identifiers", f"{_finding() * 1e6:.0f} µs"))
    return rows


def _written(transcript: list[Message]) -> float:
    """Seconds to write it as JSON and read it again: what any program does that keeps a transcript as such."""
    start = time.perf_counter()
    json.loads(json.dumps(transcript))
    return time.perf_counter() - start


def _stored(length: int) -> list[Message]:
    return [
        noted(message, id=str(number), identifiers=identifiers.found(message), instructions=instructions.found(message))
        for number, message in enumerate(messages(length))
    ]


async def _memory(counter: TokenCounter) -> float:
    """Megabytes that a pass over 20,000 messages needs at most beside them."""
    transcript = _stored(20_000)
    await _pass(transcript, counter, NOTES)
    tracemalloc.start()
    try:
        await _pass(transcript, counter, NOTES)
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def _finding() -> float:
    """Seconds for a message, on average."""
    transcript = messages(2_000)
    start = time.process_time()
    for message in transcript:
        identifiers.found(message)
    return (time.process_time() - start) / len(transcript)


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
