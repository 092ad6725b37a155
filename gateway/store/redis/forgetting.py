"""Forgetting on a Redis server: what lies beside the conversations first, then the deed itself in one script.

Each step may be done twice, so a caller that was cut short repeats them all: the index without the messages that go,
then the words of what came in and of what was shown, then `forget.lua`, which does a deed once. If that refuses, the
messages are entered into the index again. What a server keeps of the past in its append-only file goes when that is
rewritten; the server is asked to, and may refuse.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from redis.exceptions import ResponseError

from gateway.domain.chat import UNSENT, SessionKey
from gateway.runtime.clock import Clock
from gateway.runtime.errors import SessionConflict
from gateway.runtime.structs import replace
from gateway.store.records import Erasure, Forgetting, Lease
from gateway.store.redis import searching
from gateway.store.redis.arguments import listed, messages
from gateway.store.redis.codec import compaction_from, compaction_json, document_in, field_text
from gateway.store.redis.endpoint import UNREACHABLE, Endpoint, ask, used
from gateway.store.redis.keyspace import keys
from gateway.store.redis.partitions import EVERYWHERE, address_name, partition_of_key, prefix
from gateway.store.redis.wire import Wire
from gateway.store.shared.documents import ERASED, dumps, file_from, pins_from, pins_json, storable, wordless
from gateway.store.shared.fields import SESSION

T = TypeVar("T")

_SECONDS: Final = 30.0  # a server's answer may take
_PAUSE: Final = 0.5  # seconds between two looks at a server that writes its file
_PAGE: Final = 500  # items or rows in one step


async def counted(wire: Wire, key: SessionKey, deed: str) -> Mapping[str, int] | None:
    """Return the counts of a deed; None: it was not done."""
    found = await wire.ask(partition_of_key(key), "HGET", f"forgotten:{key}", deed)
    counts: Mapping[str, int] | None = json.loads(found)["counts"] if found else None
    return counts


async def forget(wire: Wire, endpoint: Endpoint, lease: Lease | None, deed: Forgetting) -> Mapping[str, int]:
    """Do a deed, once. Raises SessionConflict."""
    done = await counted(wire, deed.key, deed.id)
    if done is not None:
        return done
    partition = partition_of_key(deed.key)
    gone = [*deed.removed, *(each.old for each in deed.replaced)]
    await searching.leave(wire, partition, deed.key, gone)
    await silence(wire, endpoint, deed.key, deed.item)
    if deed.reminders:
        await wire.run(partition, "drop_reminders", str(deed.key), *listed(deed.reminders))
    arguments = [str(deed.key), "" if lease is None else str(lease.fence), deed.id, _done(deed.at, deed.counts)]
    arguments += ["", ""] if deed.tip is None else [deed.tip.id, str(deed.tip.epoch)]
    arguments += listed(deed.removed)
    arguments += [str(len(deed.replaced))]
    for made in deed.replaced:
        arguments += [made.old, *messages([made.message], deed.key, made.session_id, deed.at)[1:]]
    arguments += await _sessions(wire, partition, deed)
    arguments += listed([storable(ref) for ref in deed.files])
    arguments += ["0"] if deed.pins is None else ["1", pins_json(deed.pins)]
    try:
        await wire.run(partition, "forget", *arguments)
    except SessionConflict:
        await searching.enter_again(wire, partition, gone)
        raise
    await wire.run(partition, "let_go", "", "")  # with it the server hears that earlier answers arrived, and drops them
    return deed.counts


def _done(at: float, counts: Mapping[str, int]) -> str:
    return dumps({"at": at, "counts": dict(counts)})


async def erase(wire: Wire, endpoint: Endpoint, lease: Lease | None, deed: Erasure, now: str) -> Mapping[str, int]:
    """Take everything of a key away, once: the lane first, so that nobody writes any more, the sessions last."""
    done = await counted(wire, deed.key, deed.id)
    if done is not None:
        return done
    partition, lane = partition_of_key(deed.key), str(deed.key)
    if lease is None and deed.before is None:
        await wire.run(partition, "empty_lane", lane, now)
    await _erase_words(wire, endpoint, deed)
    old, others = await _split(wire, deed)
    messages = await _messages_of(wire, partition, old)
    kept = await _messages_of(wire, partition, others)
    gone = [each for each in messages if each not in kept]
    await _rehome(wire, partition, [each for each in messages if each in kept], old, others)
    if deed.before is None:
        await searching.leave_all(wire, endpoint, partition, deed.key)
    else:
        await searching.leave(wire, partition, deed.key, gone)
    if deed.before is None:
        reminders = await wire.ask(partition, "ZRANGE", f"reminders:{lane}", "0", "-1")
        await wire.run(partition, "drop_reminders", lane, *listed(reminders))
    refs = await _old_files(wire, deed)
    rules = await wire.ask(partition, "GET", f"pins:{lane}") if deed.before is None else None
    await _keep_sums(wire, deed, old)
    fence = "" if lease is None else str(lease.fence)
    for page in _pages(gone):
        await wire.run(partition, "erase", lane, fence, *listed(page), "0", "0", "0")
    files = [part for ref, digest in refs for part in (storable(ref), digest)]
    whole = "1" if deed.before is None else "0"
    await wire.run(partition, "erase", lane, fence, "0", *listed(old), str(len(refs)), *files, whole)
    counts = {"sessions": len(old), "messages": len(gone), "files": len(refs)}
    if deed.before is None:
        counts["rules"] = len(pins_from(rules).rules) if rules else 0
    await wire.run(partition, "note_deed", lane, deed.id, _done(deed.at, counts))
    await wire.run(partition, "let_go", "", "")
    return counts


async def _split(wire: Wire, deed: Erasure) -> tuple[list[str], list[str]]:
    """The sessions that go, and the others of the key."""
    partition = partition_of_key(deed.key)
    ids = await wire.ask(partition, "LRANGE", f"sessions:{deed.key}", "0", "-1")
    if deed.before is None:
        return ids, []
    facts = await wire.ask_all((partition, ("HMGET", f"session:{each}", "ended_at", "last_active_at")) for each in ids)
    old = [
        each
        for each, (ended, active) in zip(ids, facts, strict=True)
        if ended and active and float(active) < deed.before
    ]
    return old, [each for each in ids if each not in old]


async def _rehome(wire: Wire, partition: int, shared: Sequence[str], old: Sequence[str], others: Sequence[str]) -> None:
    """A message that a later session shares with one that goes is from now on one of the later session."""
    homes: dict[str, str] = {}
    for session in reversed(others) if shared else ():  # they are listed newest first
        for name in await _messages_of(wire, partition, [session]):
            homes.setdefault(name, session)
    for page in _pages(shared):
        parts: list[str] = []
        for name, stored in zip(page, await _texts(wire, partition, page), strict=True):
            tokens, _, document = (stored or "").partition("|")
            data = json.loads(document) if document else {}
            if data.get("s") in old:
                parts += [name, f"{tokens}|{dumps({**data, 's': homes[name]})}"]
        await wire.run(partition, "rewrite_messages", str(len(parts) // 2), *parts)


async def _texts(wire: Wire, partition: int, ids: Sequence[str]) -> list[str | None]:
    found: list[str | None] = await wire.ask_all((partition, ("GET", f"message:{each}")) for each in ids)
    return found


async def _messages_of(wire: Wire, partition: int, sessions: Sequence[str]) -> dict[str, None]:
    """The ids of the messages of sessions."""
    found = await wire.ask_all((partition, ("LRANGE", f"transcript:{each}", "0", "-1")) for each in sessions)
    return {name: None for ids in found for name in ids}


async def _old_files(wire: Wire, deed: Erasure) -> list[tuple[str, str]]:
    """The refs of the files that go, each with the digest of its content if no other file has that."""
    flat = await wire.ask(partition_of_key(deed.key), "HGETALL", f"files:{deed.key}")
    files = [(ref, file_from(document)) for ref, document in zip(flat[::2], flat[1::2], strict=True)]
    old = [(ref, file) for ref, file in files if deed.before is None or file.at < deed.before]
    kept = {file.digest for ref, file in files if (ref, file) not in old}
    return [(ref, "" if file.digest in kept else file.digest) for ref, file in old]


async def _keep_sums(wire: Wire, deed: Erasure, sessions: Sequence[str]) -> None:
    """Model calls stay in the ledger as nobody's."""
    partition, name = partition_of_key(deed.key), f"ledger:{deed.key}"
    flat = await wire.ask(partition, "ZRANGE", name, "0", "-1", "WITHSCORES")
    entries = [(entry, at, json.loads(document_in(entry))) for entry, at in zip(flat[::2], flat[1::2], strict=True)]
    old = [each for each in entries if deed.before is None or each[2]["session"] in sessions]
    for page in _pages(old):
        parts = [str(len(page))]
        for entry, at, document in page:
            parts += [at, entry, f"{entry.partition('|')[0]}|{dumps({**document, 'key': '', 'session': ''})}"]
        await wire.run(partition, "keep_sums", str(deed.key), *parts)


