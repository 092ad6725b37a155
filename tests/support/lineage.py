"""A session as the host leads it, in memory: grows, is compacted, is restarted, and is looked at each time.

What is checked: every request is valid for its API and fits the window; an automatic compaction shrinks by a tenth
or changes nothing; every message stays reachable; the latest request stands verbatim after the summary; no summary
holds a secret; no input is mutated.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.agent.compaction import reconcile
from gateway.context.assembly import sanitize
from gateway.context.engine import ContextEngine
from gateway.context.guard import GuardedEngine
from gateway.context.identifiers import found
from gateway.domain.message import Message, is_request, is_summary, note_of, noted, text_of, wire
from tests.support.transcripts import COUNTER, flaws, tokens

SECRET = "gh" + "p_" + "a1B2c3D4e5" * 4
OVERHEAD = 300  # tokens of system prompt and tools


class Silent:
    """A logger that fails the test: no engine of ours may need the guard."""

    def warning(self, event: str, **fields: Any) -> None:
        """Fail."""
        raise AssertionError(f"{event}: {fields}")


@dataclass(slots=True, kw_only=True)
class Life:
    """One lineage. `make` gives a fresh engine, as a restart does; `info` is what a session starts with."""

    make: Callable[[], ContextEngine]
    info: Mapping[str, Any]
    rows: dict[str, Message] = field(default_factory=dict)
    transcript: list[Message] = field(default_factory=list)
    compactions: int = 0
    guard: GuardedEngine = field(init=False)

    async def begin(self) -> None:
        """The first start."""
        self.guard = GuardedEngine(self.make(), log=Silent())
        await self.guard.start("s", **self.info)

    async def restart(self) -> None:
        """Another process takes the session up from what was stored."""
        state = json.loads(json.dumps(await self.guard.dump()))
        self.guard = GuardedEngine(self.make(), log=Silent())
        await self.guard.load(state)
        await self.guard.start("s", **self.info, reason="resume")
        assert await self.guard.dump() == state

    def say(self, messages: Sequence[Any]) -> None:
        """Messages arrive and are stored, as a host would store them; what is no message it would not."""
        sound = (wire(message) for message in sanitize(messages, opening=False))
        self.transcript += [self._stored(message) for message in sound]  # type: ignore[arg-type]

    @property
    def window(self) -> int:
        """Tokens."""
        return int(self.info["context_length"])

    async def compact(self, *, force: bool) -> bool:
        """One pass, checked; whether it changed anything."""
        before = self.transcript
        given_one = copy.deepcopy(before)
        prompt = OVERHEAD + tokens(before)
        strikes = (await self.guard.dump()).get("strikes", {}).get("count", 0)
        result, outcome = await self.guard.compress(before, current_tokens=prompt, force=force)
        assert before == given_one
        after = reconcile(before, sanitize(result), COUNTER)
        if [note_of(m).get("id") for m in after] == [note_of(m).get("id") for m in before]:
            assert outcome.error
            if not force and not outcome.aborted:
                assert (await self.guard.dump()).get("strikes", {}).get("count", 0) == strikes + 1
            return False
        self._look(before, after, force=force)
        self.transcript = [message if "id" in note_of(message) else self._stored(message) for message in after]
        self._reachable(before)
        self.compactions += 1
        return True

    def _look(self, before: list[Message], after: list[Message], *, force: bool) -> None:
        assert flaws(after) == []
        assert tokens(after) <= tokens(before) * (1.0 if force else 0.9)
        newest = max(sum(COUNTER.message(m) for m in before[-4:]), 1)
        assert OVERHEAD + tokens(after) <= max(self.window, OVERHEAD + newest + self.window // 4)
        made = [message for message in after if "id" not in note_of(message)]
        said = "".join(
            text_of(message) for message in made if is_summary(message) and not note_of(message).get("merged")
        )
        assert SECRET not in said
        assert SECRET not in str([note_of(message).get("identifiers") for message in made if is_summary(message)])
        wanted = next((m for m in reversed(before) if is_request(m)), None)
        if wanted is None:
            return
        place = max((index for index, m in enumerate(after) if is_summary(m)), default=0)
        shown = "\n".join(text_of(message) for message in after[place:])
        assert own_words(wanted) in shown

    def _reachable(self, before: list[Message]) -> None:
        """Every message that was valid before is one of the new transcript or what one derives from."""
        seen: set[str] = set()
        waiting = [note_of(message)["id"] for message in self.transcript]
        while waiting:
            row = waiting.pop()
            if row not in seen:
                seen.add(row)
                waiting += note_of(self.rows[row]).get("derived_from", [])
        assert {note_of(message)["id"] for message in sanitize(before) if "id" in note_of(message)} <= seen

    def _stored(self, message: Message) -> Message:
        row = f"m{len(self.rows)}"
        note = {"tokens": COUNTER.message(message), "at": float(len(self.rows)), "id": row}
        if not is_summary(message):
            note["identifiers"] = found(message)
        self.rows[row] = json.loads(json.dumps(noted(message, **note)))
        return self.rows[row]


def own_words(message: Message) -> str:
    """Return a person's words, without notes that were merged in front of them."""
    text = text_of(message)
    return text.rpartition("=== end of notes; the live conversation goes on below ===")[2].strip("\n")
