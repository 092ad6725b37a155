"""The guest book as notes: one folder of the store, the same for every process."""

from __future__ import annotations

from typing import Final

from msgspec import convert, to_builtins

from gateway.domain.pairing import GuestBook
from gateway.store.port import Documents
from gateway.store.shared.documents import dumps, loads

_FOLDER: Final = "guest_book"


async def guest_book(store: Documents) -> GuestBook:
    """The guest book; an empty one if nobody ever asked. Raises StoreUnavailable."""
    notes = await store.notes(_FOLDER)
    return convert(loads(notes["book"]), GuestBook) if "book" in notes else GuestBook()


async def set_guest_book(store: Documents, book: GuestBook) -> bool:
    """Replace the book whose version is one less. False, and nothing is stored, if the present book has another
    version: then look again. Raises StoreUnavailable."""
    notes = {"version": str(book.version), "book": dumps(to_builtins(book))}
    return await store.set_notes(_FOLDER, notes, {"version": str(book.version - 1) if book.version > 1 else None})
