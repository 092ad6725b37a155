"""Our side, with the same jobs as `theirs.py`; garbage is looked for as seldom as in the program itself."""

from __future__ import annotations

import asyncio
import json
import sys
import time
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gateway.context.compressor import Compressor
from gateway.context.policy import CompressionSettings, budgets
from gateway.domain.message import Message, text_of
from gateway.domain.usage import reserved_output
from gateway.runtime.clock import SystemClock
from gateway.runtime.heap import collect_seldom
from gateway.runtime.redaction import Redactor
from gateway.runtime.tokens import TokenCounter


class Summariser:
    """Answers at once; remembers how much it was given to read."""

    def __init__(self, notes: str) -> None:
        self.notes = notes
        self.read = 0

    async def __call__(self, messages: Sequence[Message], max_tokens: int) -> str:
        """The notes."""
        self.read = sum(len(text_of(message)) for message in messages)
        return self.notes


async def run(job: dict[str, Any], messages: list[Message]) -> tuple[dict[str, Any], list[Message]]:
    """(what a job took, what came of it)."""
    counter = TokenCounter()
    counter.text("load the vocabulary")
    names = ("threshold", "target_ratio", "protect_first_n", "protect_last_n")
    settings = CompressionSettings(**{name: job[name] for name in names})
    summariser = None if job["notes"] is None else Summariser(job["notes"])
    seconds, peak, result, fallback = [], 0, messages, False
    for _ in range(job["passes"]):
        engine = Compressor(settings, counter=counter, clock=SystemClock(), redact=Redactor(()))
        engine.on_session_start("s", model="bench", context_length=job["window"], call_model=summariser)
        if job["traced"]:
            tracemalloc.start()
        start = time.process_time()
        result = await engine.compress(messages)
        seconds.append(time.process_time() - start)
        if job["traced"]:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        fallback = engine.last_outcome.fallback
    report = {
        "seconds": seconds,
        "peak": peak,
        "read": 0 if summariser is None else summariser.read,
        "fallback": fallback,
        "own_count": sum(counter.message(message) for message in messages),
        "tail_tokens": budgets(job["window"], settings, reserved_output(job["window"], None)).tail_tokens,
    }
    return report, result


def main() -> None:
    """One job."""
    collect_seldom()
    job = json.loads(Path(sys.argv[1]).read_text())
    report, result = asyncio.run(run(job, json.loads(Path(job["messages"]).read_text())))
    Path(job["result"]).write_text(json.dumps(result))
    print(json.dumps(report))


if __name__ == "__main__":
    main()
