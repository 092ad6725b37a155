"""The part of the store port that counts what may be spent and how fast may be sent, for all processes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from gateway.domain.rates import Rate
from gateway.store.records import CapReached, Reservation


class AllowanceStore(ABC):
    """Six of the port's steps: money is set aside under caps, moments to send at are given away."""

    @abstractmethod
    async def reserve(self, reservation: Reservation) -> CapReached | None:
        """Count a call's worst case as spent under each of its caps, or under none of them: then the
        first cap without room is returned. Asked again with the same id, it counts once.

        However many ask at once, no account goes beyond its limit; of several that together have no
        room, all may be refused. What nobody settles stays counted as it was reserved: its process
        is dead, and the money may have been spent.
        """

    @abstractmethod
    async def settle(self, reservation: Reservation, cost: int) -> None:
        """Replace a reservation by what the call really cost, in millionths of a US dollar. Done
        once: a second time, or a day later, it changes nothing."""

    @abstractmethod
    async def spent(self, accounts: Sequence[str]) -> list[int]:
        """What is spent and reserved under each account, in millionths of a US dollar."""

    @abstractmethod
    async def take(self, account: str, ticket: str, rates: Sequence[Rate]) -> float:
        """Seconds until the message `ticket` may be sent; 0.0: now, and the ticket is used up.

        The moment is the ticket's own: whoever waited asks again with the same ticket, in whatever
        process, and is told 0.0, or to wait again if `hold_off` or its own delay moved the moment.
        Moments given away in `account` keep all `rates`, however many processes ask; a moment that
        nobody uses is lost. One clock decides: this process's, or the server's where it is shared.
        """

    @abstractmethod
    async def hold_off(self, account: str, bucket: str, seconds: float) -> None:
        """The platform asked for silence: no moment of this bucket comes before it is over, those
        already given away included, and whoever starts again meanwhile."""

    @abstractmethod
    async def resting(self, account: str, bucket: str) -> float:
        """For how many seconds the bucket is to be left alone still; 0.0: it is not."""
