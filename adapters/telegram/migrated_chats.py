"""The present number of a chat: a group that became a supergroup has another one.

Everything else goes by the number that the group had (`Store.first_name`). Telegram tells the other one whenever
the first is used, so it is remembered for as long as the process runs and asked for again by the next. Messages
of the group stay with the group and are numbered from one again in the supergroup: so one that is shown there is
noted with the number of its chat.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from telegram.error import ChatMigrated

T = TypeVar("T")


class MigratedChats:
    """The present numbers of chats, by the names that the gateway knows."""

    def __init__(self) -> None:
        self._now: dict[str, int] = {}

    async def reach(self, chat: str, call: Callable[[int], Awaitable[T]]) -> T:
        """Make a call to a chat. Raises TelegramError."""
        try:
            return await call(self._now.get(chat, int(chat)))
        except ChatMigrated as error:
            self.learn(chat, error)
            return await call(error.new_chat_id)

    def learn(self, chat: str, moved: ChatMigrated) -> None:
        """Remember the number of a chat that a refused call was told."""
        self._now[chat] = moved.new_chat_id

    def note(self, chat: str, number: int, message: int) -> str:
        """Return the platform id of a message that was shown under a number of its chat."""
        return str(message) if str(number) == chat else f"{number}:{message}"

    def place(self, chat: str, noted: str) -> tuple[int, int]:
        """The inverse: the number that the chat had then, and the message's."""
        number, _, message = noted.rpartition(":")
        return int(number or chat), int(message)
