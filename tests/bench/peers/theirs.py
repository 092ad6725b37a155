"""hermes-agent's side: run by the interpreter of `build/peers`, isolated (`-I`), with a job's file.

Reads {"messages", "notes", "window", "threshold", "target_ratio", "protect_first_n", "protect_last_n",
"passes", "traced", "result"}; prints one JSON object, and writes what the last pass gave into the file `result`.
Their call of a model is replaced by one that answers at once with `notes`, so that all that is theirs
around it is run; without notes it raises at once, and their own fallback is.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from agent import context_compressor
from agent.model_metadata import estimate_messages_tokens_rough


class Summariser:
    """Stands where their `call_llm` is called; remembers how much it was given to read."""

    def __init__(self, notes: str | None) -> None:
        self.notes = notes
        self.read = 0

    def __call__(self, **request: Any) -> Any:
        """An answer in the shape that an OpenAI client gives."""
        self.read = sum(len(message["content"]) for message in request["messages"])
        if self.notes is None:
            raise RuntimeError("there is no model")
        return SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=self.notes))])


def main() -> None:
    """One job."""
    job = json.loads(Path(sys.argv[1]).read_text())
    logging.disable(logging.CRITICAL)
    summariser = context_compressor.call_llm = Summariser(job["notes"])
    messages = json.loads(Path(job["messages"]).read_text())
    seconds, peak, result, engine = [], 0, messages, None
    for _ in range(job["passes"]):
        engine = context_compressor.ContextCompressor(
            "bench",
            config_context_length=job["window"],
            threshold_percent=job["threshold"],
            summary_target_ratio=job["target_ratio"],
            protect_first_n=job["protect_first_n"],
            protect_last_n=job["protect_last_n"],
            quiet_mode=True,
        )
        if job["traced"]:
            tracemalloc.start()
        start = time.process_time()
        result = engine.compress(messages)
        seconds.append(time.process_time() - start)
        if job["traced"]:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    Path(job["result"]).write_text(json.dumps(result))
    report = {
        "seconds": seconds,
        "peak": peak,
        "read": summariser.read,
        "fallback": engine._last_summary_fallback_used,
        "own_count": estimate_messages_tokens_rough(messages),
        "tail_tokens": engine.tail_token_budget,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
