"""The search of the archive for the facts that a turn needs: the real store, the real tool's answer."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.agent.tools.history import RESULTS, render
from gateway.domain.message import Message, note_of, noted, text_of, wire
from gateway.runtime.clock import SystemClock
from gateway.store.records import Passage
from gateway.store.sqlite import SqliteStore
from tests.bench.context.customers import Life, Need
from tests.bench.context.facts import stands
from tests.support.store_kit import in_session, key, step

FEW, MOST = 5, 10
_AT_ONCE = 300  # messages that wait for one step


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """The facts of a need that the person's own words find: the shares in 5 and in 10 passages, and whether the
    tool's answer shows all."""

    at_5: float
    at_10: float
    shown: bool


async def searched(life: Life) -> Mapping[tuple[int, int], Hits]:
    """The hits of every need of a conversation, by its turn and place in the turn. A turn searches what was said before
    it: neither its own question nor the answer that it is looking for stands in the archive."""
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "legato.db", clock=SystemClock())
        await store.open()
        claim, session = await in_session(store, session_id="s", chat="c")
        waiting: list[Message] = []
        found = {}
        for turn in life.turns:
            if waiting and (turn.needs or len(waiting) > _AT_ONCE):
                session = await store.session(session.id)
                await store.record_step(claim.lease, session.ref, claim.item, step(*waiting))
                waiting = []
            for place, need in enumerate(turn.needs):
                few, told, many = [await store.search(need.words, key("c"), limit) for limit in (FEW, RESULTS, MOST)]
                found[turn.number, place] = _hits(need, few, told, many)
            waiting += map(unstored, turn.messages)
        await store.aclose()
    return found


def unstored(message: Message) -> Message:
    """A message as a store takes it: without an id."""
    note = {name: value for name, value in note_of(message).items() if name != "id"}
    return noted({**wire(message)}, **note)  # type: ignore[typeddict-item]


def _hits(need: Need, few: Sequence[Passage], told: Sequence[Passage], many: Sequence[Passage]) -> Hits:
    answer = "\n".join(render(passage, need.words, str) for passage in told)
    return Hits(
        at_5=_share(need, few),
        at_10=_share(need, many),
        shown=all(stands(answer, fact.value) for fact in need.facts),
    )


def _share(need: Need, passages: Sequence[Passage]) -> float:
    text = "\n".join(text_of(turn.message) for passage in passages for turn in passage.turns)
    return sum(stands(text, fact.value) for fact in need.facts) / len(need.facts)
