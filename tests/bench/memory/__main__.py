"""`python -m tests.bench.memory`: what memory keeps of seeded lives, on both stores, beside a bot without a memory that
searches once in what was said."""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import structlog

from gateway.agent.memory.snapshot import MemorySettings, snapshot_in
from gateway.domain.chat import SessionKey
from gateway.domain.message import text_of
from gateway.providers.base import ModelRequest
from gateway.runtime.structs import replace
from gateway.store.port import Store
from gateway.store.redis import RedisStore
from tests.bench.memory.lives import VALUES, Life, Said, lives
from tests.bench.memory.reader import QUESTION, flush, with_memory, without_memory
from tests.bench.table import Row, render
from tests.support.fakes import ManualClock
from tests.support.gateway import FakeAdapter, FakeModel, Live, config_in, running
from tests.support.redis_server import RedisServer

_START = 1_760_000_000.0
_DAY = 86_400.0
_COMPACTED = 5  # the session in the middle of which each person compresses the conversation


@dataclass(slots=True)
class Figures:
    """The results of a policy over all lives."""

    asked: int = 0
    shown: int = 0  # the right value stands in the snapshot
    found: int = 0  # it stands there, or in the answer of one search
    stale: int = 0  # an earlier value is shown as if it held
    foreign: int = 0  # a request holds a value of another person or chat
    taken: int = 0  # a forwarded value counts as a fact about the person
    unsourced: int = 0  # a fact whose message does not say it
    requests: int = 0
    facts: int = 0
    snapshots: list[int] = field(default_factory=list)  # tokens


async def figures(folder: Path, seed: int, *, remembers: bool, store: Store | None = None) -> Figures:
    """Live all lives, then ask each person's questions in a new session."""
    all_lives = lives(seed)
    clock = ManualClock(_START)
    model = FakeModel(with_memory if remembers else without_memory, flush=flush)
    config = config_in(folder, memory=MemorySettings(flush=remembers))
    counted = Figures()
    async with running(folder, config=config, model=model, clock=clock, store=store) as live:
        for week in range(max(len(life.sessions) for life in all_lives)):
            await asyncio.gather(*(_session(live, life, week) for life in all_lives if week < len(life.sessions)))
            live.adapter.sent.clear()  # each wait for an answer looks through it
            clock.jump(6 * _DAY if week % 2 else 9 * _DAY)  # every other pause is longer than a session lasts
        for life in all_lives:
            await _say(live, life, "/new")
            await _ask(live, model, life, counted)
            await _look(live, life, counted)
        _compare(model, all_lives, counted)
    return counted


async def _session(live: Live, life: Life, week: int) -> None:
    for place, said in enumerate(life.sessions[week]):
        await _say(live, life, said)
        if week == _COMPACTED and place == 2:
            await _say(live, life, "/compress")
    if week % 2:
        await _say(live, life, "/new")


async def _say(live: Live, life: Life, said: Said | str) -> None:
    where = {"chat": life.chat, "user": life.person, "chat_type": "group" if life.in_group else "direct"}
    text, own = (said, None) if isinstance(said, str) else (said.text, "" if said.how == "forwarded" else None)
    inbound = replace(live.adapter.inbound(text, **where), own=own)
    await live.adapter.receive(inbound)
    asked = partial(_asked, live.adapter, inbound.event_id)
    await live.adapter.until(lambda: asked() or live.adapter.answer_to(inbound.event_id))
    if asked():  # whether somebody else's words may be kept
        await live.ask("/deny", **where)
    await live.answer(inbound.event_id)


def _asked(adapter: FakeAdapter, event_id: str) -> bool:
    return any(row.kind == "question" and row.answers == event_id for row in adapter.sent)


