"""The inverted index: a list of messages for every term of every conversation (see parts/terms.lua).

Cost of storing: eight bytes of the server's memory for each distinct term of a message, and about
100 for each term that its conversation had not used before. Terms are written after the message, in steps of
at most 400, so that a long message holds nobody up. Until then the message is listed as unindexed, so that another
process enters its terms after a crash. Cost of a search within a key: the rarest term's messages, newest first, until
enough are found; nobody else's messages are touched. A search of all messages goes key by key: for an administrator,
not for a turn.

One character of a script without spaces is found as a prefix: the terms of such scripts are entered under their
first character, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from gateway.domain.chat import SessionKey
from gateway.domain.message import Message, note_of, said_in
from gateway.store.records import Found
from gateway.store.redis.arguments import listed
from gateway.store.redis.codec import message_from
from gateway.store.redis.partitions import PARTITIONS, partition_of_key, prefix
from gateway.store.redis.wire import Wire
from gateway.store.shared import searchable, text
from gateway.store.shared.searchable import KINDS, RETURNED, Kind, kind_of, terms_of

_MOST_TERMS: Final = 400  # in one step
_PAGE: Final = 200  # candidates looked at in one step
_OWNER: Final = 8  # bytes of a key's digest


def owner_of(key: str, kind: Kind = "said") -> str:
    """A key as a short part of index keys, its own for each kind of messages."""
    digest = searchable.owner_of(key, size=_OWNER)
    return digest if kind == "said" else digest + RETURNED


def entries(message: Message) -> list[str]:
    """The terms and prefixes under which a message is entered."""
    found = terms_of(message)
    starts = dict.fromkeys("^" + term[0] for term in found if _is_dense(term[0]))
    return [*found, *starts]


@lru_cache(maxsize=4_096)
def _is_dense(character: str) -> bool:
    return bool(text.query(character).prefixes)


def index(wire: Wire, partition: int, key: SessionKey, messages: Sequence[Message]) -> None:
    """Enter new messages that a search should find; nobody waits for the entries."""
    for message in messages:
        if kind := kind_of(message):
            _enter(wire, partition, owner_of(str(key), kind), note_of(message)["id"], entries(message))


def _enter(wire: Wire, partition: int, owner: str, message_id: str, terms: Sequence[str]) -> None:
    chunks = [terms[first : first + _MOST_TERMS] for first in range(0, len(terms), _MOST_TERMS)] or [[]]
    for place, chunk in enumerate(chunks):
        last = "1" if place == len(chunks) - 1 else "0"
        wire.submit(partition, "index", owner, message_id, last, *listed(chunk), done=_ignored)


def _ignored(_: object) -> None:
    """Nothing depends on the index."""


async def make_good(wire: Wire, partition: int) -> None:
    """Enter the messages that a process stored and could not enter any more."""
    ids = await wire.ask(partition, "SMEMBERS", "unindexed")
    for first in range(0, len(ids), _PAGE):
        for message_id, stored in await _stored(wire, partition, ids[first : first + _PAGE]):
            message, document = message_from(message_id, stored)
            owner = owner_of(document["k"], kind_of(message) or "said")
            _enter(wire, partition, owner, message_id, entries(message))


async def search(wire: Wire, words: str, key: SessionKey | None, limit: int) -> list[Found]:
    """Original messages holding all the words: what was said, newest first, then what tools returned."""
    wanted = text.query(words)
    if not wanted or limit < 1:
        return []
    await wire.settled()  # by then the messages of this process are in the index
    found: list[Found] = []
    for kind in KINDS:
        if len(found) < limit:
            found += await _search_kind(wire, kind, key, wanted, limit - len(found))
    return found


async def _search_kind(wire: Wire, kind: Kind, key: SessionKey | None, wanted: text.Query, limit: int) -> list[Found]:
    if key is not None:
        return await _search(wire, partition_of_key(key), owner_of(str(key), kind), wanted, limit)
    every = [
        each for partition in range(PARTITIONS) for each in await _search_all(wire, partition, kind, wanted, limit)
    ]
    return sorted(every, key=_number, reverse=True)[:limit]


async def _search_all(wire: Wire, partition: int, kind: Kind, wanted: text.Query, limit: int) -> list[Found]:
    known = await wire.ask(partition, "SMEMBERS", "owners")
    owners = [owner for owner in known if owner.endswith(RETURNED) == (kind == "returned")]
    found: list[Found] = []
    for group in range(0, len(owners), _PAGE):
        some = owners[group : group + _PAGE]
        results = await asyncio.gather(*(_search(wire, partition, owner, wanted, limit) for owner in some))
        found = sorted((each for result in [found, *results] for each in result), key=_number, reverse=True)[:limit]
    return found


async def _search(wire: Wire, partition: int, owner: str, wanted: text.Query, limit: int) -> list[Found]:
    terms = [*wanted.terms, *("^" + each for each in wanted.prefixes)]
    found: list[Found] = []
    below: str | None = ""
    while below is not None and len(found) < limit:
        further, *ids = await wire.look(partition, "search", owner, below, str(_PAGE), *listed(terms))
        below = further or None
        for message_id, stored in await _stored(wire, partition, ids):
            message, document = message_from(message_id, stored)
            if text.holds_runs(said_in(message), wanted):
                found.append(Found(session_id=document["s"], message=message, at=document["at"]))
    return found[:limit]


async def _stored(wire: Wire, partition: int, ids: Sequence[str]) -> list[tuple[str, str]]:
    """(id, what is stored) of messages."""
    if not ids:
        return []
    first, *others = (f"message:{message_id}" for message_id in ids)
    texts = await wire.ask(partition, "MGET", first, *(prefix(partition) + other for other in others))
    return [(message_id, stored) for message_id, stored in zip(ids, texts, strict=True) if stored is not None]


def _number(found: Found) -> int:
    return int(note_of(found.message)["id"].partition("p")[0])