async def _erase_words(wire: Wire, endpoint: Endpoint, deed: Erasure) -> None:
    """Erase the words of messages that came in and of rows that were shown."""
    partition, lane, event = partition_of_key(deed.key), str(deed.key), ""
    async for items in _items(wire, endpoint, partition, lane):
        parts: list[str] = []
        for each, inbound, outcome, at in items:
            if each == deed.item:
                event = json.loads(inbound)["event_id"]
                parts += [each, wordless(inbound, asked=True)]
            elif outcome and (deed.before is None or float(at) < deed.before):
                parts += [each, ERASED]
        await wire.run(partition, "silence_items", lane, deed.item or "", str(len(parts) // 2), *parts)
    address = address_name(deed.key.address)
    rows = await wire.ask(partition, "ZRANGE", f"rows:{address}", "0", "-1")
    for page in _pages(rows):
        facts = await wire.ask_all((partition, ("HMGET", f"row:{each}", "created_at", "state")) for each in page)
        old = [
            each
            for each, (at, state) in zip(page, facts, strict=True)
            if deed.before is None or (state not in UNSENT and float(at or 0) < deed.before)
        ]
        await wire.run(partition, "silence_rows", lane, event, address, *listed(old))


async def _items(
    wire: Wire, endpoint: Endpoint, partition: int, lane: str
) -> AsyncGenerator[list[tuple[str, str, str | None, str]], None]:
    """(id, document, outcome, when) of the items of a lane, in pages. Every item of the partition is looked at."""
    pattern = f"{prefix(partition)}item:"
    for page in _pages([each.removeprefix(pattern) async for each in keys(endpoint, f"{pattern}*")]):
        found = await wire.ask_all(
            (partition, ("HMGET", f"item:{each}", "key", "inbound", "outcome", "at")) for each in page
        )
        yield [
            (each, inbound, outcome, at)
            for each, (whose, inbound, outcome, at) in zip(page, found, strict=True)
            if whose == lane
        ]


async def talks(wire: Wire, endpoint: Endpoint, platform: str | None, person: str | None) -> dict[str, str]:
    """The kind of chat of each key under which a person spoke."""
    found: dict[str, str] = {}
    for partition in EVERYWHERE:
        pattern = f"{prefix(partition)}item:"
        for page in _pages([each.removeprefix(pattern) async for each in keys(endpoint, f"{pattern}*")]):
            facts = await wire.ask_all((partition, ("HMGET", f"item:{each}", "key", "inbound")) for each in page)
            for lane, inbound in facts:
                source = _source(inbound)
                spoke = person is None or source.get("user") == person
                if spoke and source and (platform is None or source.get("platform") == platform):
                    found[lane] = source["chat_type"]
    return found


def _source(inbound: str | None) -> Mapping[str, str]:
    try:
        source: Mapping[str, str] = json.loads(inbound or "{}").get("source", {})
    except ValueError:
        return {}
    return source


async def _sessions(wire: Wire, partition: int, deed: Forgetting) -> list[str]:
    arguments = [str(len(deed.sessions))]
    for session in deed.sessions:
        made = await wire.ask(partition, "LRANGE", f"compactions:{session.session_id}", "0", "-1")
        arguments += [session.session_id, str(session.freed), storable(session.system_prompt)]
        arguments += [field_text(SESSION.fact("todos", session.todos))]
        arguments += ["0"] if session.title is None else ["1", storable(session.title)]
        arguments += listed([_without_words(document) for document in made])
    return arguments


def _without_words(document: str) -> str:
    return compaction_json(replace(compaction_from(document), focus=None, error=None))


async def silence(wire: Wire, endpoint: Endpoint, key: SessionKey, item: str | None) -> None:
    """Take the words out of what came in and of what was shown under a key."""
    partition, lane = partition_of_key(key), str(key)
    event = ""
    async for items in _items(wire, endpoint, partition, lane):
        parts = [str(len(items))]
        for each, inbound, _, _ in items:
            if each == item:
                event = json.loads(inbound)["event_id"]
            parts += [each, wordless(inbound, asked=each == item)]
        await wire.run(partition, "silence_items", lane, item or "", *parts)
    rows = await wire.ask(partition, "ZRANGE", f"rows:{address_name(key.address)}", "0", "-1")
    for page in _pages(rows):
        await wire.run(partition, "silence_rows", lane, event, "", *listed(page))


async def forget_history(endpoint: Endpoint, clock: Clock) -> None:
    """Ask the servers to write their append-only files anew; where one will not, its operator must."""
    for address in await endpoint.primaries():
        with suppress(ResponseError, *UNREACHABLE):
            async with used(endpoint.connect(address)) as connection:
                while _is_writing(state := str(await ask(connection, "INFO", "persistence", seconds=_SECONDS))):
                    await clock.sleep(_PAUSE)  # what is being written may hold it still
                if "aof_enabled:1" in state:
                    await ask(connection, "BGREWRITEAOF", seconds=_SECONDS)


def _is_writing(state: str) -> bool:
    return "aof_rewrite_in_progress:1" in state or "aof_rewrite_scheduled:1" in state


def _pages(names: Sequence[T]) -> list[Sequence[T]]:
    return [names[first : first + _PAGE] for first in range(0, len(names), _PAGE)]
