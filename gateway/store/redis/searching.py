"""The inverted index: a list of messages for every term of every conversation (see parts/terms.lua).

Cost of storing: eight bytes of the server's memory for each distinct term of a message, and about
100 for each term that its conversation had not used before. Terms are written after the message, in steps of
at most 400, so that a long message holds nobody up. Until then the message is listed as unindexed, so that another
process enters its terms after a crash. Cost of a search within a key: see `ranking`; nobody else's messages are
touched. A search of all messages goes key by key: for an administrator, not for a turn.

One character of a script without spaces is found as a prefix: the terms of such scripts are entered under their
first character, too.
"""

from __future__ import annotations

import asyncio
import sys
from array import array
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar

from gateway.domain.chat import SessionKey
from gateway.domain.message import HOST, Message, note_of, said_in
from gateway.store.records import Found, Passage
from gateway.store.redis.arguments import listed
from gateway.store.redis.codec import document_in, message_from
from gateway.store.redis.endpoint import Endpoint
from gateway.store.redis.keyspace import remove
from gateway.store.redis.partitions import PARTITIONS, partition_of_key, prefix
from gateway.store.redis.wire import Wire
from gateway.store.shared import ranking, searchable
from gateway.store.shared.documents import parsed
from gateway.store.shared.ranking import MOST_OF_A_TERM, Text
from gateway.store.shared.searchable import KINDS, RETURNED, Kind, every_term_of, kind_of, terms_of
from gateway.store.shared.text import Question, is_dense

T = TypeVar("T")

_MOST_TERMS: Final = 400  # in one step
_PAGE: Final = 200  # messages read in one step
_OWNER: Final = 8  # bytes of a key's digest
_ENTRY: Final = 8  # bytes of an entry
_EVERY: Final = "*"  # the term of every message
_NOWHERE: Final = 255  # the partition of a message that came from a SQLite store


def owner_of(key: str, kind: Kind = "said") -> str:
    """A key as a short part of index keys, its own for each kind of messages."""
    digest = searchable.owner_of(key, size=_OWNER)
    return digest if kind == "said" else digest + RETURNED


def entries(message: Message) -> list[str]:
    """The terms and prefixes under which a message is entered; none: the message is not found by any."""
    return _with_starts(terms_of(message))


def _with_starts(terms: Sequence[str]) -> list[str]:
    starts = dict.fromkeys("^" + term[0] for term in terms if is_dense(term))
    return [*terms, *starts, _EVERY] if terms else []


def index(wire: Wire, partition: int, key: SessionKey, messages: Sequence[Message]) -> None:
    """Enter new messages that a search should find; nobody waits for the entries."""
    for message in messages:
        if kind := kind_of(message):
            _enter(wire, partition, owner_of(str(key), kind), note_of(message)["id"], entries(message))


def _enter(wire: Wire, partition: int, owner: str, message_id: str, terms: Sequence[str]) -> None:
    chunks = [terms[first : first + _MOST_TERMS] for first in range(0, len(terms), _MOST_TERMS)] or [[]]
    for place, chunk in enumerate(chunks):
        last = "1" if place == len(chunks) - 1 else "0"
        wire.submit(partition, "index", owner, message_id, last, *listed(chunk))


async def leave(wire: Wire, partition: int, key: SessionKey, ids: Sequence[str]) -> None:
    """Take messages, which are still stored, out of the index."""
    await wire.settled()  # by then they are in it, as far as this process stored them
    for first in range(0, len(ids), _PAGE):
        for message_id, stored in await _stored(wire, partition, ids[first : first + _PAGE]):
            message, _ = message_from(message_id, stored)
            if kind := kind_of(message):
                terms = _with_starts(every_term_of(message))
                for start in range(0, len(terms), _MOST_TERMS):
                    some = listed(terms[start : start + _MOST_TERMS])
                    await wire.run(partition, "leave_index", owner_of(str(key), kind), message_id, *some)


