"""The guest book, one row."""

from __future__ import annotations

import apsw

from gateway.domain.pairing import GuestBook
from gateway.store.shared.documents import guest_book_from, guest_book_json
from gateway.store.sqlite.connection import change, one


def guest_book(connection: apsw.Connection) -> GuestBook:
    """An empty one if nobody ever asked."""
    row = one(connection, "SELECT book FROM guest_book")
    return GuestBook() if row is None else guest_book_from(row[0])


def put(connection: apsw.Connection, book: GuestBook) -> bool:
    """Replace the book whose version is one less; whether it was there."""
    first = "INSERT OR IGNORE INTO guest_book(id, version, book) VALUES (1, :version, :book)"
    later = "UPDATE guest_book SET version = :version, book = :book WHERE version = :version - 1"
    bindings = {"version": book.version, "book": guest_book_json(book)}
    return bool(change(connection, first if book.version == 1 else later, bindings))
