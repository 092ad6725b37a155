"""Accepted items that cannot be read any more are told, and hold up nobody."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from gateway.domain.chat import session_key
from gateway.runtime.clock import SystemClock
from gateway.store.port import Store
from gateway.store.records import Arrival
from gateway.store.redis import RedisStore
from gateway.store.sqlite import SqliteStore
from gateway.turns.turn import UNREADABLE
from tests.support.gateway import FakeAdapter, running

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_server"]

Stores = tuple[Callable[[], Store], Callable[[str], None]]  # opens one; damages the item of an event


@pytest.fixture(params=["sqlite", "redis"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Stores:
    """A way to open the same store again, and one to damage what it holds."""
    clock = SystemClock()
    if request.param == "sqlite":
        path = tmp_path / "legato.db"

        def damage(event_id: str) -> None:
            with apsw.Connection(str(path)) as connection:
                damaged = "UPDATE item SET doc = json_set(doc, '$.inbound', json('{\"text\":1}'))"
                connection.execute(f"{damaged} WHERE doc ->> '$.inbound.event_id' = ?", (event_id,))

        return lambda: SqliteStore(path, clock=clock), damage
    server: RedisServer = request.getfixturevalue("redis_server")
    server.empty()

    def damage_redis(event_id: str) -> None:
        with server.client() as client:
            (item,) = [key for key in client.keys("{p??}:item:*") if event_id in client.get(key)]
            version, _, document = client.get(item).partition(" ")
            client.set(item, f"{version} {json.dumps({**json.loads(document), 'inbound': {'text': 1}})}")

    return lambda: RedisStore(server.url, clock=clock), damage_redis


async def test_a_damaged_message_is_said_and_the_next_one_is_answered(tmp_path: Path, stores: Stores) -> None:
    opened, damage = stores
    adapter = FakeAdapter()
    inbounds = [adapter.inbound(f"message {event}", event=event) for event in ("first", "damaged", "last")]
    store = opened()
    await store.open()
    arrivals = [
        Arrival(inbound=each, key=session_key(each.source, groups="per_user", threads="shared"), at=1.0)
        for each in inbounds
    ]
    await store.accept(arrivals, cap=9)
    await store.aclose()
    damage("damaged")
    async with running(tmp_path, adapter=adapter, store=opened()) as live:
        await live.answer("last")
        await live.quiet()
        assert [row.kind for row in adapter.sent] == ["reply", "error", "reply"]
        assert adapter.sent[1].text == UNREADABLE
        status = await live.store.status()
        assert (status.waiting, status.dead) == (0, 1)
        assert (await live.store.accept(arrivals[1:2], cap=9))[0].status == "duplicate"
