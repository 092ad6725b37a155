"""People, chats and messages, as Telegram's servers know them, and how they look as JSON of the Bot API."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any, Literal

from gateway.runtime.clock import Clock

ChatType = Literal["private", "group", "supergroup", "channel"]
SUPERGROUP = -1_000_000_000_000  # what the ids of supergroups and channels count down from
MEMBERS = frozenset({"creator", "administrator", "member", "restricted"})


@dataclass(slots=True, kw_only=True, eq=False)
class User:
    """A person, or the bot. `started`: they have written to the bot; `blocked`: they want no more of it."""

    id: int
    first_name: str
    last_name: str = ""
    username: str = ""
    language_code: str = "en"
    is_bot: bool = False
    started: bool = False
    blocked: bool = False

    def as_json(self) -> dict[str, Any]:
        """`User`."""
        optional = {"last_name": self.last_name, "username": self.username}
        if not self.is_bot:
            optional["language_code"] = self.language_code
        known = {name: value for name, value in optional.items() if value}
        return {"id": self.id, "is_bot": self.is_bot, "first_name": self.first_name, **known}


@dataclass(slots=True, kw_only=True, eq=False)
class Message:
    """One message as it stands now.

    `content`: what it is, in the words of the Bot API (`text` and `entities`, `photo` and `caption`, …). `topic`: the
    forum topic it is in, by the id of the message that opened it. `thread` is its `message_thread_id`: the topic; in a
    supergroup also the first message of a chain of replies. `texts`: what it said, from the first version on.
    """

    id: int
    chat: Chat
    sender: User | None
    date: int
    content: dict[str, Any]
    topic: int | None = None
    thread: int | None = None
    reply_to: Message | None = None
    reply_markup: dict[str, Any] | None = None
    edited: int | None = None
    deleted: bool = False
    texts: list[str] = field(default_factory=list)
    reactions: list[str] = field(default_factory=list)
    of_people: dict[int, tuple[str, ...]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Return the readable text."""
        return str(self.content.get("text", self.content.get("caption", "")))

    @property
    def entities(self) -> list[dict[str, Any]]:
        """Return the formatting."""
        return list(self.content.get("entities", self.content.get("caption_entities", ())))

    @property
    def buttons(self) -> list[dict[str, Any]]:
        """The buttons under it, row by row."""
        rows = (self.reply_markup or {}).get("inline_keyboard", ())
        return [button for row in rows for button in row]

    def as_json(self, *, with_reply: bool = True) -> dict[str, Any]:
        """`Message`. A message in a topic that answers nothing is shown as an answer to the one that opened it."""
        body: dict[str, Any] = {"message_id": self.id, "date": self.date, "chat": self.chat.as_json(), **self.content}
        if self.sender is not None:
            body["from"] = self.sender.as_json()
        if self.chat.type == "channel":
            body["sender_chat"] = self.chat.as_json()
        if self.thread is not None:
            body["message_thread_id"] = self.thread
        if self.topic is not None:
            body["is_topic_message"] = True
        answered = self.reply_to or (self.chat.messages.get(self.topic or 0) if self.topic != self.id else None)
        if with_reply and answered is not None:
            body["reply_to_message"] = answered.as_json(with_reply=False)
        if self.edited is not None:
            body["edit_date"] = self.edited
        if "inline_keyboard" in (self.reply_markup or {}):
            body["reply_markup"] = self.reply_markup
        return body


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A message that the bot is still writing, shown until then (monotonic seconds). `id`: the bot's name for it."""

    id: int
    text: str
    entities: list[dict[str, Any]]
    until: float


