"""Vectors of texts, as stores keep them, and the nearest among them, without a library for arithmetic.

A vector is kept as its signs, one bit each, and its numbers as signed bytes. A search compares the signs of all
vectors, which takes a fraction of a microsecond each, and the numbers of those that come out nearest (binary
quantisation with a second look, as Yamada and others, 2021, describe).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest, nsmallest
from operator import itemgetter, mul
from typing import Final, TypeVar

from gateway.store.records import Vector

T = TypeVar("T")

NONE: Final[Vector] = (b"", b"")

MOST: Final = 20_000  # messages of a conversation that are compared, the newest ones
SECOND_LOOK: Final = 256  # of these, the nearest by their signs
NEAREST: Final = 16  # messages that a search is given


def packed(numbers: Sequence[float]) -> Vector:
    """A vector as it is stored. Raises ValueError for one without a direction."""
    most = max(map(abs, numbers), default=0.0)
    if not (most and math.isfinite(most)):
        raise ValueError("This vector points nowhere.")
    bits = sum(1 << place for place, number in enumerate(numbers) if number > 0)
    return bits.to_bytes(-(-len(numbers) // 8), "big"), array(
        "b", [round(127 * each / most) for each in numbers]
    ).tobytes()


def size_of(vectors: Mapping[str, Vector]) -> int:
    """The length of these vectors; 0 if there are none."""
    return max((len(numbers) for _, numbers in vectors.values()), default=0)


def by_signs(signs: bytes, others: Iterable[tuple[T, bytes]]) -> list[T]:
    """The names of vectors that may be nearest."""
    own = int.from_bytes(signs, "big")
    apart = (
        (name, (own ^ int.from_bytes(each, "big")).bit_count()) for name, each in others if len(each) == len(signs)
    )
    return [name for name, _ in nsmallest(SECOND_LOOK, apart, key=itemgetter(1))]


def nearest(numbers: bytes, others: Iterable[tuple[T, bytes]]) -> list[T]:
    """The names of the nearest by angle, nearest first."""
    own = array("b", numbers)
    scored = [(name, _cosine(own, array("b", each))) for name, each in others if len(each) == len(numbers)]
    return [name for name, _ in nlargest(NEAREST, scored, key=itemgetter(1))]


def _cosine(own: Sequence[int], other: Sequence[int]) -> float:
    """The cosine of their angle, times the length of the first."""
    return float(sum(map(mul, own, other)) / math.sqrt(sum(map(mul, other, other)) or 1))
