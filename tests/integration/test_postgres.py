"""Several processes on one PostgreSQL database, and a server that is away for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import StoreUnavailable
from gateway.store.draft import Draft
from gateway.store.kinds import NOTE
from gateway.store.shared.platforms import Platforms
from gateway.store.space import Caller
from gateway.store.steps import members
from tests.support.growing import GROWN, coloured, later_version, noted, seen
from tests.support.store_kit import key, outbound, put
from tests.support.waiting import eventually

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first, or not everybody has what it needs
    from gateway.store.postgres.backend import PostgresStore
    from tests.support.postgres_server import PostgresServer

pytest_plugins = ["tests.support.postgres_server"]

pytestmark = pytest.mark.slow

Opener = Callable[..., Any]


@pytest.fixture
def server(postgres_server: PostgresServer) -> Iterator[PostgresServer]:
    postgres_server.empty()
    yield postgres_server
    postgres_server.stop()
    postgres_server.start()


@pytest.fixture
async def process(server: PostgresServer) -> AsyncIterator[Opener]:
    """Starts processes, and ends them."""
    from gateway.store.postgres.backend import PostgresStore

    stores: list[PostgresStore] = []

    async def opened(lease_seconds: float = 600.0) -> PostgresStore:
        store = PostgresStore(server.url, clock=SystemClock(), lease_seconds=lease_seconds)
        stores.append(store)
        await store.open()
        return store

    yield opened
    for each in stores:
        await each.aclose()


async def test_numbers_rise_and_nothing_is_lost_where_processes_race(process: Opener) -> None:
    stores = [await process() for _ in range(3)]
    await asyncio.gather(*(put(stores[n % 3], f"e{n}") for n in range(45)))
    running = await stores[0].running(key())
    assert running is not None
    numbers = [int(each.id) for each in (running, *await stores[0].waiting(key(), 100))]
    assert len(numbers) == 45
    assert numbers == sorted(set(numbers))
    held = [each for each in stores if each._workers.claimed]
    assert len(held) == 1


async def test_a_step_whose_end_was_lost_is_done_once(process: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    from psycopg import Connection, OperationalError

    store, real, cut = await process(), Connection.commit, list[bool]()

    def commit(connection: Any) -> None:
        if cut:
            is_done = cut.pop()
            if is_done:
                real(connection)
            connection.close()
            raise OperationalError("the connection was cut")
        real(connection)

    monkeypatch.setattr(Connection, "commit", commit)
    for was_done in (True, False):
        cut.append(was_done)
        await put(store, f"e{was_done}", chat=str(was_done))
        assert (await store.claim_next("w")).item.inbound.event_id == f"e{was_done}"
    assert (await store.backlog()).waiting["test"].count == 2


async def test_a_server_that_restarts_is_come_back_to(process: Opener, server: PostgresServer) -> None:
    first, second = await process(), await process()
    await put(first, "e1", chat="1")
    server.stop()
    with pytest.raises(StoreUnavailable):
        await put(first, "e2", chat="2")
    server.start()
    await put(first, "e2", chat="2")
    first.serve(runs=(), sends=())
    heard = asyncio.Event()
    second.on_rows(heard.set)
    second.serve(runs=(), sends=["test"])

    async def is_told() -> bool:
        heard.clear()
        await first.emit([outbound(f"o{id(heard)}-{asyncio.get_running_loop().time()}")])
        return heard.is_set()

    await eventually(is_told)


async def test_what_a_silent_process_held_is_taken_over(process: Opener) -> None:
    silent = await process(lease_seconds=1.0)
    await put(silent, "e1")
    await silent.claim_next("w")
    await silent.backend._background.aclose()  # it beats no more
    other = await process(lease_seconds=1.0)
    async with asyncio.timeout(30):
        claim = await other.claim_next("w")
    assert claim.item.attempts == 2
    assert claim.lease.key == key()


async def test_a_kind_and_an_index_are_added_to_a_filled_database(server: PostgresServer) -> None:
    from gateway.store.postgres import records
    from gateway.store.postgres import server as module
    from gateway.store.postgres.backend import PostgresStore

    place = module.PostgresPlace(server.url)
    connection = place.connect(writes=True)

    def run(step: Any, *args: Any) -> None:
        draft = Draft(connection)
        step(draft, *args)
        connection.write(draft)
        connection.commit()
        connection.begin()

    connection.lay_out()
    run(noted, NOTE, "fine", "so so")
    with later_version(records, module):
        store = PostgresStore(server.url, clock=SystemClock())
        run(members.join, caller(), 4_000_000_000.0)
        with pytest.raises(StoreUnavailable, match="uses the PostgreSQL database"):
            await store.open()
        await store.aclose()
        run(members.leave, "earlier")
        connection.lay_out()
        run(coloured)
        run(noted, GROWN, "splendid")
        assert seen(Draft(connection)) == (["fine", "so so", "splendid"], ["red", "blue"])
    connection.close()


def caller() -> Caller:
    """A process of the earlier version."""
    every = Platforms()
    return Caller(owner="earlier", now=0.0, uptime=0.0, runs=every, sends=every, pauses=())
