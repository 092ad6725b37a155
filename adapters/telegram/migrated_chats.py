"""The present number of a chat: a group that became a supergroup has another one.

Everything else goes by the number that the group had (`ChatStore.first_name`). Telegram tells the other one whenever
the first is used, so it is remembered for as long as the process runs and asked for again by the next; and the gateway
is told, which may hear of it in no other way. Messages
of the group stay with the group and are numbered from one again in the supergroup: so one that is shown there is
noted with the number of its chat.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from telegram.error import ChatMigrated

from gateway.domain.adapter import Renamed
from gateway.runtime.tasks import best_effort

T = TypeVar("T")


class MigratedChats:
    """The present numbers of chats, by the names that the gateway knows. `renamed` gives who is told of a new one."""

    def __init__(self, renamed: Callable[[], Renamed | None]) -> None:
        self._now: dict[str, int] = {}
        self._renamed = renamed

    async def reach(self, chat: str, call: Callable[[int], Awaitable[T]]) -> T:
        """Make a call to a chat. Raises TelegramError."""
        try:
            return await call(self._now.get(chat, int(chat)))
        except ChatMigrated as error:
            await self.learn(chat, error)
            return await call(error.new_chat_id)

    async def learn(self, chat: str, moved: ChatMigrated) -> None:
        """Remember the number of a chat that a refused call was told. The message that tells it may never come."""
        is_news = self._now.get(chat) != moved.new_chat_id
        self._now[chat] = moved.new_chat_id
        if is_news and (renamed := self._renamed()) is not None:
            await best_effort(renamed(chat, str(moved.new_chat_id)), what="rename")

    def note(self, chat: str, number: int, message: int) -> str:
        """Return the platform id of a message that was shown under a number of its chat."""
        return str(message) if str(number) == chat else f"{number}:{message}"

    def place(self, chat: str, noted: str) -> tuple[int, int]:
        """The inverse: the number that the chat had then, and the message's."""
        number, _, message = noted.rpartition(":")
        return int(number or chat), int(message)
