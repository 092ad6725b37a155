"""`python -m tests.bench_recall`: the share of a question's evidence that the first passages show, beside the search
that wants every word; and what a search costs in a large store."""

from __future__ import annotations

import argparse
import asyncio
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from gateway.domain.message import Message, noted, text_of
from gateway.runtime.clock import SystemClock
from gateway.store.port import Store
from gateway.store.sqlite import SqliteStore
from tests.bench.table import Row, milliseconds, percentile, render
from tests.bench_recall.dialogues import Dialogue, dialogue
from tests.support.store_kit import in_session, key, step

Search = Callable[[str, int], Awaitable[Sequence[str]]]

SEEDS = range(1, 9)
LIMITS = (5, 10)
_WORD = re.compile(r"\w+")


async def fill(store: Store, life: Dialogue, chat: str) -> None:
    """Store a dialogue as one session of a chat."""
    claim, session = await in_session(store, session_id=f"s{chat}", chat=chat)
    messages = [noted(Message(role=who, content=text), at=at) for who, at, text in life.messages]  # type: ignore[typeddict-item]
    for first in range(0, len(messages), 300):
        session = await store.session(session.id)
        await store.record_step(claim.lease, session.ref, claim.item, step(*messages[first : first + 300]))


async def recall(life: Dialogue, search: Search) -> dict[tuple[str, int], list[float]]:
    """(kind, limit) → for each question the share of its evidence that was shown."""
    shares = defaultdict(list)
    for question in life.questions:
        wanted = {life.messages[place][2] for place in question.evidence}
        for limit in LIMITS:
            shown = set(await search(question.text, limit))
            for kind in (question.kind, "all"):
                shares[kind, limit].append(len(wanted & shown) / len(wanted))
    return shares


def every_word(life: Dialogue) -> Search:
    """The search that wants every word of the question, the newest message first."""
    texts = [text for _, _, text in life.messages]
    words = [set(_WORD.findall(text.casefold())) for text in texts]

    async def search(question: str, limit: int) -> Sequence[str]:
        asked = set(_WORD.findall(question.casefold()))
        hits = [text for text, held in zip(texts, words, strict=True) if asked <= held]
        return hits[::-1][:limit]

    return search


def ours(store: Store, chat: str) -> Search:
    """The store's own search."""

    async def search(question: str, limit: int) -> Sequence[str]:
        passages = await store.search(question, key(chat), limit)
        return [text_of(turn.message) for passage in passages for turn in passage.turns]

    return search


async def quality(store: Store, seeds: Sequence[int]) -> list[Row]:
    """Recall by kind, ours beside the other."""
    own: dict[tuple[str, int], list[float]] = defaultdict(list)
    plain: dict[tuple[str, int], list[float]] = defaultdict(list)
    for seed in seeds:
        life = dialogue(seed)
        await fill(store, life, str(seed))
        for found, search in ((own, ours(store, str(seed))), (plain, every_word(life))):
            for where, shares in (await recall(life, search)).items():
                found[where] += shares
    return [
        Row(
            f"{kind}, recall@{limit} ({len(own[kind, limit])} questions)",
            f"{_mean(own[kind, limit]):.3f}",
            f"every word: {_mean(plain[kind, limit]):.3f}{'; goal ≥ 0.85' if (kind, limit) == ('all', 10) else ''}",
        )
        for kind in ("single-hop", "temporal", "multi-hop", "all")
        for limit in LIMITS
    ]


async def cost(store: Store, *, chat: str, messages: int) -> Row:
    """The time of a search in a chat of so many messages."""
    life = dialogue(100, messages)
    await fill(store, life, chat)
    times = []
    for question in life.questions:
        begun = time.perf_counter()
        await store.search(question.text, key(chat), 10)
        times.append(time.perf_counter() - begun)
    value = f"{milliseconds(percentile(times, 0.5))} / {milliseconds(percentile(times, 0.95))}"
    return Row(f"a search among {messages:,} messages of a chat, p50 / p95", value)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


async def _main(seeds: Sequence[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "legato.db", clock=SystemClock())
        await store.open()
        print(render("Recall of what was said", await quality(store, seeds)))
        rows = [await cost(store, chat=f"of {size}", messages=size) for size in (5_000, 50_000)]
        print(render("Its cost", rows))
        await store.aclose()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.bench_recall", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS), help="which dialogues")
    asyncio.run(_main(parser.parse_args().seeds))
