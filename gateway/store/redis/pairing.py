"""The part of the store that keeps the guest book: one hash for all processes."""

from __future__ import annotations

from typing import Any, Final

from gateway.domain.pairing import GuestBook
from gateway.store.redis.deciding import DecidingStore
from gateway.store.redis.partitions import partition_of_name
from gateway.store.redis.wire import Wire
from gateway.store.shared.documents import guest_book_from, guest_book_json

GUEST_BOOK: Final = "guest_book"


async def read_guest_book(wire: Wire) -> GuestBook:
    """An empty one if nobody ever asked."""
    document = await wire.ask(partition_of_name(GUEST_BOOK), "HGET", GUEST_BOOK, "book")
    return guest_book_from(document) if document else GuestBook()


class GuestStore(DecidingStore):
    """Who was let in, known to all processes as soon as it is stored."""

    async def guest_book(self) -> GuestBook:
        return await read_guest_book(self._wire)

    async def set_guest_book(self, book: GuestBook) -> bool:
        def read(reply: list[Any]) -> bool:
            return bool(reply[0])

        parts = [str(book.version), guest_book_json(book)]
        return await self._wire.run(partition_of_name(GUEST_BOOK), "set_guest_book", *parts, read=read)
