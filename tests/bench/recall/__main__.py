"""`python -m tests.bench.recall`: the share of a question's evidence that the first passages show, beside the search
that wants every word: in dialogues of two people, and at a help desk whose customers come back; and what a search and
automatic recall cost in a large store."""

from __future__ import annotations

import argparse
import asyncio
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path

from gateway.domain.message import Message, noted, text_of
from gateway.providers.base import ModelSpec
from gateway.providers.http import http_client
from gateway.providers.openai.chat_completions import ChatCompletions
from gateway.runtime.clock import SystemClock
from gateway.runtime.tokens import TokenCounter
from gateway.store.port import Store
from gateway.store.records import Vector
from gateway.store.shared.vectors import packed
from gateway.store.sqlite import SqliteStore
from tests.bench.context.__main__ import ROWS, seeds
from tests.bench.context.archive import MOST, searched
from tests.bench.context.customers import Life, write
from tests.bench.context.drive import readable, span_of
from tests.bench.context.facts import stands
from tests.bench.recall.dialogues import Dialogue, dialogue
from tests.bench.recall.shares import Embed, kinds
from tests.bench.served import store_at, synced_server
from tests.bench.table import Row, milliseconds, percentile, render
from tests.support.store_kit import in_session, key, step

Search = Callable[[str, int], Awaitable[Sequence[str]]]

LIMITS = (5, 10)
DESK = 32_000  # tokens: the window for which the help desk's conversation is as long as 34 compactions
DESKS = 2  # of them, unless fewer are asked for
SMALL, BIG = 5_000, 50_000  # messages of a chat
TALKS = (180, 900)  # the same of chats whose searches are measured in CPU
LOOKS = 200
NAMED_EACH = 5  # one of so many messages names an invoice and a file
_WORD = re.compile(r"\w+")


async def fill(store: Store, life: Dialogue, chat: str, *, named: bool = False) -> None:
    """Store a dialogue as one session of a chat. `named`: some messages name something."""
    claim, session = await in_session(store, session_id=f"s{chat}", chat=chat)
    messages = [
        noted(Message(role=who, content=f"{text} {_named(place)}" if named and not place % NAMED_EACH else text), at=at)  # type: ignore[typeddict-item]
        for place, (who, at, text) in enumerate(life.messages)
    ]
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


async def quality(store: Store, numbers: Sequence[int]) -> list[Row]:
    """Recall by kind in dialogues, ours beside the other."""
    own: dict[tuple[str, int], list[float]] = defaultdict(list)
    plain: dict[tuple[str, int], list[float]] = defaultdict(list)
    for seed in numbers:
        life = dialogue(seed)
        await fill(store, life, str(seed))
        for found, search in ((own, ours(store, str(seed))), (plain, every_word(life))):
            for where, shares in (await recall(life, search)).items():
                found[where] += shares
    return _rows(own, plain, ("single-hop", "temporal", "multi-hop", "other words", "all"))


async def desk(numbers: Sequence[int]) -> list[Row]:
    """Recall by kind at the help desk."""
    own: dict[tuple[str, int], list[float]] = defaultdict(list)
    plain: dict[tuple[str, int], list[float]] = defaultdict(list)
    shown: list[float] = []
    for seed in numbers:
        life = write(seed, span_of(DESK), TokenCounter(), rows=ROWS[DESK])
        every = _every_word_of(life)
        for (turn, place), hits in (await searched(life)).items():
            need = life.turns[turn].needs[place]
            texts = every(need.words, turn)
            shown.append(float(hits.shown))
            for kind in (need.way, "all"):
                for limit, share in ((5, hits.at_5), (MOST, hits.at_10)):
                    own[kind, limit].append(share)
                    view = "\n".join(texts[:limit])
                    plain[kind, limit].append(sum(stands(view, fact.value) for fact in need.facts) / len(need.facts))
    rows = _rows(own, plain, (*sorted({kind for kind, _ in own} - {"all"}), "all"))
    return [*rows, Row(f"shown by one call of the tool ({len(shown)} needs)", f"{_mean(shown):.3f}")]


def _every_word_of(life: Life) -> Callable[[str, int], list[str]]:
    """The search that wants every word, the newest message first, among what was said before a turn."""
    texts = [[readable(message) for message in turn.messages] for turn in life.turns]
    words = [[set(_WORD.findall(text.casefold())) for text in each] for each in texts]

    def search(question: str, turn: int) -> list[str]:
        asked = set(_WORD.findall(question.casefold()))
        before = zip(chain.from_iterable(texts[:turn]), chain.from_iterable(words[:turn]), strict=True)
        return [text for text, held in before if asked <= held][::-1]

    return search


def _rows(
    own: Mapping[tuple[str, int], Sequence[float]],
    plain: Mapping[tuple[str, int], Sequence[float]],
    kinds: Sequence[str],
) -> list[Row]:
    return [
        Row(
            f"{kind}, recall@{limit} ({len(own[kind, limit])} questions)",
            f"{_mean(own[kind, limit]):.3f}",
            f"every word: {_mean(plain[kind, limit]):.3f}{'; goal ≥ 0.85' if (kind, limit) == ('all', 10) else ''}",
        )
        for kind in kinds
        for limit in LIMITS
    ]


