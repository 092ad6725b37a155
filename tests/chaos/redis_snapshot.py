"""The content of a Redis store after a run, read through the port; the outcomes of accepted events are read from the
items themselves, because the port does not tell them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import redis.asyncio

from gateway.domain.chat import Inbound, SessionKey
from gateway.domain.message import HOST, Message
from gateway.runtime.clock import SystemClock
from gateway.store.port import Store
from gateway.store.redis import RedisStore
from gateway.store.shared.documents import item_from
from tests.chaos.snapshot import Snapshot

EVERYTHING: Final = 100_000
_TAGS: Final = [f"{{p{number:02}}}:" for number in range(16)]


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
    names = [name async for name in client.scan_iter(match="*:message:*", count=1_000)]
    return dict(zip(names, await client.mget(names), strict=True)) if names else {}


async def unfinished(client: Any) -> dict[str, int]:
    """Return the unfinished work: items, rows, hooks."""
    pipe = client.pipeline(transaction=False)
    for tag in _TAGS:
        pipe.hgetall(f"{tag}figures")
        pipe.zcard(f"{tag}hooks")
    answers = await pipe.execute()
    figures, hooks = answers[::2], answers[1::2]
    left = {"hooks": sum(hooks)}
    for what in ("waiting", "unsent"):
        left[what] = sum(int(count) for each in figures for name, count in each.items() if name.startswith(what))
    return left


async def accepted(client: Any, platform: str) -> set[str]:
    """The events of a platform that the store has."""
    pipe = client.pipeline(transaction=False)
    for tag in _TAGS:
        pipe.hkeys(f"{tag}events:{platform}")
    return {event for events in await pipe.execute() for event in events}


async def _inbox(client: Any) -> dict[str, tuple[Any, ...]]:
    names = sorted([name async for name in client.scan_iter(match="*:item:*", count=1_000)], key=_number)
    pipe = client.pipeline(transaction=False)
    for name in names:
        pipe.hgetall(name)
    rows: dict[str, tuple[Any, ...]] = {}
    for name, fields in zip(names, await pipe.execute(), strict=True):
        inbound: Inbound = item_from([str(_number(name)), fields["key"], fields["inbound"], fields["at"], 1]).inbound
        rows[inbound.event_id] = (
            _number(name),
            fields["key"],
            fields.get("outcome"),
            int(fields.get("attempts", 0)),
            "bypass" in fields,
        )
    return rows


def _number(name: str) -> int:
    return int(name.rpartition(":")[2])


def _row_id(message_id: str) -> int:
    """Message ids are a partition's number and its name; as one number, in the order of each."""
    number, _, partition = str(message_id).partition("p")
    return int(number) * 100 + int(partition)


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
    sources = [_row_id(each) for each in note.get("derived_from", ())]
    body = {name: value for name, value in message.items() if name != HOST}
    kept = {**note, "derived_from": sources} if sources else dict(note)
    return _row_id(note["id"]), (str(key), session_id, message["role"], json.dumps(body), json.dumps(kept), 0, 0.0)
