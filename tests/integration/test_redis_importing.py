"""What `legato import` leaves in Redis: each message once, under each of its words, whoever writes beside it and
wherever it is killed."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gateway.domain.message import note_of, user
from gateway.store.records import Opening
from gateway.store.redis import RedisStore, searching
from gateway.store.redis.partitions import partition_of_key
from tests.support.fakes import ManualClock
from tests.support.program import legato, started
from tests.support.store_kit import START, in_session, key, new_session, step, turns_of
from tests.support.waiting import eventually

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_server"]


def _lists(server: RedisServer) -> dict[bytes, list[bytes]]:
    """The entries of each term."""
    with server.client(decode_responses=False) as client:
        found = {name: client.get(name) for name in client.keys("*:stem:*")}
    return {name: [held[at : at + 8] for at in range(0, len(held), 8)] for name, held in found.items()}


async def test_entries_of_many_messages_go_before_newer_ones_and_leave_out_forgotten_ones(
    redis_server: RedisServer,
) -> None:
    redis_server.empty()
    store = RedisStore(redis_server.url, clock=ManualClock(START))
    await store.open()
    said = [user(f"the needle of hay{number % 3}") for number in range(300)]
    ended = new_session("s1", ended_at=START, end_reason="reset", hook="done")
    assert await store.import_sessions([Opening(session=ended, transcript=said)]) == [True]
    await store.search("needle", key(), 1)  # by then all are entered
    whole = _lists(redis_server)
    stored = await store.transcript(await store.session("s1"))
    with redis_server.client(decode_responses=False) as client:
        for name, held in whole.items():
            client.set(name, held[50] + held[-1])  # as if another process had entered these two meanwhile
        (gone,) = client.keys(f"*:message:{note_of(stored[7])['id']}")
        client.delete(gone)
        left = [note_of(message)["id"] for message in stored if note_of(message)["id"].encode() not in gone]
        client.sadd(gone.partition(b":")[0] + b":unindexed", *left)
    searching.index(store.backend._wire, key(), [(message, None) for message in stored])
    await store.search("needle", key(), 1)
    forgotten = whole[next(name for name in whole if name.endswith(b":*"))][7]
    assert _lists(redis_server) == {name: [each for each in held if each != forgotten] for name, held in whole.items()}
    await store.aclose()


async def test_two_who_enter_the_same_long_message_at_once_enter_it_once(redis_server: RedisServer) -> None:
    redis_server.empty()
    one, two = (RedisStore(redis_server.url, clock=ManualClock(START)) for _ in range(2))
    await one.open()
    await two.open()
    claim, session = await in_session(one)
    words = " ".join(f"word{number}" for number in range(450))  # more terms than one step takes
    new = await one.record_step(claim.lease, session.ref, claim.item, step(user(words), user("word1 again")))
    terms = {note_of(each)["id"]: searching.entries(each) for each in new}
    first, *rest = searching._steps(searching.owner_of(key().text), terms, owed=True)
    partition = partition_of_key(key())
    await one.backend._wire.run(partition, "index", *first)
    assert len(turns_of(await two.search("word1", key(), 9))) == 2  # it enters what it finds unindexed
    for each in rest:
        await one.backend._wire.run(partition, "index", *each)
    lists = _lists(redis_server)
    assert all(held == sorted(set(held)) for held in lists.values())
    assert sorted(map(len, lists.values()))[-2:] == [2, 2]  # of word1, and of all messages
    for store in (one, two):
        await store.aclose()


@pytest.mark.parametrize("grown", [500, *(pytest.param(size, marks=pytest.mark.slow) for size in (0, 4_000, 10_000))])
async def test_killed_anywhere_and_run_again_nothing_is_missing_or_twice(
    tmp_path: Path, redis_server: RedisServer, grown: int
) -> None:
    redis_server.empty()
    lines = [
        [{"role": "user", "content": f"q{n}"}, {"role": "assistant", "content": f"an answer{n}"}] for n in range(1_000)
    ]
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps({"id": f"c{n}", "messages": each}) + "\n" for n, each in enumerate(lines)))
    (tmp_path / "config.yaml").write_text(f"store: {{url: '{redis_server.url}'}}\n", encoding="utf-8")
    with redis_server.client() as client:
        process = await started(tmp_path, "import", "jsonl", str(file))
        await eventually(lambda: process.returncode is not None or client.dbsize() > grown)
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await process.communicate()
        status, out, err = await legato(tmp_path, "import", "jsonl", str(file), "--json")
        assert status == 0, err
        report = json.loads(out)
        assert report["sessions"] + report["known"] == 1_000
        if unindexed := client.keys("*:unindexed"):  # the next process enters what the killed one could not
            store = RedisStore(redis_server.url, clock=ManualClock(START))
            await store.open()
            await eventually(lambda: not client.exists(*unindexed))
            await store.aclose()
        assert len(client.keys("*:message:*")) == 2_000
        assert {client.llen(name) for name in client.keys("{p??}:s:*")} == {2}
    lists = _lists(redis_server)
    assert all(held == sorted(set(held)) for held in lists.values())
    assert sorted(map(len, lists.values())) == [1] * 2_000 + [1_000, 2_000]  # its own words, "an", and all messages
