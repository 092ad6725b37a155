"""hermes-agent's compressor for one conversation: run by the interpreter of `build/peers`, isolated (`-I`).

A line of JSON is one order: {"start": {...}} makes the compressor with its own defaults, {"usage": {...}} tells a
report of the provider, {"should": tokens} and {"compress": messages, "tokens": n} ask. While it compresses, its call of
a model becomes a line {"ask": prompt, "most": tokens}, and the next line that it reads is the answer. Every other line
that it writes is {"result": …}.
"""

from __future__ import annotations

import json
import logging
import sys
from types import SimpleNamespace
from typing import Any

from agent import context_compressor


def say(**what: Any) -> None:
    """One line."""
    print(json.dumps(what), file=sys.__stdout__, flush=True)


def asked(**request: Any) -> Any:
    """Stand where their `call_llm` is called."""
    say(ask="\n\n".join(str(each["content"]) for each in request["messages"]), most=request.get("max_tokens"))
    answer = json.loads(sys.stdin.readline())["answer"]
    if not answer:
        raise RuntimeError("there is no model")
    return SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=answer))])


def main() -> None:
    """Orders until the input ends."""
    logging.disable(logging.CRITICAL)
    sys.stdout = sys.stderr
    context_compressor.call_llm = asked
    engine: Any = None
    for line in sys.stdin:
        order = json.loads(line)
        if "start" in order:
            engine = context_compressor.ContextCompressor("bench", quiet_mode=True, **order["start"])
            say(result=engine.threshold_tokens)
        elif "usage" in order:
            engine.update_from_response(order["usage"])
            say(result=None)
        elif "should" in order:
            say(result=bool(engine.should_compress(order["should"])))
        else:
            say(result=engine.compress(order["compress"], current_tokens=order["tokens"]))


if __name__ == "__main__":
    main()
