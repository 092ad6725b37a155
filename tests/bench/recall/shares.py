"""Recall by kind of question, ours beside plain FTS5 on the same texts: by {turn, session} and {any, all}."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeAlias

import apsw

from gateway.domain.message import Message, noted, text_of
from gateway.store.port import Store
from gateway.store.records import Meaning, Vector
from gateway.store.shared.vectors import NONE
from tests.bench.recall import unseen
from tests.bench.recall.asked import SESSION, Talk, talk
from tests.bench.table import Row
from tests.support.store_kit import in_session, key, step

LIMITS: Final = (5, 10)
KINDS: Final = ("clean", "slips", "compounds", "Arabic", "paraphrases", "hops", "lists", "long", "long Chinese")
MEASURES: Final = ("turn any", "turn all", "session any", "session all")
_WORD: Final = re.compile(r"\w+")
_HAN: Final = re.compile(r"[\u4e00-\u9fff]+")

Places: TypeAlias = Sequence[int]
Search: TypeAlias = Callable[[str, int], Awaitable[Places]]
Shares: TypeAlias = dict[tuple[str, int, str], list[float]]


Embed: TypeAlias = Callable[[Sequence[str]], Awaitable[Sequence[Vector]]]


async def kinds(store: Store, numbers: Sequence[int], embed: Embed | None = None) -> list[Row]:
    """One row for each kind of question and number of passages. `embed`: searches go by meaning, too."""
    own: Shares = defaultdict(list)
    plain: Shares = defaultdict(list)
    for seed in numbers:
        for number, said in enumerate([talk(seed), *unseen.talks(seed)]):
            await measured(said, await ours(store, said, f"asked {seed} {number}", embed), own)
            await measured(said, plain_fts(said), plain)
    return [
        Row(
            f"{kind} @{limit} ({len(own[kind, limit, MEASURES[0]])} questions)",
            _figures(own, kind, limit),
            f"plain FTS5: {_figures(plain, kind, limit)}",
        )
        for kind in (*KINDS, *unseen.KINDS)
        for limit in LIMITS
    ]


def _figures(shares: Mapping[tuple[str, int, str], Sequence[float]], kind: str, limit: int) -> str:
    found = (shares[kind, limit, measure] for measure in MEASURES)
    return " / ".join(f"{sum(each) / len(each):.3f}" for each in found)


async def measured(said: Talk, search: Search, shares: Shares) -> None:
    """Ask every question, and enter what was found."""
    for question in said.questions:
        for limit in LIMITS:
            shown = set(await search(question.text, limit))
            wanted = set(question.evidence)
            for name, sought, found in (
                ("turn", wanted, shown),
                ("session", {each // SESSION for each in wanted}, {each // SESSION for each in shown}),
            ):
                shares[question.kind, limit, f"{name} any"].append(float(bool(sought & found)))
                shares[question.kind, limit, f"{name} all"].append(float(sought <= found))


async def ours(store: Store, said: Talk, chat: str, embed: Embed | None) -> Search:
    """The store's search, in a chat where all this was said."""
    claim, session = await in_session(store, session_id=f"s{chat}", chat=chat)
    messages = [
        noted(Message(role="assistant" if place % 2 else "user", content=text), at=1_750_000_000.0 + 3_600 * place)
        for place, text in enumerate(said.texts)
    ]
    for first in range(0, len(messages), 300):
        session = await store.session(session.id)
        await store.record_step(claim.lease, session.ref, claim.item, step(*messages[first : first + 300]))
    while embed is not None and (some := await store.unembedded("bench", 0, 32)):
        read = [each for each in some if each.text]
        kept = {each.message_id: NONE for each in some}
        kept |= dict(zip([each.message_id for each in read], await embed([each.text for each in read]), strict=True))
        await store.keep_vectors("bench", some[0].key, kept)
    place_of = {text: place for place, text in enumerate(said.texts)}

    async def search(words: str, limit: int) -> Places:
        meaning = Meaning(model="bench", vector=(await embed([words]))[0]) if embed is not None else None
        passages = await store.search(words, key(chat), limit, meaning)
        return [place_of[text_of(turn.message)] for passage in passages for turn in passage.turns]

    return search


def plain_fts(said: Talk) -> Search:
    """FTS5's own ranking: any word, Porter's stems, Chinese by its pairs; a message with the two before and after."""
    file = apsw.Connection(":memory:")
    file.execute("CREATE VIRTUAL TABLE said USING fts5(text, tokenize='porter unicode61')")
    file.executemany("INSERT INTO said(rowid, text) VALUES (?, ?)", ((n, _paired(t)) for n, t in enumerate(said.texts)))

    async def search(words: str, limit: int) -> Places:
        match = " OR ".join(f'"{each}"' for each in dict.fromkeys(_WORD.findall(_paired(words))))
        found = file.execute("SELECT rowid FROM said WHERE said MATCH ? ORDER BY rank LIMIT ?", (match, limit))
        return [place for (hit,) in found for place in range(max(0, hit - 2), min(len(said.texts), hit + 3))]

    return search


def _paired(text: str) -> str:
    return _HAN.sub(lambda run: " ".join(run[0][n : n + 2] for n in range(len(run[0]) - 1)) + " ", text)
