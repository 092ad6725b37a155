"""The partitions of the facts: every Redis key of a chat begins with its partition's hash tag.

A step touches one partition, so on a cluster it runs on one node. The number of partitions is frozen in
the database at the first use.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Final, TypeVar
from zlib import crc32

from redis.crc import key_slot

from gateway.domain.chat import SessionKey

T = TypeVar("T")

PARTITIONS: Final = 16
EVERYWHERE: Final = range(PARTITIONS)


def partition_of(platform: str, chat: str) -> int:
    """The partition of a platform's chat and of everything in it."""
    return crc32(f"{platform}\0{chat}".encode("utf-8", "surrogatepass")) % PARTITIONS


@lru_cache(maxsize=8_192)
def partition_of_key(key: SessionKey) -> int:
    """The partition of a conversation, which is its chat's."""
    return partition_of(key.platform, key.chat)


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