async def leave_all(wire: Wire, endpoint: Endpoint, partition: int, key: SessionKey) -> None:
    """Take all messages of a key out of the index."""
    await wire.settled()
    for owner in (owner_of(str(key)), owner_of(str(key), "returned")):
        await remove(endpoint, f"{prefix(partition)}stem:{owner}:*")
        await wire.run(partition, "leave_index", owner, "0", "0")


async def make_good(wire: Wire, partition: int) -> None:
    """Enter the messages that a process stored and could not enter any more."""
    await enter_again(wire, partition, await wire.ask(partition, "SMEMBERS", "unindexed"))


async def enter_again(wire: Wire, partition: int, ids: Sequence[str]) -> None:
    """Enter stored messages; nobody waits for the entries."""
    for first in range(0, len(ids), _PAGE):
        for message_id, stored in await _stored(wire, partition, ids[first : first + _PAGE]):
            message, document = message_from(message_id, stored)
            if kind := kind_of(message):
                _enter(wire, partition, owner_of(document["k"], kind), message_id, entries(message))


async def search(wire: Wire, words: str, key: SessionKey | None, limit: int, now: float) -> list[Passage]:
    """The passages that answer best, best first: people's and the model's words, then results of tools."""
    await wire.settled()  # by then the messages of this process are in the index
    if key is not None:
        partition = partition_of_key(key)
        return await ranking.search(
            lambda kind: RedisIndex(wire, partition, owner_of(str(key), kind)), words, limit, now
        )
    sought = ranking.Sought.by(words, now)
    found = [each for partition in range(PARTITIONS) for each in await _everybodys(wire, partition, sought, limit)]
    return sorted(found, key=lambda each: (each.hit.message["role"] != "tool", each.score), reverse=True)[:limit]


async def holding(wire: Wire, values: Sequence[str], key: SessionKey, limit: int) -> list[list[Found]]:
    """For each value the messages of the key that hold all of its words."""
    await wire.settled()
    partition = partition_of_key(key)
    indexes = [RedisIndex(wire, partition, owner_of(str(key), kind)) for kind in KINDS]
    return await ranking.holding(indexes, values, limit)


async def around(wire: Wire, key: SessionKey, message_id: str, reach: int) -> list[Found]:
    """A message of the key among its neighbours; empty for any other message."""
    partition = partition_of_key(key)
    stored = await _stored(wire, partition, [message_id])
    if not stored or message_from(*stored[0])[1]["k"] != str(key):
        return []
    await wire.settled()
    return await ranking.around(RedisIndex(wire, partition, owner_of(str(key))), _number(message_id), reach)


async def _everybodys(wire: Wire, partition: int, sought: ranking.Sought, limit: int) -> list[Passage]:
    names = await wire.ask(partition, "SMEMBERS", "searched")
    owners = sorted({name.removesuffix(RETURNED) for name in names})

    def found_of(owner: str) -> Awaitable[list[Passage]]:
        said, returned = RedisIndex(wire, partition, owner), RedisIndex(wire, partition, owner + RETURNED)
        return ranking.find(said, returned, sought, limit)

    found: list[Passage] = []
    for group in range(0, len(owners), _PAGE):
        results = await asyncio.gather(*map(found_of, owners[group : group + _PAGE]))
        found += (each for result in results for each in result)
    return found


