"""The model of the crash tests: what it does follows from the newest message that names a token.

`say tok…` is answered, `long tok…` at length; `effect`, `both`, `steps` and `note` ask for tools, each
call with an argument of its own. What a tool said comes back in the answer, so that a reader of the
replies alone can tell what the model was told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from gateway.agent.tools.runtime import UNKNOWN_OUTCOME
from gateway.domain.message import text_of
from tests.emulators.llm_replies import Answer, Reply, summarising

PADDING: Final = "the ferry leaves at seven and the harbour office opens at nine on every day but Sunday"
DONE: Final = "effect took place"
NOTED: Final = "note is kept"
_ASKED: Final = re.compile(r"\b(say|long|effect|both|steps|note) (tok\w+)")
_LONG: Final = 22

Calls = list[tuple[str, Mapping[str, Any]]]


def asked(text: str) -> tuple[str, str]:
    """(kind, token) of the last request in a text; empty where there is none."""
    found = _ASKED.findall(text)
    return found[-1] if found else ("", "")


def effects_of(kind: str, token: str) -> tuple[str, ...]:
    """The arguments of all side-effect calls a message leads to, in order."""
    return {"effect": (token,), "both": (f"{token}a", f"{token}c"), "steps": (f"{token}a", f"{token}b")}.get(kind, ())


def answer(body: Mapping[str, Any]) -> Answer:
    """Return the model's next words. Deterministic: the same request gets the same answer."""
    messages: Sequence[Mapping[str, Any]] = body["messages"]
    last = max(index for index, message in enumerate(messages) if message["role"] == "user")
    kind, token = asked(text_of(messages[last]))
    results = [text_of(message) for message in messages[last:] if message["role"] == "tool"]
    calls = _calls(kind, token, len(results))
    if calls:
        return Reply(text=f"Working on {token}.", tool_calls=calls)
    return Reply(text=final_text(kind, token, results))


def final_text(kind: str, token: str, results: Iterable[str]) -> str:
    """The answer to a message whose tools said `results`."""
    told = ", ".join("unknown" if result == UNKNOWN_OUTCOME else result for result in results)
    more = " ".join([PADDING] * _LONG) if kind == "long" else ""
    return f"Answer to {token} [{told}] {more}".strip()


def _calls(kind: str, token: str, results: int) -> Calls:
    if kind == "effect" and not results:
        return [("effect", {"token": token})]
    if kind == "note" and not results:
        return [("note", {"token": token})]
    if kind == "both" and not results:
        return [
            ("effect", {"token": f"{token}a"}),
            ("note", {"token": f"{token}b"}),
            ("effect", {"token": f"{token}c"}),
        ]
    if kind == "steps" and results < 2:
        return [("effect", {"token": f"{token}{'ab'[results]}"})]
    return []


model = summarising(answer)
"""The hook for the emulator: the above, and extractive summaries for the summariser's prompts."""
