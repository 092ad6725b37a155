"""A process of this release beside one of the next: what that one adds is passed over, and kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import redis

from gateway.runtime.clock import SystemClock
from gateway.store.kinds import KINDS
from gateway.store.records import ToolIntent
from gateway.store.redis import RedisStore
from gateway.store.redis.admission import META
from tests.support.store_kit import START, contents, exchange, in_session, key, outbound, put, step
from tests.support.waiting import eventually

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_server"]

LATER = "of the next release"


def improve(client: redis.Redis) -> int:
    """Write what a later release might: another field in every record."""
    improved = 0
    for name in client.scan_iter("{p*}:*"):
        kind = name.split(":")[1]
        if kind in {each.name for each in KINDS} - {"member"} and client.type(name) == "string":
            version, _, document = client.get(name).partition(" ")
            client.set(name, f"{version} {json.dumps({**json.loads(document), 'colour': LATER})}")
            improved += 1
    return improved


async def test_what_the_next_release_adds_is_passed_over(redis_server: RedisServer) -> None:
    with redis_server.client() as client:
        client.flushall()
        store = RedisStore(redis_server.url, clock=SystemClock())
        await store.open()
        claim, session = await in_session(store, *exchange(0))
        await store.begin_tools(
            claim.lease, session.ref, claim.item, step(*exchange(1)), [ToolIntent(call_id="c1", tool="shell")]
        )
        await put(store, "e2")
        (row,) = await store.emit([outbound("o1"), outbound("o2")])
        assert improve(client) >= 8
        await store.aclose()

        store = RedisStore(redis_server.url, clock=SystemClock())
        await store.open()
        claim = await store.claim_next("w")
        journal = await store.journal(claim.item)
        assert journal is not None
        assert [intent.tool for intent in journal.intents] == ["shell"]
        present = await store.tip(key())
        assert present is not None
        assert contents(await store.transcript(present)) == [
            "question 0", "answer 0", "question 1", "answer 1",
        ]  # fmt: skip
        record = step(*exchange(2))
        end = await store.finish_turn(claim.lease, present.ref, claim.item, record, "answered", [outbound("o3")])
        assert end.next is not None
        assert end.next.inbound.event_id == "e2"
        again = await store.claim_outbound(9)
        assert [each.id for each in again] == [row.id]
        await store.aclose()


async def test_news_of_the_next_release_deafens_nobody(redis_server: RedisServer) -> None:
    with redis_server.client() as client:
        client.flushall()
        one, two = (RedisStore(redis_server.url, clock=SystemClock()) for _ in range(2))
        await one.open()
        await two.open()
        heard: list[str] = []
        one.on_signal(lambda where, kind: heard.append(kind))
        await in_session(one)
        channel = f"legato:{client.hget(META, 'id')}"
        for news in ("ready 3 17 somebody test colour", "rows", "signal stop", "signal stop x nowhere", "left", "moon"):
            client.publish(channel, news)
        assert await two.signal(key(), "stop", START)
        await eventually(lambda: "stop" in heard)
        await one.aclose()
        await two.aclose()
