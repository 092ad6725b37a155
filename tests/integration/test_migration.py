"""`legato migrate` between real files, a real server and a real cluster; killed, and done again."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from gateway.domain.chat import ChatAddress
from gateway.domain.message import user
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.structs import replace
from tests.support import migration_kit
from tests.support.migration_kit import killed, move
from tests.support.store_kit import (
    arrival,
    contents,
    exchange,
    finish,
    in_session,
    key,
    outbound,
    put,
    reminder,
    step,
    turns_of,
)

if TYPE_CHECKING:  # at run time they are plugins, which nobody may import first
    from tests.support.migration_places import Places
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.migration_places"]


def by_chat(turns: list[Any]) -> dict[str, list[Any]]:
    """The turns of each conversation, in their order."""
    return {chat: [turn for turn in turns if turn[0].key.chat == chat] for chat in migration_kit.CHATS}


# -- all of it ----------------------------------------------------------------------------------


async def test_there_and_back_again(places: Places) -> None:
    start = await places.filled(places.sqlite("a.db"))
    report = await move(start, places.redis[0])
    assert report.copied == report.verified
    assert all(report.copied.values())
    assert (await move(places.redis[0], places.sqlite("b.db"))).copied == report.copied
    stores = [await places.open(url) for url in (start, places.redis[0], places.sqlite("b.db"))]
    seen = [await migration_kit.shown(store) for store in stores]
    assert seen[1] == seen[0]
    assert seen[2] == seen[0]
    assert [len(seen[0]["found"][words]) for words in ("question", "你好", "ananas", "nowhere")] == [17, 3, 3, 0]
    for store in stores:
        receipts = await store.accept([arrival("e-s1", "1"), arrival("refused", "10"), arrival("dead", "11")], cap=99)
        assert [receipt.status for receipt in receipts] == ["duplicate"] * 3
    done = [await migration_kit.worked_off(store) for store in stores]
    assert done[1] == done[0]
    assert done[2] == done[0]
    assert [turn[0].inbound.event_id for turn in done[0]["turns"]][:3] == ["e-s4", "behind-2", "behind-3"]
    assert done[0]["turns"][0][1].intents[0].tool == "pay"
    assert done[0]["turns"][0][2] == ("stop", "interrupt")
    assert [(row.id, row.attempts, row.ambiguous) for row in done[0]["rows"]["2"]] == [("o2", 2, 1)]
    assert [row.id for row in done[0]["rows"]["0"]] == ["r1b", "r2", "r3"]


async def test_no_number_that_was_given_away_is_given_again(places: Places) -> None:
    urls = [await places.filled(places.sqlite("a.db")), places.redis[0], places.sqlite("b.db")]
    for before, after in pairwise(urls):
        await move(before, after)
    numbers = []
    for url in urls:
        store = await places.open(url)
        memory = await store.memory(key("1"))
        (fact,) = memory.current("person")
        new = replace(fact, id="new", number=0)
        given = replace(memory, facts=(*memory.facts, new)).numbered()
        numbers.append([memory.last_number, given.facts[-1].number, given.last_number, memory.version])
        added = await store.add_reminder(reminder("new", "1"), 99, 99)
        assert added is not None
        numbers[-1].append(added.number)
    assert numbers[0][:4] == [7, 8, 8, 2], "the fact that had 7 is gone"
    assert numbers[1:] == numbers[:1] * 2


async def test_from_a_server_to_a_cluster(places: Places, redis_cluster: list[RedisServer]) -> None:
    for server in redis_cluster:
        server.empty()
    start = await places.filled(places.redis[0])
    await move(start, redis_cluster[0].url)
    here, there = await places.open(start), await places.open(redis_cluster[0].url)
    seen = await migration_kit.shown(here)
    assert await migration_kit.shown(there) == seen
    await there.aclose()
    await move(redis_cluster[0].url, places.sqlite("a.db"))
    there, file = await places.open(redis_cluster[0].url), await places.open(places.sqlite("a.db"))
    assert await migration_kit.shown(file) == seen
    assert by_chat((await migration_kit.worked_off(file))["turns"])["4"][0][2] == ("stop", "interrupt")
    left, right = await migration_kit.worked_off(here), await migration_kit.worked_off(there)
    turns, moved = left.pop("turns"), right.pop("turns")
    assert right == left
    assert by_chat(moved) == by_chat(turns)
    heads = [min(int(turn[0].id) for turn in of) for of in by_chat(moved).values() if of]
    first = [int(turn[0].id) for turn in moved if int(turn[0].id) in heads]
    assert first == sorted(first)  # lanes wait in the order of their first messages


async def test_what_a_redis_store_said_goes_on_in_a_file_and_back(places: Places) -> None:
    """Ids go on rising wherever the store is, and nothing new takes the place of something old."""
    start = await places.filled(places.redis[0])
    urls = [places.sqlite("a.db"), places.redis[1], places.sqlite("b.db")]
    for number, url in enumerate(urls):
        await move(start, url)
        store = await places.open(url)
        before = len((await migration_kit.shown(store))["transcripts"]["s1"])
        (receipt,) = await put(store, f"new-{number}", chat="1")
        assert receipt.status == "new"
        claim = await store.claim_next("w")
        while claim.item.inbound.event_id != f"new-{number}":
            await finish(store, claim)
            claim = await store.claim_next("w")
        session = await store.session("s1")
        await store.finish_turn(
            claim.lease, session.ref, claim.item, step(user(f"question again {number}")), "answered", []
        )
        assert len(await store.transcript(await store.session("s1"))) == before + 1
        found = contents(turns_of(await store.search('"question again"', key("1"), 9)))
        assert [each for each in found if "question again" in str(each)] == [
            f"question again {each}" for each in range(number + 1)
        ]
        await places.leave(store)
        start = url


@pytest.mark.slow
async def test_long_transcripts_and_many_sessions(places: Places) -> None:
    store = await places.open(places.sqlite("a.db"))
    claim, session = await in_session(store)
    for first in range(0, 2_600, 200):
        said = [message for number in range(first, first + 100) for message in exchange(number)]
        await store.record_step(claim.lease, session.ref, claim.item, step(*said))
    await finish(store, claim)
    for number in range(450):
        claim, session = await in_session(store, *exchange(number), session_id=f"c{number}", chat=f"c{number}")
        await finish(store, claim)
    await store.aclose()
    told: list[Any] = []
    report = await move(places.sqlite("a.db"), places.redis[0], tell=told.append)
    assert (report.copied["message"], report.copied["session"]) == (3_500, 451)
    assert max(later.done - earlier.done for earlier, later in pairwise(told)) <= 1_000
    await move(places.redis[0], places.sqlite("b.db"))
    moved = await places.open(places.sqlite("b.db"))
    texts = contents(await moved.transcript(await moved.session("s1")))
    assert len(texts) == 2_600
    assert (texts[0], texts[-1]) == ("question 0", "answer 2499")


async def test_a_row_that_was_shown_is_not_sent_again(places: Places, redis_server: RedisServer) -> None:
    """The first sender of a row, taken for dead, has said that it was shown; the second died before it could."""
    start = await places.filled(places.redis[0])
    with redis_server.client() as client:
        (row,) = client.keys("*:row:o2")
        version, _, document = client.get(row).partition(" ")
        held = json.loads(document)
        assert held["out"]["state"] == "sending"
        client.set(row, f"{version} {json.dumps({**held, 'confirmed': True})}")
    await move(start, places.sqlite("a.db"))
    store = await places.open(places.sqlite("a.db"))
    rows = (await migration_kit.worked_off(store))["rows"]
    assert [[each.id for each in rows[chat]] for chat in ("2", "11")] == [[], ["o-dead"]]


async def test_a_damaged_document_is_moved_as_it_is(places: Places) -> None:
    """The event of a damaged document stays known, and its lane goes on after it."""
    start = await places.filled(places.sqlite("a.db"))
    with closing(sqlite3.connect(places.folder / "a.db")) as connection, connection:
        damaged = "UPDATE item SET doc = json_set(doc, '$.inbound', json('{\"text\":1}'))"
        connection.execute(f"{damaged} WHERE doc ->> '$.inbound.event_id' IN ('waits-3', 'titled')")
    await move(start, places.redis[0])
    await move(places.redis[0], places.sqlite("b.db"))
    for url in (places.redis[0], places.sqlite("b.db")):
        store = await places.open(url)
        receipts = await store.accept([arrival("waits-3", "6"), arrival("titled", "1")], cap=9)
        assert [receipt.status for receipt in receipts] == ["duplicate"] * 2
        assert [item.inbound.kind for item in await store.waiting(key("6"), 9)] == ["unreadable", "message"]


@pytest.mark.parametrize("there", ["redis", "sqlite"])
async def test_a_reply_that_streamed_keeps_its_turn_in_its_chat(places: Places, there: str) -> None:
    """The row of a streamed reply is older than its place: later messages go out before it."""
    source, target = places.sqlite("a.db"), places.redis[0]
    if there == "sqlite":
        source, target = target, source
    store = await places.open(source)
    claim, session = await in_session(store, chat="4", session_id="s4")
    await store.emit([outbound("first", "4")])  # is being sent from now on
    await store.open_reply(claim.lease, claim.item, outbound("streamed", "4", "", answers="e-s4"))
    await store.emit([outbound("meanwhile", "4")])
    await store.finish_turn(claim.lease, session.ref, claim.item, step(), "answered", [outbound("streamed", "4")])
    await store.emit([outbound("elsewhere", "5"), outbound("last", "4")])
    await store.mark_sent("first", None)  # the next is being sent
    await places.leave(store)
    await move(source, target)
    rows = (await migration_kit.worked_off(await places.open(target)))["rows"]["4"]
    assert [row.id for row in rows] == ["meanwhile", "streamed", "last"]


# -- killed in the middle -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "page", [4, *(pytest.param(page, marks=pytest.mark.slow) for page in (1, 12))], ids=lambda page: f"page {page}"
)
@pytest.mark.parametrize("there", ["redis", "sqlite"])
async def test_half_a_migration_is_no_store_and_is_done_again(places: Places, there: str, page: int) -> None:
    if there == "redis":
        source, target = await places.filled(places.sqlite("a.db")), places.redis[0]
    else:
        source, target = await places.filled(places.redis[0]), places.sqlite("b.db")
    before = await places.open(source)
    known = await migration_kit.shown(before)
    await before.aclose()
    await killed(source, target, page)
    places.forget_migrations()
    with pytest.raises(StoreUnavailable, match=r"half of a migration from .*\. Run `legato migrate` again"):
        await places.open(target)
    with pytest.raises(StoreUnavailable, match="half of a migration"):
        await move(target, places.sqlite("c.db"))
    untouched = await places.open(source)
    assert await migration_kit.shown(untouched) == known
    await untouched.aclose()
    report = await move(source, target)
    assert report.copied == report.verified
    assert await migration_kit.shown(await places.open(target)) == known


@pytest.mark.parametrize("there", ["redis", "sqlite"])
async def test_nothing_of_the_first_half_is_left_when_the_source_went_on(places: Places, there: str) -> None:
    one, other = places.sqlite("a.db"), places.redis[0]
    source, target = (one, other) if there == "redis" else (other, places.sqlite("b.db"))
    store = await places.open(source)
    await store.close_chat(ChatAddress(platform="test", chat="1"), "blocked")
    await store.aclose()
    await killed(source, target, 1)
    places.forget_migrations()
    store = await places.open(source)
    await store.open_chat(ChatAddress(platform="test", chat="1"))
    await store.rename_chat("test", "2", "3")
    await store.aclose()
    await killed(source, target, 1)
    places.forget_migrations()
    report = await move(source, target)
    assert report.copied == report.verified
    assert await (await places.open(target)).closed(ChatAddress(platform="test", chat="1")) is None


async def test_a_file_that_knows_only_something_of_chats_is_not_empty(places: Places) -> None:
    source, target = places.sqlite("a.db"), places.sqlite("b.db")
    await (await places.open(source)).aclose()
    store = await places.open(target)
    await store.rename_chat("test", "2", "3")
    await store.aclose()
    with pytest.raises(StoreUnavailable, match="is not empty"):
        await move(source, target)


async def test_a_file_that_is_read_is_not_written(places: Places) -> None:
    source = await places.filled(places.sqlite("a.db"))
    file = places.folder / "a.db"
    before = hashlib.sha256(file.read_bytes()).hexdigest()
    await move(source, places.redis[0])
    await killed(source, places.sqlite("b.db"), 3)
    assert hashlib.sha256(file.read_bytes()).hexdigest() == before