async def _ask(live: Live, model: FakeModel, life: Life, counted: Figures) -> None:
    """Look for each answer in the snapshot of a new session, and in the result of the search for its question."""
    for question, value in life.questions(random.Random(life.person)):
        first = len(model.requests)
        await _say(live, life, f"{QUESTION}{question}")
        prompt = snapshot_in(text_of(model.requests[first].messages[0]))
        result = _result(model.requests[first:])
        counted.asked += 1
        counted.shown += value in prompt
        counted.found += value in prompt or value in result
        lines = [line for line in f"{prompt}\n{result}".splitlines() if "(no longer true" not in line]
        counted.stale += any(old in line for line in lines for old in life.former)
    counted.snapshots.append(live.gateway.agents.metering.counter.text(prompt))


def _result(requests: Sequence[ModelRequest]) -> str:
    last = [text_of(each.messages[-1]) for each in requests if each.messages[-1]["role"] == "tool"]
    return last[-1] if last else ""


async def _look(live: Live, life: Life, counted: Figures) -> None:
    """Hold every fact against the message that it names."""
    scope = SessionKey(platform="fake", chat=life.chat, user=life.person if life.in_group else None)
    memory = await live.store.memory(scope)
    said: dict[str, str] = {}
    for session in await live.store.sessions(scope, 1_000):
        for message in await live.store.transcript(session):
            said[message.get("_legato", {}).get("id", "")] = text_of(message)
    for fact in memory.facts:
        value = next((each for each in life.values if each in fact.text), None)
        counted.facts += fact.is_current
        counted.unsourced += value is None or value not in said.get(fact.message_id, "") or fact.said_by != life.person
        counted.taken += fact.about == "person" and value in life.others


def _compare(model: FakeModel, all_lives: Sequence[Life], counted: Figures) -> None:
    """Look in every request, flushes included, for what belongs to somebody else than its newest speaker."""
    owner = {value: (life.person, life.chat) for life in all_lives for value in life.values}
    for request in (*model.requests, *model.flushes):
        text = "\n".join(text_of(message) for message in request.messages)
        counted.requests += 1
        counted.foreign += len({owner[value] for value in VALUES.findall(text) if value in owner}) > 1


def _rows(ours: Figures, plain: Figures | None) -> list[Row]:
    def beside(name: str, share: float) -> str:
        return f"without memory: {name.format(share)}" if plain else ""

    right = ours.found / ours.asked
    return [
        Row(
            f"right answer in the snapshot or one search away ({ours.asked} questions)",
            f"{right:.3f}",
            f"goal ≥ 0.95{'; ' + beside('{:.3f}', plain.found / plain.asked) if plain else ''}",
        ),
        Row("  of these in the snapshot", f"{ours.shown / ours.asked:.3f}", beside("{:.3f}", 0.0)),
        Row(
            "answers that show an earlier value as if it held",
            str(ours.stale),
            f"goal 0{'; ' + beside('{:.0f}', plain.stale) if plain else ''}",
        ),
        Row(f"requests with a value of another person or chat ({ours.requests:,})", str(ours.foreign), "goal 0"),
        Row("facts about a person that somebody else said", str(ours.taken), "goal 0"),
        Row(f"facts that name no message that says them ({ours.facts} hold)", str(ours.unsourced), "goal 0"),
        Row(
            "tokens of a snapshot, mean / most",
            f"{sum(ours.snapshots) / len(ours.snapshots):.0f} / {max(ours.snapshots)}",
        ),
    ]


async def _main(seed: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for each in ("ours", "plain", "redis"):
            (folder / each).mkdir()
        plain = await figures(folder / "plain", seed, remembers=False)
        ours = await figures(folder / "ours", seed, remembers=True)
        print(render("Memory of ten lives over two months, SQLite", _rows(ours, plain)))
        server = RedisServer(folder / "server")
        server.start()
        try:
            store = RedisStore(server.url, clock=ManualClock(_START), lease_seconds=600.0)
            there = await figures(folder / "redis", seed, remembers=True, store=store)
        finally:
            server.kill()
        print(render("The same on Redis", _rows(there, None)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    asyncio.run(_main(parser.parse_args().seed))