@dataclass(slots=True, kw_only=True, eq=False)
class Chat:
    """A chat. `members` maps ids of users to their status; `user` is the person of a private chat; `topics` maps ids
    of open topics to names, `closed_topics` names those nobody may write to. `drafts`: the bot's, one for each topic
    (None: outside of topics); those whose time is over are there, too."""

    id: int
    type: ChatType
    title: str = ""
    username: str = ""
    is_forum: bool = False
    user: User | None = None
    members: dict[int, str] = field(default_factory=dict)
    messages: dict[int, Message] = field(default_factory=dict)
    topics: dict[int, str] = field(default_factory=dict)
    closed_topics: set[int] = field(default_factory=set)
    migrated_to: int | None = None
    action: str = ""
    action_until: float = 0.0
    drafts: dict[int | None, Draft] = field(default_factory=dict)

    @property
    def grouplike(self) -> bool:
        """Many read it."""
        return self.type != "private"

    @property
    def visible(self) -> list[Message]:
        """Return the messages that a person sees, oldest first: edits applied, deleted messages gone."""
        return [message for message in self.messages.values() if not message.deleted]

    def as_json(self) -> dict[str, Any]:
        """`Chat`."""
        body: dict[str, Any] = {"id": self.id, "type": self.type}
        if self.user is not None:
            names = {"first_name": self.user.first_name, "last_name": self.user.last_name}
            return {**body, **{name: value for name, value in names.items() if value}, **_username(self.user.username)}
        body["title"] = self.title
        return {**body, **_username(self.username), **({"is_forum": True} if self.is_forum else {})}


def _username(username: str) -> dict[str, str]:
    return {"username": username} if username else {}


class World:
    """All that there is. Message ids count per supergroup and channel; private chats and groups share one sequence."""

    def __init__(self, clock: Clock, *, bot_id: int, bot_username: str, bot_name: str) -> None:
        self.bot = User(id=bot_id, first_name=bot_name, username=bot_username, is_bot=True, started=True)
        self.users: dict[int, User] = {bot_id: self.bot}
        self.chats: dict[int, Chat] = {}
        self._clock = clock
        self._user_ids = itertools.count(1001)
        self._group_ids = itertools.count(501)
        self._account = itertools.count(1)
        self._sequences: dict[int, itertools.count[int]] = {}

    def add_user(self, first_name: str, **details: Any) -> User:
        """Somebody new, with a private chat that the bot may not write to before they do."""
        user = User(id=details.pop("id", None) or next(self._user_ids), first_name=first_name, **details)
        self.users[user.id] = user
        self.chats[user.id] = Chat(id=user.id, type="private", user=user)
        return user

    def add_chat(self, kind: ChatType, title: str, *, is_forum: bool = False, username: str = "") -> Chat:
        """A chat of many, still empty."""
        number = next(self._group_ids)
        identity = -number if kind == "group" else SUPERGROUP - number
        chat = Chat(id=identity, type=kind, title=title, is_forum=is_forum, username=username)
        self.chats[identity] = chat
        return chat

    def find(self, chat_id: str) -> Chat | None:
        """A chat by its number, or by the @name of a public one."""
        if chat_id.startswith("@"):
            named = (chat for chat in self.chats.values() if chat.username.lower() == chat_id[1:].lower())
            return next(named, None)
        try:
            return self.chats.get(int(chat_id))
        except ValueError:
            return None

    def post(self, chat: Chat, sender: User | None, content: dict[str, Any], **details: Any) -> Message:
        """A new message at the end of a chat. `details`: `topic`, `reply_to`, `reply_markup`."""
        if chat.type in ("supergroup", "channel"):
            number = next(self._sequences.setdefault(chat.id, itertools.count(2)))
        else:
            number = next(self._account)
        message = Message(id=number, chat=chat, sender=sender, date=self.date(), content=content, **details)
        message.thread = message.topic
        if message.topic is None and message.reply_to is not None and chat.type == "supergroup":
            message.thread = message.reply_to.thread or message.reply_to.id
        message.texts.append(message.text)
        chat.messages[number] = message
        if sender is self.bot:
            chat.action = ""
            chat.drafts.pop(message.topic, None)
        return message

    def date(self) -> int:
        """Unix time, in whole seconds as everywhere in the Bot API."""
        return int(self._clock.now())
