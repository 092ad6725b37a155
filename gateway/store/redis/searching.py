"""The inverted index: a list of messages for every term of every conversation (see parts/terms.lua).

Cost of storing: eight bytes of the server's memory for each distinct term of a message, and about 160 for each word
that its conversation had not used before. Terms are written after the messages, in steps of at most 400, so that a long
message holds nobody up. A term of several messages is written once for all of them, because a command costs more than
its bytes. So the messages of some turns wait for each other (`Entering`). Until then they are listed as unindexed: a
search first enters what is listed there, and so does another process after a crash. Cost of a search within a key: see
`ranking`; nobody else's messages are touched. A search of all messages goes key by key: for an administrator, not for a
turn.

One character of a script without spaces is found as a prefix: the terms of such scripts are entered under their
first character, too.
"""

from __future__ import annotations

import asyncio
import sys
from array import array
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeAlias, TypeVar

import structlog

from gateway.domain.chat import SessionKey
from gateway.domain.message import Message, note_of, said_in
from gateway.store.kinds import MESSAGE, MessageRecord
from gateway.store.records import Found, Meaning, Passage, Unembedded
from gateway.store.redis import vectors
from gateway.store.redis.endpoint import Endpoint, ask, used
from gateway.store.redis.keyspace import META, SEARCH, connect_meta, remove
from gateway.store.redis.partitions import EVERYWHERE, PARTITIONS, partition_of_key, prefix
from gateway.store.redis.wire import Wire
from gateway.store.shared import ranking, searchable
from gateway.store.shared.ranking import MOST_OF_A_TERM, Text
from gateway.store.shared.searchable import KINDS, RETURNED, Kind, kind_of, terms_of
from gateway.store.steps.sessions import message as whole
from gateway.words.misspellings import Vocabulary
from gateway.words.text import Question, is_dense

T = TypeVar("T")

log = structlog.get_logger(__name__)

_MOST_TERMS: Final = 400  # in one step
_MOST_MESSAGES: Final = 128  # whose terms one step enters
_PAGE: Final = 200  # messages read in one step
_OWNER: Final = 8  # bytes of a key's digest
_ENTRY: Final = 8  # bytes of an entry
_EVERY: Final = "*"  # the term of every message
_TOGETHER: Final = 16  # messages of a key that wait for each other
_SOON: Final = 0.5  # seconds that they wait at most
_KEYS, _PAUSE = 16, 0.01  # as many keys at a time, and seconds between
_LONG: Final = 16_384  # characters of the messages of a step, whose terms take some 10 ms
_SHORT: Final = 1_024  # of one message, whose terms take no thread's while


def owner_of(key: str, kind: Kind = "said") -> str:
    """A key as a short part of index keys, its own for each kind of messages."""
    digest = searchable.owner_of(key, size=_OWNER)
    return digest if kind == "said" else digest + RETURNED


def entries(message: Message) -> list[str]:
    """The terms and prefixes under which a message is entered; none: the message is not found by any."""
    return with_starts(terms_of(message, kind_of(message)))


def with_starts(terms: Sequence[str]) -> list[str]:
    """Terms with the list of all messages before them and the prefixes of dense scripts behind."""
    dense = [] if "".join(terms).isascii() else filter(is_dense, terms)
    starts = dict.fromkeys("^" + term[0] for term in dense)
    # The list of all goes with the first step, by which another process knows that these messages are being entered.
    return [_EVERY, *terms, *starts] if terms else []


New: TypeAlias = tuple[Message, Sequence[str] | None]
"""A new message, and its entries, where they are known."""


