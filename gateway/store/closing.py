"""The part of the store port that remembers chats in which nothing can be shown any more."""

from __future__ import annotations

from abc import ABC, abstractmethod

from gateway.domain.chat import ChatAddress


class ClosingStore(ABC):
    """Three of the port's steps. A chat is closed in all its threads, for every process, until a message
    from it is accepted: `accept` opens it in the same step. `mark_refused` closes one, too."""

    @abstractmethod
    async def close_chat(self, to: ChatAddress, reason: str) -> None:
        """The platform said that nothing reaches this chat: its rows that wait are refused with `reason`, and
        so is every later one as soon as its turn comes, without an attempt. A row that is being sent ends by itself."""

    @abstractmethod
    async def open_chat(self, to: ChatAddress) -> None:
        """The chat is there again; nothing happens to one that is open."""

    @abstractmethod
    async def closed(self, to: ChatAddress) -> str | None:
        """Why the chat is closed; None: it is not."""
