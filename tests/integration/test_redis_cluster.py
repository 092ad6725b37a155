"""Events of a cluster: a lost node, a slot that moves to another one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import StoreUnavailable
from gateway.store.redis import RedisStore
from gateway.store.redis.partitions import partition_of, slot_of
from tests.support.store_kit import contents, exchange, finish, in_session, key, put, step, transcript, turns_of
from tests.support.waiting import eventually

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_server"]


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[RedisServer]]:
    """A cluster of one's own."""
    from tests.support.redis_server import running_cluster

    with running_cluster(tmp_path) as servers:
        yield servers


@pytest.fixture
async def store(nodes: list[RedisServer]) -> AsyncIterator[RedisStore]:
    """An open store on it."""
    made = RedisStore(nodes[0].url, clock=SystemClock(), timeout=4.0, patience=2.0)
    await made.open()
    yield made
    await made.aclose()


def node_of(chat: str, nodes: list[RedisServer]) -> RedisServer:
    """Return the node that holds a chat, as the cluster was made."""
    return nodes[slot_of(partition_of("test", chat)) * len(nodes) // 16_384]


def chats_on(server: RedisServer, nodes: list[RedisServer], count: int) -> list[str]:
    """Chats that live on one node."""
    return [chat for chat in map(str, range(200)) if node_of(chat, nodes) is server][:count]


async def test_a_node_that_is_down_holds_up_only_what_lives_there(store: RedisStore, nodes: list[RedisServer]) -> None:
    (dark,), (bright,) = chats_on(nodes[2], nodes, 1), chats_on(nodes[1], nodes, 1)
    nodes[2].kill()
    for error in await asyncio.gather(store.tip(key(dark)), put(store, "d1", chat=dark), return_exceptions=True):
        assert isinstance(error, StoreUnavailable)
        assert "cannot be used now" in str(error)
    await put(store, "b1", chat=bright)
    claim = await store.claim_next("w")
    assert claim.item.inbound.event_id == "b1"
    await finish(store, claim)
    nodes[2].start()

    async def accepted() -> Any:
        try:
            return await put(store, "d1", chat=dark)
        except StoreUnavailable:
            return None

    assert (await eventually(accepted))[0].status == "new"
    assert (await store.claim_next("w")).item.inbound.event_id == "d1"


async def test_nodes_that_name_no_host_are_where_the_one_is_that_was_asked(nodes: list[RedisServer]) -> None:
    for node in nodes:
        with node.client() as client:
            client.config_set("cluster-preferred-endpoint-type", "unknown-endpoint")
    store = RedisStore(nodes[0].url, clock=SystemClock(), timeout=4.0, waits=False)
    await store.open()
    for node in nodes:
        (chat,) = chats_on(node, nodes, 1)
        assert (await put(store, f"e{chat}", chat=chat))[0].status == "new"
    await store.aclose()


async def test_a_cluster_has_one_database(nodes: list[RedisServer]) -> None:
    with pytest.raises(StoreUnavailable, match="a cluster has only 0"):
        await RedisStore(nodes[0].url.replace("/0", "/1"), clock=SystemClock(), timeout=4.0).open()


async def test_a_slot_that_moves_takes_its_chats_along(store: RedisStore, nodes: list[RedisServer]) -> None:
    (chat,) = chats_on(nodes[0], nodes, 1)
    claim, session = await in_session(store, chat=chat)
    await store.record_step(claim.lease, session.ref, claim.item, step(*exchange(1)))
    move(slot_of(partition_of("test", chat)), nodes[0], nodes[1], nodes)
    await store.record_step(claim.lease, session.ref, claim.item, step(*exchange(2)))
    await finish(store, claim)
    assert contents(await transcript(store, "s1")) == ["question 1", "answer 1", "question 2", "answer 2"]

    async def both_found() -> bool:  # postings follow the step that stores their message
        return len(turns_of(await store.search("question", claim.lease.key, 9))) == 4

    await eventually(both_found)
    later = RedisStore(nodes[2].url, clock=SystemClock())
    await later.open()
    assert contents(await transcript(later, "s1")) == ["question 1", "answer 1", "question 2", "answer 2"]
    await later.aclose()


def move(slot: int, source: RedisServer, target: RedisServer, nodes: list[RedisServer]) -> None:
    """Move a slot with all its keys, as an operator's tool does."""
    with source.client() as old, target.client() as new:
        old_id, new_id = (client.execute_command("CLUSTER MYID") for client in (old, new))
        new.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", old_id)
        old.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", new_id)
        while keys := old.execute_command("CLUSTER GETKEYSINSLOT", slot, 100):
            old.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 5_000, "KEYS", *keys)
        for node in (target, source, *nodes):
            with node.client() as client:
                client.execute_command("CLUSTER SETSLOT", slot, "NODE", new_id)
