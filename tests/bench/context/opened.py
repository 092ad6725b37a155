"""Whether a chapter of the notes leads to what was said at the beginning: a searcher without a model asks twice.

A conversation is kept by the compressor in a window, with the real store behind it. At its end everything is asked for
that was said in its first tenth and needed later. The searcher searches once, by the person's own words, and reads one
chapter: the one in which the first find stands.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from gateway.agent.tools.history import RESULTS, HistoryReadTool, render
from gateway.context.archive import Chapter, earlier, table
from gateway.context.compressor import Compressor
from gateway.domain.message import handle, is_summary, note_of
from gateway.runtime.clock import SystemClock
from gateway.runtime.redaction import Redactor
from gateway.runtime.tokens import TokenCounter
from gateway.store.records import Found, Passage
from gateway.store.sqlite import SqliteStore
from tests.bench.context.archive import unstored
from tests.bench.context.customers import Life, Need, write
from tests.bench.context.drive import SETTINGS, Engine, span_of
from tests.bench.context.facts import stands
from tests.bench.table import Row
from tests.support.store_kit import in_session, key, step

FIRST: Final = 10  # the first of so many parts of a conversation
LENGTH: Final = 12  # spans: a thousand turns in a window of 32,000 tokens


class Calls:
    """What the tools for history are given."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def recall(self, words: str, limit: int) -> Sequence[Passage]:
        """The passages that answer."""
        return await self._store.search(words, key("c"), limit)

    async def around(self, message_id: str, reach: int) -> Sequence[Found]:
        """A message among its neighbours."""
        return await self._store.around(key("c"), message_id, reach)


def asked(life: Life) -> Iterator[Need]:
    """What was said in the first part and was needed later, each fact once, in the words of its last need."""
    first = {fact.number for turn in life.turns[: len(life.turns) // FIRST] for fact in turn.plants}
    found: dict[int, Need] = {}
    for turn in life.turns[len(life.turns) // FIRST :]:
        for need in turn.needs:
            if first.issuperset(fact.number for fact in need.facts):
                found |= dict.fromkeys((fact.number for fact in need.facts), need)
    yield from {id(need): need for need in found.values()}.values()


async def measure(seed: int, window: int, counter: TokenCounter) -> list[Row]:
    """The shares that one call finds, and two."""
    life = write(seed, span_of(window), counter, length=LENGTH, rows=4)
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "legato.db", clock=SystemClock())
        await store.open()
        kept = await _kept(life, store, window, counter)
        summary = next(each for each in kept.transcript if is_summary(each))
        chapters = earlier(note_of(summary))
        found = [await _found(need, chapters, Calls(store)) for need in asked(life)]
        await store.aclose()
    lines = f"{len(chapters)} chapters, {counter.text(table(chapters))} tokens, {len(kept.passes)} compactions"
    shares = " / ".join(f"{sum(each) / len(found):.3f}" for each in zip(*found, strict=True))
    return [Row(f"seed {seed}: {len(life.turns):,} turns, {len(found)} needs of the first tenth", shares, lines)]


async def _kept(life: Life, store: SqliteStore, window: int, counter: TokenCounter) -> Engine:
    engine = Compressor(SETTINGS, counter=counter, clock=SystemClock(), redact=Redactor())
    engine.on_session_start("s", context_length=window)
    kept = Engine(engine)
    claim, session = await in_session(store, session_id="s", chat="c")
    for turn in life.turns:
        session = await store.session(session.id)
        said = step(*map(unstored, turn.messages))
        kept.transcript += await store.record_step(claim.lease, session.ref, claim.item, said)
        await kept.fit()
    return kept


async def _found(need: Need, chapters: Sequence[Chapter], calls: Calls) -> tuple[bool, bool]:
    """Whether the first call shows all facts of a need, and whether both do."""
    passages = await calls.recall(need.words, RESULTS)
    view = "\n".join(render(each, need.words, str) for each in passages)
    once = all(stands(view, fact.value) for fact in need.facts)
    hit = next((int(note_of(each.hit.message)["id"]) for each in passages), 0)
    chapter = next((each for each in chapters if int(each.begin) <= hit <= int(each.end)), chapters[0])
    span = f"{handle(chapter.begin)}-{handle(chapter.end)}"
    view += await HistoryReadTool(str).run({"message": span, "words": need.words}, calls)
    return once, all(stands(view, fact.value) for fact in need.facts)