async def costs(store: Store, goals: tuple[int, int]) -> list[Row]:
    """The time of a search in a store of 100,000 messages: half of them one chat's, the rest ten others'. `goals`: ms
    in a small chat and in the big one."""
    lives = {f"small {number}": dialogue(100 + number, SMALL) for number in range(10)} | {"big": dialogue(99, BIG)}
    for chat, life in lives.items():
        await fill(store, life, chat, named=True)
    await store.search("everything is indexed by now", key("big"), 1)
    rows = []
    for chat, goal in zip(("small 0", "big"), goals, strict=True):
        rows.append(await _cost(store, chat, lives[chat], goal))
        rows += [await _look(store, chat, len(lives[chat].messages), there=there) for there in (True, False)]
    return [*[await _cpu(store, length) for length in TALKS], *rows]


async def _cpu(store: Store, length: int) -> Row:
    """The mean CPU of a search in a chat, with this process's part alone."""
    life = dialogue(length, length)
    await fill(store, life, f"talk of {length}")
    await store.search("everything is indexed by now", key(f"talk of {length}"), 1)
    begun = time.process_time()
    for question in life.questions:
        await store.search(question.text, key(f"talk of {length}"), 10)
    value = milliseconds((time.process_time() - begun) / len(life.questions))
    return Row(f"CPU of a search in a chat of {length} messages, mean", value, "goal ≤ 5 ms")


async def _cost(store: Store, chat: str, life: Dialogue, goal: int) -> Row:
    times = []
    for question in life.questions:
        begun = time.perf_counter()
        await store.search(question.text, key(chat), 10)
        times.append(time.perf_counter() - begun)
    value = f"{milliseconds(percentile(times, 0.5))} / {milliseconds(percentile(times, 0.95))}"
    return Row(f"a search in a chat of {len(life.messages):,} messages, p50 / p95", value, f"goal ≤ {goal} ms")


def _named(place: int) -> str:
    return f"It is INV-{place} in /srv/data/{place}.csv"


async def _look(store: Store, chat: str, length: int, *, there: bool) -> Row:
    """The time of the look for three values that a message names."""
    times = []
    for place in range(0, LOOKS * NAMED_EACH, NAMED_EACH):
        one, other = (place * 7 % length, place * 11 % length) if there else (length + place, length + 7 * place)
        values = [f"INV-{one}", f"/srv/data/{other}.csv", f"INV-{other}"]
        begun = time.perf_counter()
        found = await store.holding(values, key(chat), 8)
        times.append(time.perf_counter() - begun)
        assert all(map(bool, found)) == there
    value = f"{milliseconds(percentile(times, 0.5))} / {milliseconds(percentile(times, 0.95))}"
    return Row(f"three values that {'stand there' if there else 'nobody said'}, p50 / p95", value, "goal ≤ 5 ms")


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def embedder(server: ChatCompletions, address: str, model: str) -> Embed:
    """What asks the embedding server at an address."""
    spec = ModelSpec(provider="openai", name=model, base_url=address, context_length=8_192)

    async def embed(texts: Sequence[str]) -> Sequence[Vector]:
        return [packed(each) for each in (await server.embed(spec, texts)).vectors] if texts else []

    return embed


async def _main(numbers: Sequence[int], *, only_cost: bool, only_kinds: bool, embeddings: Sequence[str]) -> None:
    server = ChatCompletions(http_client(), str)
    embed = embedder(server, *embeddings) if embeddings else None
    with tempfile.TemporaryDirectory() as folder:
        store: Store = SqliteStore(Path(folder) / "legato.db", clock=SystemClock())
        await store.open()
        if not only_cost:
            title = "Recall by kind of question: turn any / turn all / session any / session all"
            print(render(title, await kinds(store, numbers, embed)))
        await server.aclose()
        if only_kinds:
            await store.aclose()
            return
        if not only_cost:
            print(render("Recall of what was said, in dialogues", await quality(store, numbers)))
            print(render("Recall of what was said, at a help desk", await desk(numbers[:DESKS])))
        print(render(f"Its cost in a store of {10 * SMALL + BIG:,} messages, SQLite", await costs(store, (10, 15))))
        await store.aclose()
    with synced_server() as redis, redis.client() as client:
        client.config_set("appendfsync", "no")  # only looks are measured
        store = store_at(redis.url)
        await store.open()
        print(render("The same on Redis", await costs(store, (20, 20))))
        await store.aclose()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.bench.recall", description=__doc__)
    parser.add_argument("--seeds", type=seeds, default=seeds("1-8"), help="which dialogues, as 1-8")
    parser.add_argument("--cost", action="store_true", help="only what a search costs")
    parser.add_argument("--kinds", action="store_true", help="only recall by kind of question")
    parser.add_argument("--embeddings", nargs=2, metavar=("URL", "MODEL"), default=(), help="search by meaning, too")
    given = parser.parse_args()
    asyncio.run(_main(given.seeds, only_cost=given.cost, only_kinds=given.kinds, embeddings=given.embeddings))