class RedisIndex:
    """The messages of one owner."""

    def __init__(self, wire: Wire, partition: int, owner: str) -> None:
        self._wire = wire
        self._partition = partition
        self._owner = owner

    async def size(self) -> int:
        """Return the number of messages."""
        return int(await self._wire.ask(self._partition, "STRLEN", self._list(_EVERY))) // _ENTRY

    async def listed(self, terms: Sequence[str]) -> Mapping[str, Sequence[int]]:
        """The newest messages of each term."""
        newest = str(-MOST_OF_A_TERM * _ENTRY)
        found = await self._wire.ask_all(
            (self._partition, ("GETRANGE", self._list(term), newest, "-1")) for term in terms
        )
        return {term: _numbers(entries) for term, entries in zip(terms, found, strict=True)}

    async def holding(self, sought: Sequence[Question], limit: int) -> Sequence[Sequence[int]]:
        """For each question the messages that hold each of its words: the newest, and the oldest. Of a word that many
        messages hold not all are listed, so it decides only where no other word does."""
        listed = await self.listed(tuple(dict.fromkeys(term for each in sought for term in each.terms)))
        sets = {term: frozenset(numbers) for term, numbers in listed.items()}
        return [ranking.ends(sorted(_with_all(each, sets)), limit) for each in sought]

    async def texts(self, numbers: Sequence[int]) -> Mapping[int, Text]:
        """Return the words of the messages."""
        stored = await _stored(self._wire, self._partition, [*map(_message_id, numbers)])
        return await self.beside(lambda: _texts(stored))

    async def read(self, numbers: Sequence[int]) -> Mapping[int, Found]:
        """The messages themselves."""
        number_of = {_message_id(number): number for number in numbers}
        found = {}
        for message_id, stored in await _stored(self._wire, self._partition, list(number_of)):
            message, document = message_from(message_id, stored)
            found[number_of[message_id]] = Found(session_id=document["s"], message=message, at=document["at"])
        return found

    async def around(self, numbers: Sequence[int], reach: int) -> Mapping[int, Sequence[int]]:
        """The owner's messages before and after each."""
        if not (numbers and reach):
            return {number: (number,) for number in numbers}
        ids = [_message_id(number) for number in numbers]
        runs = await self._wire.look(self._partition, "around", self._owner, str(reach), *listed(ids))
        return {number: [*map(_number, run.split(" "))] for number, run in zip(numbers, runs, strict=True)}

    async def beside(self, work: Callable[[], T]) -> T:
        """The result of work that takes long, in a thread."""
        return await asyncio.to_thread(work)

    def _list(self, term: str) -> str:
        return f"stem:{self._owner}:{term}"


def _texts(stored: Sequence[tuple[str, str]]) -> dict[int, Text]:
    found = parsed(document_in(text) for _, text in stored)
    return {
        _number(message_id): Text(said_in({**document["b"], HOST: document["n"]}), document["at"], document["s"])
        for (message_id, _), document in zip(stored, found, strict=True)
    }


def _with_all(sought: Question, sets: Mapping[str, frozenset[int]]) -> frozenset[int]:
    """The messages that hold some term for each word of a question."""
    words = [frozenset[int]().union(*map(sets.__getitem__, alternatives)) for alternatives in sought.wanted]
    whole = [each for each in words if len(each) < MOST_OF_A_TERM] or words
    return frozenset.intersection(*whole) if whole else frozenset()


def _numbers(entries: str) -> Sequence[int]:
    """Entries as numbers that rise as the entries do. The client takes an answer's bytes for text."""
    found = array("Q", entries.encode("utf-8", "surrogateescape"))
    if sys.byteorder == "little":
        found.byteswap()
    return found


def _message_id(number: int) -> str:
    message, partition = divmod(number, 256)
    return str(message) if partition == _NOWHERE else f"{message}p{partition:02}"


def _number(message_id: str) -> int:
    number, mark, partition = message_id.partition("p")
    return int(number) * 256 + (int(partition) if mark else _NOWHERE)


async def _stored(wire: Wire, partition: int, ids: Sequence[str]) -> list[tuple[str, str]]:
    """(id, stored form) of messages."""
    if not ids:
        return []
    first, *others = (f"message:{message_id}" for message_id in ids)
    texts = await wire.ask(partition, "MGET", first, *(prefix(partition) + other for other in others))
    return [(message_id, stored) for message_id, stored in zip(ids, texts, strict=True) if stored is not None]
