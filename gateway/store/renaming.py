"""The part of the store port that remembers chats whose platform calls them by another name than before."""

from __future__ import annotations

from abc import ABC, abstractmethod


class RenamingStore(ABC):
    """Three of the port's steps. Here a chat keeps its first name, under which its conversations, rules,
    files and questions lie, so that nothing has to be moved and no message can fall between two keys."""

    @abstractmethod
    async def rename_chat(self, platform: str, before: str, after: str) -> None:
        """The platform calls the chat `before` by the name `after` from now on, and it is there: it is open.
        Told again, nothing changes; what `after` was called first stays what was said of it first. It may be several
        transactions: a caller that was cut short says it again."""

    @abstractmethod
    async def first_name(self, platform: str, chat: str, event_id: str) -> str:
        """What the chat of an event was called first. An event that was accepted before its store knew of the
        other name stays where it is, so that it is known when it comes again."""

    @abstractmethod
    async def later_name(self, platform: str, chat: str) -> str | None:
        """What a chat is called instead by now; None: as it is asked for."""
