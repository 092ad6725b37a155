"""The part of the store port that keeps questions to people. They belong to an unfinished item: its end
forgets them, so a button that is pressed later names nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gateway.domain.approval import Approval, Verdict
from gateway.domain.chat import ChatAddress, Outbound, SessionKey
from gateway.store.records import Lease


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What became of a verdict. `approval` is the question as it is now; `first` says whether this verdict
    decided it. `outbound` are the rows this worker must now send."""

    approval: Approval
    first: bool
    outbound: tuple[Outbound, ...] = ()


class ApprovalStore(ABC):
    """Four of the port's steps; the rules of `gateway.store.port` hold for them, too."""

    @abstractmethod
    async def ask(self, lease: Lease, approval: Approval, shown: Sequence[Outbound]) -> tuple[Outbound, ...]:
        """Store a question of the item that the lane runs, and the rows that ask it; a token that is
        known is not stored again. If the item's streaming reply is among them, it has its final text, and
        the item may open another one. Returns the rows to send now."""

    @abstractmethod
    async def decide(
        self, asked: Approval, verdict: Verdict, by: str | None, at: float, shown: Sequence[Outbound]
    ) -> Decision | None:
        """Decide a question, together with the rows that say so, unless somebody was first: then nothing
        is stored. None: it is not there any more."""

    @abstractmethod
    async def approvals(self, chat: ChatAddress) -> list[Approval]:
        """The questions of the chat's unfinished items (in all of its threads), decided or not, as they
        were asked."""

    @abstractmethod
    def on_decided(self, listener: Callable[[SessionKey], None]) -> None:
        """Call `listener` on the event loop whenever a question of a key is decided, in every process.
        News may be lost: who waits looks now and then."""
