"""Moving a whole store: the port of who gives its facts and who takes them, and the proof that they arrived.

What was copied is compared, order included, by one digest for each kind of record (`moved`).

What belongs to a running process (leases, fences, claims) is no fact and is not moved: the target is
as if the source's last process had been killed and another one were to start.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol

from gateway.store.moved import KINDS, Kind, Record


class Source(Protocol):
    """A store whose facts are read. `name` is its address without credentials, `identity` the same
    for two addresses of one store."""

    name: str

    @property
    def identity(self) -> str:
        """What tells it from other stores; known once it is open."""

    async def open(self) -> None:
        """Take it, so that no gateway opens it meanwhile. Raises StoreLocked if one uses it, or
        StoreUnavailable."""

    def dump(self, now: float) -> AsyncGenerator[Sequence[Record], None]:
        """All records in pages of at most PAGE. Kinds may be mixed; each is in its own order. What is
        FORGOTTEN by `now` (seconds since the epoch) is left out."""

    async def check(self) -> None:
        """Raises StoreUnavailable if it is no longer certain that no gateway uses it."""

    async def aclose(self) -> None:
        """Let go of it. Idempotent."""


class Target(Source, Protocol):
    """An empty store that is filled. `open` refuses any that is neither empty nor half-filled by a
    migration."""

    async def begin(self, origin: str) -> None:
        """Mark it as half-filled from `origin`, so that no gateway opens it, and empty it of what an
        earlier migration left."""

    async def restore(self, page: Sequence[Record]) -> None:
        """Store records, in the order in which a source gives them."""

    async def complete(self) -> None:
        """Every record is there: make whatever needs all of them."""

    async def publish(self) -> None:
        """Take the mark away: from now on it is a store like any other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """How many records of a kind there are, and the digest of them in their order."""

    count: int
    digest: str


class Tally:
    """Counts records and digests each kind's, in the order in which they are added."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(KINDS, 0)
        self._digests = {kind: sha256() for kind in KINDS}

    def add(self, page: Iterable[Record]) -> None:
        """The next records."""
        for record in page:
            self._counts[record.kind] += 1
            self._digests[record.kind].update(canonical(record))

    @property
    def total(self) -> int:
        """Records of every kind."""
        return sum(self._counts.values())

    def figures(self) -> dict[Kind, Figure]:
        """By kind, in the order of KINDS."""
        return {kind: Figure(count=self._counts[kind], digest=self._digests[kind].hexdigest()) for kind in KINDS}


def canonical(record: Record) -> bytes:
    """A record as bytes: equal for equal facts and for no others."""
    text = repr(record.facts())
    # With its length in front, two records cannot be taken for two others that are cut elsewhere.
    return f"{len(text)}:{text}".encode("utf-8", "backslashreplace")
