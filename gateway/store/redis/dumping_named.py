"""Facts that have no order of their own: they are given in the order of their names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from itertools import islice
from typing import Final

from gateway.domain.chat import SessionKey
from gateway.runtime.errors import StoreError
from gateway.store.moved import (
    FORGOTTEN,
    PAGE,
    MovedAccount,
    MovedClosedChat,
    MovedFile,
    MovedGuestBook,
    MovedPins,
    MovedRenamedChat,
    Record,
)
from gateway.store.redis.codec import pairs
from gateway.store.redis.endpoint import Endpoint
from gateway.store.redis.filing import content_of
from gateway.store.redis.keyspace import keys
from gateway.store.redis.pairing import read_guest_book
from gateway.store.redis.reading import EVERYWHERE
from gateway.store.redis.wire import Wire
from gateway.store.shared.documents import file_from, pins_from

_ROUND: Final = 200  # things asked for at a time


async def named_facts(endpoint: Endpoint, wire: Wire, now: float) -> AsyncIterator[Sequence[Record]]:
    """Spending, rules, files, the guest book and what is known of chats, in pages."""
    for kind in (_accounts(endpoint, wire, now), _pins(endpoint, wire), _files(endpoint, wire)):
        async for page in kind:
            yield page
    book = await read_guest_book(wire)
    if book.version:
        yield [MovedGuestBook(book=book)]
    for kind in (_closed(wire), _renamed(wire)):
        async for page in kind:
            yield page


async def _accounts(endpoint: Endpoint, wire: Wire, now: float) -> AsyncIterator[list[Record]]:
    places = iter(await _named(endpoint, "spent:"))
    while some := list(islice(places, _ROUND)):
        spent = await wire.ask_all((partition, ("GET", key)) for key, partition in some)
        forgotten = await wire.ask_all((partition, ("PEXPIRETIME", key)) for key, partition in some)
        yield [
            MovedAccount(account=key.partition(":")[2], spent=int(total), forget_at=until if until >= 0 else None)
            for (key, _), total, until in zip(some, spent, forgotten, strict=True)
            if total is not None and not 0 <= until < (now + FORGOTTEN) * 1_000
        ]


async def _pins(endpoint: Endpoint, wire: Wire) -> AsyncIterator[list[Record]]:
    places = iter(await _named(endpoint, "pins:"))
    while some := list(islice(places, _ROUND)):
        documents = await wire.ask_all((partition, ("GET", key)) for key, partition in some)
        yield [
            MovedPins(key=SessionKey.parse(key.partition(":")[2]), pins=pins_from(document))
            for (key, _), document in zip(some, documents, strict=True)
        ]


async def _closed(wire: Wire) -> AsyncIterator[list[Record]]:
    reasons = await _of_chats(wire, "closed")
    chats = iter(sorted(reasons))
    while some := list(islice(chats, PAGE)):
        yield [MovedClosedChat(chat=SessionKey.parse(chat), reason=reasons[chat]) for chat in some]


async def _renamed(wire: Wire) -> AsyncIterator[list[Record]]:
    first, later = await _of_chats(wire, "first_names"), await _of_chats(wire, "later_names")
    chats = iter(sorted(first.keys() | later.keys()))
    while some := list(islice(chats, PAGE)):
        yield [
            MovedRenamedChat(chat=SessionKey.parse(chat), first=first.get(chat), later=later.get(chat)) for chat in some
        ]


async def _of_chats(wire: Wire, name: str) -> dict[str, str]:
    """What all partitions note of chats under this key."""
    found = await wire.ask_all((partition, ("HGETALL", name)) for partition in EVERYWHERE)
    return {chat: noted for flat in found for chat, noted in pairs(flat).items()}


async def _files(endpoint: Endpoint, wire: Wire) -> AsyncIterator[list[Record]]:
    """A file at a time: a content may be long."""
    for name, partition in await _named(endpoint, "files:"):
        lane = name.partition(":")[2]
        documents = await wire.ask(partition, "HVALS", name)
        for file in sorted(map(file_from, documents), key=lambda each: (each.at, each.ref)):
            content = await content_of(wire, partition, lane, file.digest)
            if content is None:
                raise StoreError(f"The store is damaged: file {file.ref} of {lane} has no content.")
            yield [MovedFile(key=SessionKey.parse(lane), file=file, content=content)]


async def _named(endpoint: Endpoint, start: str) -> list[tuple[str, int]]:
    """The keys that begin like this and their partitions, in the order of their names."""
    found = {(name.partition(":")[2], int(name[2:4])) async for name in keys(endpoint, "{p??}:" + start + "*")}
    return sorted(found)