class Entering:
    """New messages that wait to be entered in the index: those of one key until they are `_TOGETHER`, or for `_SOON`
    seconds. Used on one event loop."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._waiting: dict[SessionKey, list[New]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, key: SessionKey, messages: Sequence[New]) -> None:
        """Enter them some time."""
        waiting = self._waiting.setdefault(key, [])
        waiting += messages
        if len(waiting) >= _TOGETHER:
            index(self._wire, key, self._waiting.pop(key))
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_SOON, self._look)

    def enter(self, most: int = sys.maxsize) -> None:
        """Enter the messages of some keys."""
        for key in list(islice(self._waiting, most)):
            index(self._wire, key, self._waiting.pop(key))

    def _look(self) -> None:
        self._timer = None
        self.enter(_KEYS)
        if self._waiting:
            self._timer = asyncio.get_running_loop().call_later(_PAUSE, self._look)


def index(wire: Wire, key: SessionKey, messages: Iterable[New]) -> None:
    """Enter those of these new messages that a search should find and that are not entered yet; nobody waits for it."""
    found: dict[Kind, dict[str, Sequence[str]]] = {kind: {} for kind in KINDS}
    for message, known in messages:
        if kind := kind_of(message):
            found[kind][note_of(message)["id"]] = with_starts(terms_of(message, kind)) if known is None else known
    for kind, some in found.items():
        for step in _steps(owner_of(str(key), kind), some, owed=True):
            wire.submit(partition_of_key(key), "index", *step)


def _steps(owner: str, terms_of: Mapping[str, Sequence[str]], *, owed: bool) -> Iterator[list[str]]:
    """Yield the arguments of the steps that enter messages, whose terms are given by their ids. `owed`: only those that
    are not entered yet."""
    ids = sorted(terms_of, key=int)
    for first in range(0, len(ids), _MOST_MESSAGES):
        some = ids[first : first + _MOST_MESSAGES]
        places = defaultdict[str, list[str]](list)
        for place, message_id in enumerate(some, 1):
            name = str(place)
            for term in terms_of[message_id]:
                places[term].append(name)
        flat = [text for term, held in places.items() for text in (term, " ".join(held))]
        for start in range(0, len(flat) or 1, 2 * _MOST_TERMS):
            chunk = flat[start : start + 2 * _MOST_TERMS]
            part = "some" if start + len(chunk) < len(flat) else "last" if start else "all"
            yield [owner, part, "1" if owed else "", *listed(some), str(len(chunk) // 2), *chunk]


async def _leave_owner(wire: Wire, endpoint: Endpoint, partition: int, owner: str) -> None:
    await remove(endpoint, f"{prefix(partition)}stem:{owner}:*")
    await remove(endpoint, f"{prefix(partition)}words:{owner}")
    await wire.run(partition, "leave_index", owner, "0", "0")


async def make_good(wire: Wire, partition: int) -> None:
    """Enter the messages that a process stored and has not entered, or could not any more."""
    await enter_again(wire, partition, await wire.ask(partition, "SMEMBERS", "unindexed"), owed=True)


async def _entered(wire: Wire, partition: int) -> None:
    """Return when all messages of a partition that are stored by now are in the index."""
    await make_good(wire, partition)
    await wire.settled()


async def enter_again(wire: Wire, partition: int, ids: Sequence[str], *, owed: bool = False) -> None:
    """Enter stored messages, or those among them that are `owed`; nobody waits for the entries."""
    for first in range(0, len(ids), _PAGE):
        for text in await _stored(wire, partition, ids[first : first + _PAGE]):
            said = said_from(text)
            message = whole(said)
            if kind := kind_of(message):
                terms = await asyncio.to_thread(entries, message)
                for step in _steps(owner_of(said.key.text, kind), {str(said.number): terms}, owed=owed):
                    wire.submit(partition, "index", *step)


async def unembedded(wire: Wire, model: str, length: int, limit: int) -> list[Unembedded]:
    """Messages of one conversation without a vector of this model, the newest first."""
    for partition in range(PARTITIONS):
        await _entered(wire, partition)
        same = await vectors.is_of(wire, partition, model, length)
        owners = [each for each in await wire.ask(partition, "SMEMBERS", "searched") if not each.endswith(RETURNED)]
        said = await wire.ask_all((partition, ("STRLEN", f"stem:{each}:{_EVERY}")) for each in owners)
        kept = await wire.ask_all((partition, ("HLEN", f"signs:{each}")) for each in owners)
        for owner, size, count in zip(owners, said, kept, strict=True):
            if not same or int(size) // _ENTRY != int(count):
                have = set(await wire.ask(partition, "HKEYS", f"signs:{owner}")) if same else set[str]()
                every = await RedisIndex(wire, partition, owner).every()
                missing = [name for name in map(_message_id, reversed(every)) if name not in have][:limit]
                if found := [_unembedded(each) for each in await _stored(wire, partition, missing)]:
                    return found
    return []


def _unembedded(text: str) -> Unembedded:
    said = said_from(text)
    return Unembedded(message_id=str(said.number), key=said.key, session_id=said.session_id, text=said_in(whole(said)))


async def outdated(endpoint: Endpoint) -> set[int]:
    """Return the partitions with entries that another version made: all or none. Raises UNREACHABLE."""
    async with used(connect_meta(endpoint)) as connection:
        made = await ask(connection, "HGET", META, SEARCH, seconds=endpoint.timeout)
    return set() if made == str(searchable.MADE) else set(EVERYWHERE)


async def _sessions(wire: Wire, partition: int) -> list[str]:
    found: list[str] = await wire.ask(partition, "ZRANGE", "i:session.sessions:", "0", "-1")
    return found


async def left(wire: Wire, old: Iterable[int]) -> int:
    """Return the number of messages in partitions whose entries another version made, as their sessions hold them."""
    number = 0
    for partition in sorted(old):
        ids = await _sessions(wire, partition)
        number += sum(await wire.ask_all((partition, ("LLEN", f"s:{each}")) for each in ids))
    return number


async def renew(wire: Wire, endpoint: Endpoint, old: set[int]) -> None:
    """Make the entries of another version anew, and take its own away: of these partitions, which leave the set. Each
    step may be done twice, and beside another process that does the same. Raises StoreUnavailable or UNREACHABLE: the
    next start begins anew."""
    if not old:
        return
    log.info("search_index_outdated", left=await left(wire, old))
    for partition in sorted(old):
        before, owners = set(await wire.ask(partition, "SMEMBERS", "searched")), set[str]()
        for session in await _sessions(wire, partition):
            ids = sorted(await wire.ask(partition, "LRANGE", f"s:{session}", "0", "-1"), key=int)
            for first in range(0, len(ids), _PAGE):
                owners |= await _renewed(wire, partition, ids[first : first + _PAGE])
        for owner in before - owners:
            await _leave_owner(wire, endpoint, partition, owner)
        old.discard(partition)
        log.info("search_index_outdated", partitions=len(old))
    async with used(connect_meta(endpoint)) as connection:
        if await ask(connection, "HEXISTS", META, "id", seconds=endpoint.timeout):
            await ask(connection, "HSET", META, SEARCH, str(searchable.MADE), seconds=endpoint.timeout)
    log.info("search_index_renewed")


async def _renewed(wire: Wire, partition: int, ids: Sequence[str]) -> set[str]:
    """Enter messages, and wait for their entries; their owners."""
    owners = set()
    for text in await _stored(wire, partition, ids):
        said = said_from(text)
        message = whole(said)
        if kind := kind_of(message):
            owner, terms = owner_of(said.key.text, kind), await asyncio.to_thread(entries, message)
            owners.add(owner)
            for step in _steps(owner, {str(said.number): terms}, owed=False):
                await wire.run(partition, "index", *step)
    return owners


async def search(
    wire: Wire, words: str, key: SessionKey | None, limit: int, now: float, meaning: Meaning | None = None
) -> list[Passage]:
    """The passages that answer best, best first: people's and the model's words, then results of tools."""
    if key is not None:
        partition = partition_of_key(key)
        await _entered(wire, partition)
        return await ranking.search(
            lambda kind: RedisIndex(wire, partition, owner_of(str(key), kind)), words, limit, now, meaning
        )
    sought = ranking.Sought.by(words, now)
    found = list[Passage]()
    for partition in range(PARTITIONS):
        await _entered(wire, partition)
        found += await _everybodys(wire, partition, sought, limit, meaning)
    return sorted(found, key=lambda each: (each.hit.message["role"] != "tool", each.score), reverse=True)[:limit]


async def holding(wire: Wire, values: Sequence[str], key: SessionKey, limit: int) -> list[list[Found]]:
    """For each value the messages of the key that hold all of its words."""
    partition = partition_of_key(key)
    await _entered(wire, partition)
    indexes = [RedisIndex(wire, partition, owner_of(str(key), kind)) for kind in KINDS]
    return await ranking.holding(indexes, values, limit)


async def around(wire: Wire, key: SessionKey, message_id: str, reach: int) -> list[Found]:
    """A message of the key among its neighbours; empty for any other message."""
    partition = partition_of_key(key)
    stored = await _stored(wire, partition, [message_id])
    if not stored or said_from(stored[0]).key != key:
        return []
    await _entered(wire, partition)
    return await ranking.around(RedisIndex(wire, partition, owner_of(str(key))), _entry(int(message_id)), reach)


async def _everybodys(
    wire: Wire, partition: int, sought: ranking.Sought, limit: int, meaning: Meaning | None
) -> list[Passage]:
    names = await wire.ask(partition, "SMEMBERS", "searched")
    owners = sorted({name.removesuffix(RETURNED) for name in names})

    def found_of(owner: str) -> Awaitable[list[Passage]]:
        said, returned = RedisIndex(wire, partition, owner), RedisIndex(wire, partition, owner + RETURNED)
        return ranking.find(said, returned, sought, limit, meaning)

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
        return int(await self._wire.ask(self._partition, "STRLEN", self._list(_EVERY))) // _ENTRY

    async def every(self) -> Sequence[int]:
        """Return the messages, rising."""
        return _numbers(await self._wire.ask(self._partition, "GETRANGE", self._list(_EVERY), "0", "-1"))

    async def listed(self, terms: Sequence[str]) -> Mapping[str, Sequence[int]]:
        newest = str(-MOST_OF_A_TERM * _ENTRY)
        each = [term for some in terms for term in some.split(ranking.ANY)]
        found = await self._wire.ask_all(
            (self._partition, ("GETRANGE", self._list(term), newest, "-1")) for term in each
        )
        numbers = {term: _numbers(entries) for term, entries in zip(each, found, strict=True)}
        return {
            some: numbers[some] if some in numbers else [n for term in some.split(ranking.ANY) for n in numbers[term]]
            for some in terms
        }

    async def vocabulary(self) -> Vocabulary:
        found: list[str] = await self._wire.ask(self._partition, "ZRANGE", f"words:{self._owner}", "0", "-1")
        return await self.beside(lambda: Vocabulary(found))

    async def holding(self, sought: Sequence[Question], limit: int) -> Sequence[Sequence[int]]:
        """For each question the messages that hold each of its words: the newest, and the oldest. Of a word that many
        messages hold not all are listed, so it decides only where no other word does."""
        listed = await self.listed(tuple(dict.fromkeys(term for each in sought for term in each.terms)))
        sets = {term: frozenset(numbers) for term, numbers in listed.items()}
        return [ranking.ends(sorted(_with_all(each, sets)), limit) for each in sought]

    async def texts(self, numbers: Sequence[int]) -> Mapping[int, Text]:
        stored = await _stored(self._wire, self._partition, [*map(_message_id, numbers)])
        return await self.beside(lambda: _texts(stored))

    async def read(self, numbers: Sequence[int]) -> Mapping[int, Found]:
        texts = await _stored(self._wire, self._partition, [*map(_message_id, numbers)])
        return {
            _entry(said.number): Found(session_id=said.session_id, message=whole(said), at=said.at)
            for said in map(said_from, texts)
        }

    async def around(self, numbers: Sequence[int], reach: int) -> Mapping[int, Sequence[int]]:
        if not (numbers and reach):
            return {number: (number,) for number in numbers}
        ids = [_message_id(number) for number in numbers]
        arguments = [self._owner, str(reach), *listed(ids)]
        runs = await self._wire.carry(self._partition, "around", arguments, writes=False).future
        return {
            number: [_entry(int(name)) for name in run.split(" ")] for number, run in zip(numbers, runs, strict=True)
        }

    async def nearest(self, meaning: Meaning) -> Sequence[int]:
        near = await vectors.nearest_to(self._wire, self._partition, self._owner, meaning)
        return [_entry(int(name)) for name in near]

    async def beside(self, work: Callable[[], T]) -> T:
        return await asyncio.to_thread(work)

    def _list(self, term: str) -> str:
        return f"stem:{self._owner}:{term}"


def _texts(texts: Iterable[str]) -> dict[int, Text]:
    found = map(said_from, texts)
    return {_entry(said.number): Text(said_in(whole(said)), said.at, said.session_id) for said in found}


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


def _message_id(entry: int) -> str:
    return str(entry >> 8)


def _entry(number: int) -> int:
    """A message as its entries are read (see parts/terms.lua)."""
    return number << 8 | 255


def said_from(text: str) -> MessageRecord:
    """A stored message."""
    return MESSAGE.record(text.partition(" ")[2])


def listed(values: Sequence[str]) -> list[str]:
    """Values as a script takes them: their number first."""
    return [str(len(values)), *values]


async def _stored(wire: Wire, partition: int, ids: Sequence[str]) -> list[str]:
    """The stored form of messages, as far as they are there."""
    if not ids:
        return []
    first, *others = (f"message:{message_id}" for message_id in ids)
    texts = await wire.ask(partition, "MGET", first, *(prefix(partition) + other for other in others))
    return [text for text in texts if text is not None]
