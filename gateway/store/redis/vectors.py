"""Vectors of messages beside their index: for each owner the hashes `signs:<owner>` and `vectors:<owner>`, by message,
and in each partition `embedded`, which says whose they are. A message that could get none has empty ones, so that
their number tells whether one is missing. Both are base64: the client takes text."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence

from gateway.store.records import Meaning, Vector
from gateway.store.redis.wire import Wire
from gateway.store.shared.vectors import MOST, by_signs, nearest, size_of


async def keep(wire: Wire, partition: int, owner: str, model: str, vectors: Mapping[str, Vector]) -> None:
    """Keep vectors of an owner's messages that are still there."""
    parts = [part for name, each in vectors.items() for part in (name, *(b64encode(data).decode() for data in each))]
    await wire.run(partition, "keep_vectors", owner, model, str(size_of(vectors)), str(len(vectors)), *parts)


async def is_of(wire: Wire, partition: int, model: str, length: int) -> bool:
    """Whether the vectors of a partition are this model's, and of this length (0: nobody knows)."""
    of, size = await wire.ask(partition, "HMGET", "embedded", "model", "size")
    return bool(of == model and (not length or size in (None, str(length))))


async def nearest_to(wire: Wire, partition: int, owner: str, meaning: Meaning) -> Sequence[str]:
    """The owner's messages that mean nearly the same, nearest first."""
    if not owner or not await is_of(wire, partition, meaning.model, len(meaning.vector[1])):
        return []
    flat = await wire.ask(partition, "HGETALL", f"signs:{owner}")
    signs = list(zip(flat[::2], map(b64decode, flat[1::2]), strict=True))[-MOST:]
    if not (near := by_signs(meaning.vector[0], signs)):
        return []
    numbers = await wire.ask(partition, "HMGET", f"vectors:{owner}", *near)
    return nearest(meaning.vector[1], [(name, b64decode(each or "")) for name, each in zip(near, numbers, strict=True)])
