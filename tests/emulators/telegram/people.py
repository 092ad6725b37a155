"""The deeds of people: they write, send files, press buttons, come and go. The bot is told as Telegram would tell it.

In groups with privacy on, the bot sees commands, replies to it and mentions of it, and service messages
(https://core.telegram.org/bots/features#privacy-mode); an administrator sees everything.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from tests.emulators.telegram.access import LONGEST_TEXT
from tests.emulators.telegram.cloud import Cloud, Press
from tests.emulators.telegram.entities import settle
from tests.emulators.telegram.membership import Membership
from tests.emulators.telegram.units import length
from tests.emulators.telegram.world import MEMBERS, Chat, ChatType, Message, User

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360000002000001"
    "e221bc330000000049454e44ae426082"
)
"""A picture of one dot, as PNG."""

# Telegram's own, by their well-known numbers.
_ANONYMOUS = User(id=1_087_968_824, first_name="Group", username="GroupAnonymousBot", is_bot=True)
_CHANNEL = User(id=136_817_688, first_name="Channel", username="Channel_Bot", is_bot=True)
_TELEGRAM = User(id=777_000, first_name="Telegram")


class People(Membership):
    """Everybody but the bot."""

    def __init__(self, cloud: Cloud) -> None:
        super().__init__(cloud)
        self._albums = itertools.count(12_000_000_000_000_001)

    # -- who and where ----------------------------------------------------------------------------

    def person(self, first_name: str, **details: Any) -> User:
        """Somebody new. `details`: `id`, `last_name`, `username`, `language_code`."""
        return self._cloud.world.add_user(first_name, **details)

    def private(self, user: User) -> Chat:
        """Their chat with the bot."""
        return self._cloud.world.chats[user.id]

    def group(
        self,
        title: str,
        *members: User,
        kind: ChatType = "supergroup",
        forum: bool = False,
        bot: str = "member",
        username: str = "",
    ) -> Chat:
        """A chat of many. The first member owns it; `bot` is the bot's status in it, `"left"` if it is not there yet.
        Nobody is told: it has been there for a while."""
        chat = self._cloud.world.add_chat(kind, title, is_forum=forum, username=username)
        for place, member in enumerate(members):
            chat.members[member.id] = "member" if place else "creator"
        chat.members[self._cloud.world.bot.id] = "administrator" if kind == "channel" and bot == "member" else bot
        return chat

    def topic(self, chat: Chat, user: User, name: str) -> int:
        """Open a topic in a forum; its id."""
        created = {"forum_topic_created": {"name": name, "icon_color": 7322096}}
        message = self._cloud.world.post(chat, user, created)
        message.topic = message.thread = message.id
        chat.topics[message.id] = name
        self._deliver(message, service=True)
        return message.id

    # -- writing -------------------------------------------------------------------------------------

    def say(
        self,
        chat: Chat,
        user: User,
        text: str,
        *,
        reply_to: Message | None = None,
        topic: int | None = None,
        entities: Sequence[dict[str, Any]] = (),
    ) -> Message:
        """Write a text. Commands, mentions and links in it are found as by Telegram's clients. Raises ValueError for
        one that is too long, which a client would cut (`paste`)."""
        text, found = settle(text, list(entities))
        if length(text) > LONGEST_TEXT:
            raise ValueError(f"A message has at most {LONGEST_TEXT} characters.")
        content: dict[str, Any] = {"text": text, **({"entities": found} if found else {})}
        return self.send(chat, user, content, reply_to=reply_to, topic=topic)

    def say_as(self, chat: Chat, identity: Chat, text: str) -> Message:
        """Write in the name of a chat: of the group itself, as its anonymous admins do, or of a channel. A bot of
        Telegram's stands in for the person then (https://core.telegram.org/bots/api#message, `sender_chat`)."""
        stand_in = _ANONYMOUS if identity is chat else _CHANNEL
        text, found = settle(text, [])
        content = {"text": text, **({"entities": found} if found else {}), "sender_chat": identity.as_json()}
        return self.send(chat, stand_in, content)

    def repost(self, chat: Chat, channel: Chat, text: str) -> Message:
        """A post of the channel that this group discusses: Telegram copies each into the group."""
        text, found = settle(text, [])
        content = {"text": text, **({"entities": found} if found else {}), "sender_chat": channel.as_json()}
        return self.send(chat, _TELEGRAM, {**content, "is_automatic_forward": True})

    def paste(self, chat: Chat, user: User, text: str, **where: Any) -> list[Message]:
        """Write a text of any length: a client cuts it into messages that are as long as they may be."""
        messages = []
        while text:
            end = LONGEST_TEXT
            while length(text[:end]) > LONGEST_TEXT:
                end -= max(1, (length(text[:end]) - LONGEST_TEXT) // 2)
            messages.append(self.say(chat, user, text[:end], **where))
            text = text[end:]
        return messages

    def send(
        self,
        chat: Chat,
        user: User,
        content: dict[str, Any],
        *,
        reply_to: Message | None = None,
        topic: int | None = None,
    ) -> Message:
        """Send anything: `content` in the words of the Bot API (`{"location": …}`). Raises ValueError where nobody
        can write any more."""
        if chat.migrated_to is not None:
            raise ValueError("This group is a supergroup now; write there.")
        if chat.user is not None:
            self._restart(chat)
        if topic is None and reply_to is not None:
            topic = reply_to.topic
        sender = None if chat.type == "channel" else user
        message = self._cloud.world.post(chat, sender, content, reply_to=reply_to, topic=topic)
        self._deliver(message)
        return message

    def file(
        self,
        chat: Chat,
        user: User,
        kind: str,
        content: bytes = PIXEL,
        *,
        caption: str = "",
        name: str = "",
        mime_type: str = "",
        size: int | None = None,
        thumbnail: bytes | None = None,
        **where: Any,
    ) -> Message:
        """Send a `photo`, `document`, `voice`, `audio`, `video`, `animation`, `sticker` or `video_note`. `size` claims
        a size in bytes; `thumbnail`: a picture of a video; `where`: `reply_to`, `topic`."""
        return self.send(chat, user, self._media(kind, content, caption, name, mime_type, size, thumbnail), **where)

    def _media(
        self,
        kind: str,
        content: bytes,
        caption: str,
        name: str = "",
        mime_type: str = "",
        size: int | None = None,
        thumbnail: bytes | None = None,
    ) -> dict[str, Any]:
        stored = self._cloud.files.add(kind, content, name=name, mime_type=mime_type, size=size)
        text, entities = settle(caption, [], allow_empty=True)
        body = self._cloud.files.content(kind, stored, thumbnail=thumbnail)
        body |= {"caption": text} if text else {}
        return {**body, "caption_entities": entities} if entities else body

    def album(
        self,
        chat: Chat,
        user: User,
        contents: Sequence[bytes],
        *,
        kind: str = "photo",
        caption: str = "",
        captioned: int = 0,
        **where: Any,
    ) -> list[Message]:
        """Send several files at once: one message each, tied by `media_group_id`. The one at place `captioned` has the
        caption: of pictures clients give it to the first, of documents to the last."""
        group = str(next(self._albums))
        messages = []
        for place, content in enumerate(contents):
            media = self._media(kind, content, caption if place == captioned % len(contents) else "")
            messages.append(self.send(chat, user, {**media, "media_group_id": group}, **where))
        return messages

    def edit(self, message: Message, text: str) -> Message:
        """Change the text, or the caption, of one's message."""
        field = "text" if "text" in message.content else "caption"
        prefix = "" if field == "text" else "caption_"
        text, entities = settle(text, [])
        kept = {name: part for name, part in message.content.items() if name not in (field, f"{prefix}entities")}
        message.content = {**kept, field: text, **({f"{prefix}entities": entities} if entities else {})}
        message.edited = self._cloud.world.date()
        message.texts.append(text)
        self._deliver(message, edited=True)
        return message

    def delete(self, message: Message) -> None:
        """Delete a message. Bots are never told."""
        message.deleted = True
        self._cloud.journal.changed()

    # -- reacting ------------------------------------------------------------------------------------------

    def press(self, message: Message, user: User, button: str) -> Press:
        """Press the button with this text, or with this data. Raises LookupError if there is none."""
        for candidate in message.buttons:
            if button in (candidate["text"], candidate.get("callback_data")) and "callback_data" in candidate:
                return self._cloud.press(user, message, candidate["callback_data"])
        raise LookupError(f"Message {message.id} has no button {button!r}.")

    def forge_press(self, message: Message, user: User, data: str) -> Press:
        """Press a button that is not there (any more): clients can send what they like."""
        return self._cloud.press(user, message, data)

    def vote(self, message: Message, *answers: int) -> None:
        """Give these answers of a poll, counted from 0. Anonymous votes are told as counts."""
        poll = message.content["poll"]
        if poll["is_closed"] or (len(answers) > 1 and not poll["allows_multiple_answers"]):
            raise ValueError("This poll takes no such vote.")
        poll["total_voter_count"] += 1
        for each in answers:
            poll["options"][each]["voter_count"] += 1
        self._put("poll", poll, message.chat)

    def react(self, message: Message, user: User, emoji: str = "") -> None:
        """Have this reaction on a message, and no other; "": none. The bot is told only if it asked for it, and in
        groups as an administrator."""
        now = (emoji,) if emoji else ()
        before, message.of_people[user.id] = message.of_people.get(user.id, ()), now
        body = {
            "chat": message.chat.as_json(),
            "message_id": message.id,
            "user": user.as_json(),
            "date": self._cloud.world.date(),
            "old_reaction": [{"type": "emoji", "emoji": each} for each in before],
            "new_reaction": [{"type": "emoji", "emoji": each} for each in now],
        }
        if not message.chat.grouplike or self._bot_status(message.chat) == "administrator":
            self._put("message_reaction", body, message.chat)

    def update(self, kind: str, body: dict[str, Any]) -> None:
        """Any update at all, as it is (see `specimens`)."""
        self._cloud.updates.put(kind, body, lane=0)
        self._cloud.journal.changed()

    # -- who is told ------------------------------------------------------------------------------------------

    def _deliver(self, message: Message, *, edited: bool = False, service: bool = False) -> None:
        chat = message.chat
        if chat.grouplike and self._bot_status(chat) not in MEMBERS:
            self._cloud.journal.changed()
            return
        if service or self._is_meant_for_bot(message):
            kind = "channel_post" if chat.type == "channel" else "message"
            self._put(f"edited_{kind}" if edited else kind, message.as_json(), chat)
        else:
            self._cloud.journal.changed()

    def _is_meant_for_bot(self, message: Message) -> bool:
        chat, bot = message.chat, self._cloud.world.bot
        open_chat = chat.type in ("private", "channel") or not self._cloud.settings.privacy
        if open_chat or self._bot_status(chat) in ("administrator", "creator"):
            return True
        if message.reply_to is not None and message.reply_to.sender is bot:
            return True
        return any(self._addresses_bot(message.text, entity) for entity in message.entities)

    def _addresses_bot(self, text: str, entity: dict[str, Any]) -> bool:
        start = entity["offset"] * 2
        part = text.encode("utf-16-le")[start : start + entity["length"] * 2].decode("utf-16-le")
        name = f"@{self._cloud.world.bot.username}".lower()
        if entity["type"] == "bot_command":
            return "@" not in part or part.lower().endswith(name)
        if entity["type"] == "text_mention":
            return bool(entity["user"].get("id") == self._cloud.world.bot.id)
        return entity["type"] == "mention" and part.lower() == name
