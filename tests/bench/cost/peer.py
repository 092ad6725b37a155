"""hermes-agent's compressor behind the port of context engines, in a process of its own: see `theirs`."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.context.engine import ContextEngine, Outcome
from gateway.domain.message import Message, noted_tokens, user, wire
from tests.bench.peers.__main__ import THEIR_PYTHON
from tests.bench.start import PROJECT

_PROGRAM: Final = PROJECT / "tests" / "bench" / "cost" / "theirs.py"
_MOST: Final = 8_000  # tokens of notes where it names no limit


class Theirs(ContextEngine):
    """With its own defaults. `left`: tokens of the transcripts that its passes left."""

    name = "theirs"

    def __init__(self, left: list[int] | None = None) -> None:
        self.left = left if left is not None else []
        self._program: subprocess.Popen[str] | None = None
        self._call_model: Any = None

    def on_session_start(self, session_id: str, **info: Any) -> None:
        self._call_model = info.get("call_model")
        self.update_model(info["model"], info["context_length"])

    def update_model(
        self, model: str, context_length: int, base_url: str = "", api_key: str = "", provider: str = ""
    ) -> None:
        if self._program is None:
            home = tempfile.mkdtemp(prefix="theirs-")
            self._program = subprocess.Popen(
                [str(THEIR_PYTHON), "-I", str(_PROGRAM)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env={"PATH": os.environ["PATH"], "HOME": home, "HERMES_HOME": f"{home}/hermes"},
            )
            weakref.finalize(self, self._program.kill)
            self.threshold_tokens = self._ask(start={"config_context_length": context_length})["result"]
        self.context_length = context_length

    def update_from_response(self, usage: Mapping[str, int]) -> None:
        self.last_prompt_tokens = usage["prompt_tokens"]
        self._ask(usage=dict(usage))

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        if self._program is None:
            return False
        return bool(self._ask(should=self.last_prompt_tokens if prompt_tokens is None else prompt_tokens)["result"])

    async def compress(self, messages: Sequence[Message], current_tokens: int | None = None) -> list[Message]:
        answer = self._ask(compress=[wire(message) for message in messages], tokens=current_tokens)
        while "ask" in answer:
            asked = self._call_model([user(answer["ask"])], answer["most"] or _MOST)
            answer = self._ask(answer=str(await asked if inspect.isawaitable(asked) else asked))
        result: list[Message] = answer["result"]
        by_wire = {json.dumps(wire(message), sort_keys=True): message for message in messages}
        kept = [by_wire.get(json.dumps(message, sort_keys=True), message) for message in result]
        self.compression_count += 1
        self.left.append(noted_tokens(kept))
        self.last_outcome = Outcome(dropped=max(0, len(messages) - len(kept)))
        return kept

    def _ask(self, **order: Any) -> dict[str, Any]:
        program = self._program
        assert program is not None
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(json.dumps(order) + "\n")
        program.stdin.flush()
        answer: dict[str, Any] = json.loads(program.stdout.readline())
        return answer
