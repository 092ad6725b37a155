"""The partitions of the facts: every Redis key of a chat begins with its partition's hash tag.

A step touches one partition, so on a cluster it runs on one node. The number of partitions is frozen in
the database at the first use.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from typing import Final, TypeVar
from zlib import crc32

from redis.crc import key_slot

from gateway.domain.chat import ChatAddress, SessionKey

T = TypeVar("T")

PARTITIONS: Final = 16
EVERYWHERE: Final = range(PARTITIONS)
_MOST_PLACES: Final = 50_000  # sessions and rows whose partition is remembered


def partition_of(platform: str, chat: str) -> int:
    """The partition of a platform's chat and of everything in it."""
    return crc32(f"{platform}\0{chat}".encode("utf-8", "surrogatepass")) % PARTITIONS


@lru_cache(maxsize=8_192)
def partition_of_key(key: SessionKey) -> int:
    """The partition of a conversation, which is its chat's."""
    return partition_of(key.platform, key.chat)


def by_partition(values: Iterable[T], place: Callable[[T], int]) -> dict[int, list[T]]:
    """Values by their partitions, in the order given."""
    found: dict[int, list[T]] = {}
    for value in values:
        found.setdefault(place(value), []).append(value)
    return found


def partition_of_name(name: str) -> int:
    """The partition of a thing that belongs to no chat, such as a bot account's lease."""
    return partition_of("", name)


@cache
def prefix(partition: int) -> str:
    """The beginning of a partition's keys."""
    return f"{{p{partition:02}}}:"


def slot_of(partition: int) -> int:
    """The cluster slot of a partition's keys."""
    return int(key_slot(prefix(partition).encode()))


def address_name(address: ChatAddress) -> str:
    """An address in text form, with its thread."""
    return str(SessionKey(platform=address.platform, chat=address.chat, thread=address.thread))


class Places:
    """The partitions of the latest sessions and rows, for steps that know only an id."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, int] = OrderedDict()

    def note(self, name: str, partition: int) -> None:
        """The session or row of this id is in this partition."""
        self._known[name] = partition
        if len(self._known) > _MOST_PLACES:
            self._known.popitem(last=False)

    def get(self, name: str) -> int | None:
        """The partition, if it is remembered."""
        return self._known.get(name)

    def possible(self, name: str) -> tuple[int, ...]:
        """The partitions that may hold the session or row."""
        known = self.get(name)
        return tuple(EVERYWHERE) if known is None else (known,)
