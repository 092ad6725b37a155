"""The contents of files, and the one guest book.

`files:<key>` holds the document of each file by its ref, `filed:<key>` their order, and `content:<key>:<digest>` a
content in pieces, so that a long content holds up no other step of this process. The document is written last: a file
is there when its document is.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Final

from gateway.domain.pairing import GuestBook
from gateway.store.redis.partitions import partition_of_name
from gateway.store.redis.wire import Wire
from gateway.store.shared.documents import guest_book_from, storable

GUEST_BOOK: Final = "guest_book"
_PIECE: Final = 768 * 1024  # bytes; a megabyte as text


async def content_of(wire: Wire, partition: int, lane: str, digest: str) -> bytes | None:
    """A content, put together again; None: there is no such content."""
    name = f"content:{lane}:{storable(digest)}"
    count = int(await wire.ask(partition, "HLEN", name))
    parts = [await wire.ask(partition, "HGET", name, str(place)) for place in range(count)]
    return b"".join(map(b64decode, parts)) if count else None


def pieces(content: bytes) -> Iterator[str]:
    """The pieces of a content in their order; an empty content has one piece."""
    for first in range(0, max(1, len(content)), _PIECE):
        yield b64encode(content[first : first + _PIECE]).decode()


async def read_notes(wire: Wire, account: str) -> dict[str, str]:
    """What an account's adapter remembers."""
    flat: list[str] = await wire.ask(partition_of_name(account), "HGETALL", f"notes:{storable(account)}")
    return dict(zip(flat[::2], flat[1::2], strict=True))


async def read_guest_book(wire: Wire) -> GuestBook:
    """The guest book; an empty one if nobody ever asked."""
    document = await wire.ask(partition_of_name(GUEST_BOOK), "HGET", GUEST_BOOK, "book")
    return guest_book_from(document) if document else GuestBook()
