"""Coming and going: who is in a chat, who has blocked the bot, and what a group becomes."""

from __future__ import annotations

from typing import Any

from tests.emulators.telegram.cloud import Cloud
from tests.emulators.telegram.methods.chats import member_json, status_of
from tests.emulators.telegram.world import SUPERGROUP, Chat, User


class Membership:
    """The part of `People` that is about membership. Updates about members other than the bot go out only if it asked
    for them."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def block(self, user: User) -> None:
        """They want nothing more from the bot."""
        user.blocked = True
        self._status_changed(self._cloud.world.chats[user.id], user, self._cloud.world.bot, "member", "kicked")

    def unblock(self, user: User) -> None:
        """They take that back."""
        user.blocked = False
        self._status_changed(self._cloud.world.chats[user.id], user, self._cloud.world.bot, "kicked", "member")

    def join(self, chat: Chat, user: User) -> None:
        """Somebody comes in."""
        self.set_status(chat, user, "member", by=user)
        self._service(chat, user, {"new_chat_members": [user.as_json()]})

    def leave(self, chat: Chat, user: User) -> None:
        """Somebody goes."""
        self._service(chat, user, {"left_chat_member": user.as_json()})
        self.set_status(chat, user, "left", by=user)

    def add_bot(self, chat: Chat, by: User, *, status: str = "member") -> None:
        """The bot is taken into a chat."""
        bot = self._cloud.world.bot
        self.set_status(chat, bot, status, by=by)
        self._service(chat, by, {"new_chat_members": [bot.as_json()]})

    def kick_bot(self, chat: Chat, by: User) -> None:
        """The bot is thrown out."""
        self.set_status(chat, self._cloud.world.bot, "kicked", by=by)

    def set_status(self, chat: Chat, user: User, status: str, *, by: User) -> None:
        """Change what somebody is in a chat: `creator`, `administrator`, `member`, `restricted`, `left`, `kicked`."""
        before = status_of(self._cloud, chat, user)
        chat.members[user.id] = status
        self._status_changed(chat, by, user, before, status)

    def migrate(self, chat: Chat, by: User, *, told: bool = True) -> Chat:
        """Turn a group into a supergroup, which has another id; the new chat. The bot is told that it came into
        that one, and not that it left the other (https://github.com/tdlib/telegram-bot-api/issues/266). `told`: the
        messages about the change reach it, too."""
        assert chat.type == "group"
        new = self._cloud.world.add_chat("supergroup", chat.title)
        bot = self._cloud.world.bot
        new.members = {user: status for user, status in chat.members.items() if user != bot.id}
        chat.migrated_to = new.id
        if bot.id in chat.members:
            self.set_status(new, bot, chat.members[bot.id], by=by)
        if told:
            self._service(chat, by, {"migrate_to_chat_id": new.id})
            self._service(new, by, {"migrate_from_chat_id": chat.id})
        assert new.id < SUPERGROUP
        return new

    def _restart(self, chat: Chat) -> None:
        """Start the bot for a person who writes to it; they no longer block it."""
        assert chat.user is not None
        chat.user.started = True
        if chat.user.blocked:
            self.unblock(chat.user)

    def _service(self, chat: Chat, user: User, content: dict[str, Any]) -> None:
        """A message about the chat itself, which every bot in it sees."""
        message = self._cloud.world.post(chat, user, content)
        self._put("message", message.as_json(), chat)

    def _status_changed(self, chat: Chat, by: User, user: User, before: str, after: str) -> None:
        body = {
            "chat": chat.as_json(),
            "from": by.as_json(),
            "date": self._cloud.world.date(),
            "old_chat_member": member_json(user, before),
            "new_chat_member": member_json(user, after),
        }
        self._put("my_chat_member" if user is self._cloud.world.bot else "chat_member", body, chat)

    def _put(self, kind: str, body: dict[str, Any], chat: Chat) -> None:
        self._cloud.updates.put(kind, body, lane=chat.id)
        self._cloud.journal.changed()

    def _bot_status(self, chat: Chat) -> str:
        return status_of(self._cloud, chat, self._cloud.world.bot)
