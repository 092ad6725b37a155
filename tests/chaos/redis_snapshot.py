"""The content of a Redis store after a run, read through the port; the outcomes of accepted events are read from the
items themselves, because the port does not tell them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import redis.asyncio

from gateway.domain.chat import SessionKey
from gateway.domain.message import HOST, Message
from gateway.runtime.clock import SystemClock
from gateway.store.kinds import ITEM, OWED, UNSENT_ROWS
from gateway.store.port import Store
from gateway.store.redis import RedisStore
from gateway.store.redis.records import index_key
from tests.chaos.snapshot import Snapshot

EVERYTHING: Final = 100_000


async def redis_snapshot(url: str) -> Snapshot:
    """Everything, in the shape that the checks know."""
    async with redis.asyncio.from_url(url, decode_responses=True) as client:
        inbox = await _inbox(client)
    store = RedisStore(url, clock=SystemClock())
    await store.open()
    try:
        return await _snapshot(store, inbox)
    finally:
        await store.aclose()


async def raw_messages(client: Any) -> dict[str, str]:
    """Every message row as it lies there, by its name: none may ever change or vanish."""
    names = [name async for name in client.scan_iter(match="{p??}:message:*", count=1_000)]
    return dict(zip(names, await client.mget(names), strict=True)) if names else {}


async def unfinished(client: Any) -> dict[str, int]:
    """Return the unfinished work: items, rows, hooks."""
    left: dict[str, int] = {}
    for what, index in (("hooks", OWED), ("unsent", UNSENT_ROWS)):
        names = [name async for name in client.scan_iter(match=f"{{p??}}:{index_key(index, '')}*", count=1_000)]
        left[what] = sum([await client.zcard(name) for name in names])
    items = [name async for name in client.scan_iter(match="{p??}:item:*", count=1_000)]
    texts = await client.mget(items) if items else []
    return {**left, "waiting": len([text for text in texts if '"outcome":' not in text])}


async def accepted(client: Any, platform: str) -> set[str]:
    """The events of a platform that the store has."""
    begin = f"{{p??}}:event:{platform}/"
    return {name[len(begin) :] async for name in client.scan_iter(match=f"{begin}*", count=1_000)}


async def _inbox(client: Any) -> dict[str, tuple[Any, ...]]:
    names = sorted([name async for name in client.scan_iter(match="{p??}:item:*", count=1_000)], key=_number)
    rows: dict[str, tuple[Any, ...]] = {}
    for text in await client.mget(names) if names else ():
        item = ITEM.record(text.partition(" ")[2])
        assert item.inbound is not None
        rows[item.inbound.event_id] = (item.number, item.key.text, item.outcome, item.attempts, item.bypass)
    return rows


def _number(name: str) -> int:
    return int(name.rpartition(":")[2])


async def _snapshot(store: Store, inbox: dict[str, tuple[Any, ...]]) -> Snapshot:
    messages: dict[int, tuple[Any, ...]] = {}
    transcripts: dict[tuple[str, int], int] = {}
    sessions: dict[str, tuple[Any, ...]] = {}
    compactions: list[tuple[Any, ...]] = []
    tips: dict[str, str] = {}
    for session in reversed(await store.sessions(None, EVERYTHING)):
        sessions[session.id] = (
            str(session.key),
            session.end_reason,
            session.ended_at,
            session.hook,
            session.continuation_id,
            session.started_at,
        )
        for position, message in enumerate(await store.transcript(session)):
            number, row = _message(session.key, session.id, message)
            messages.setdefault(number, row)
            transcripts[session.id, position] = number
        for each in await store.compactions(session.id):
            if each.parent_id == session.id:
                compactions.append((len(compactions), each.trigger, each.parent_id, each.child_id))
        tip = await store.tip(session.key)
        if tip is not None:
            tips[str(session.key)] = tip.id
    rows = reversed(await store.outbox(None, EVERYTHING))
    return Snapshot(
        messages=dict(sorted(messages.items())),
        transcripts=transcripts,
        inbox=inbox,
        sessions=sessions,
        outbox={row.id: (row.kind, row.text, row.answers, row.state) for row in rows},
        compactions=compactions,
        tips=tips,
    )


def _message(key: SessionKey, session_id: str, message: Message) -> tuple[int, tuple[Any, ...]]:
    note: Mapping[str, Any] = message.get(HOST, {})
    sources = [int(each) for each in note.get("derived_from", ())]
    body = {name: value for name, value in message.items() if name != HOST}
    kept = {**note, "derived_from": sources} if sources else dict(note)
    return int(note["id"]), (str(key), session_id, message["role"], json.dumps(body), json.dumps(kept), 0, 0.0)
