"""The part of the store port that keeps the guest book: who was let in by a code, and who asks."""

from __future__ import annotations

from abc import ABC, abstractmethod

from gateway.domain.pairing import GuestBook


class PairingStore(ABC):
    """Two of the port's steps. They work in a store that is opened for reading, too: an admin lets
    somebody in from a shell while the gateway runs."""

    @abstractmethod
    async def guest_book(self) -> GuestBook:
        """The one book of this store, as it is now in every process."""

    @abstractmethod
    async def set_guest_book(self, book: GuestBook) -> bool:
        """Replace the book whose version is one less. False, and nothing is stored, if that is not the
        present one: then look again."""
