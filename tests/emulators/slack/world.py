"""Slack's things: people, channels, messages, files; and what the emulator is set to."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.runtime.clock import Clock

SCOPES: Final = frozenset(
    (
        "app_mentions:read",
        "channels:history",
        "channels:read",
        "chat:write",
        "commands",
        "files:read",
        "files:write",
        "groups:history",
        "groups:read",
        "im:history",
        "im:read",
        "im:write",
        "mpim:history",
        "mpim:read",
        "reactions:read",
        "reactions:write",
        "users:read",
    )
)
Json = dict[str, Any]


@dataclass(kw_only=True)
class Settings:
    """How the app is set up. `acknowledged_within`: seconds for an envelope; `retries`: seconds before an event is sent
    again, each time; `request_url`: where events are posted in HTTP mode; None: Socket Mode."""

    token: str = "xoxb-1001-2002-emulatedsecret"
    app_token: str = "xapp-1-A0EMULATED-3003-emulatedsecret"
    signing_secret: str = "8f742231b10e8888abcd99yyyzzz85a5"
    scopes: frozenset[str] = SCOPES
    team: str = "T0EMULATED"
    enterprise: str = ""
    acknowledged_within: float = 3.0
    retries: tuple[float, ...] = (0.0, 60.0, 300.0)
    request_url: str | None = None
    all_messages: bool = True  # the app is subscribed to message.channels, not to mentions alone


@dataclass(eq=False, kw_only=True)
class User:
    """A person, or a program."""

    id: str
    name: str
    bot_id: str = ""
    home: list[Json] = field(default_factory=list)
    form: Json | None = None  # that is open before them


@dataclass(eq=False, kw_only=True)
class File:
    """A file."""

    id: str
    name: str
    mime: str
    content: bytes
    url: str = ""
    voice: bool = False

    def json(self) -> Json:
        """As Slack tells of it."""
        told: Json = {
            "id": self.id,
            "name": self.name,
            "title": self.name,
            "mimetype": self.mime,
            "size": len(self.content),
            "mode": "hosted",
            "url_private": self.url,
            "url_private_download": self.url,
        }
        return told | ({"subtype": "slack_audio", "duration_ms": 2_500} if self.voice else {})


@dataclass(eq=False, kw_only=True)
class Message:
    """A message. `texts`: all that it ever said, the newest last; `only_for`: the one who sees it."""

    ts: str
    channel: Channel
    user: User
    texts: list[str]
    thread_ts: str | None = None
    blocks: list[Json] = field(default_factory=list)
    metadata: Json | None = None
    files: list[File] = field(default_factory=list)
    attachments: list[Json] = field(default_factory=list)
    edited: str = ""
    deleted: bool = False
    only_for: User | None = None
    reactions: list[tuple[str, User]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """What it says now."""
        return self.texts[-1]

    @property
    def visible(self) -> str:
        """What people read in its blocks, or else in its text."""
        return "".join(_read(self.blocks)) or self.text

    @property
    def buttons(self) -> list[Json]:
        """The buttons under it."""
        elements = [each for block in self.blocks if block["type"] == "actions" for each in block["elements"]]
        return [each for each in elements if each["type"] == "button"]

    @property
    def options(self) -> list[Json]:
        """What can be chosen in its menu."""
        elements = [each for block in self.blocks if block["type"] == "actions" for each in block["elements"]]
        return [option for each in elements if each["type"] == "multi_static_select" for option in each["options"]]

    def json(self, *, metadata: bool = False) -> Json:
        """As Slack tells of it."""
        told: Json = {"type": "message", "user": self.user.id, "text": self.text, "ts": self.ts}
        if self.user.bot_id:
            told |= {"bot_id": self.user.bot_id}
        if self.thread_ts:
            told["thread_ts"] = self.thread_ts
        if self.blocks:
            told["blocks"] = self.blocks
        if self.files:
            told |= {"files": [file.json() for file in self.files]}
        if self.attachments:
            told["attachments"] = self.attachments
        if self.edited:
            told["edited"] = {"user": self.user.id, "ts": self.edited}
        if metadata and self.metadata:
            told["metadata"] = self.metadata
        replies = self.channel.replies(self.ts)
        if replies:
            told |= {"thread_ts": self.ts, "reply_count": len(replies), "latest_reply": replies[-1].ts}
        return told


def _read(parts: list[Json]) -> Iterator[str]:
    for number, each in enumerate(parts):
        if each["type"] in ("rich_text_section", "rich_text_quote", "rich_text_preformatted") and number:
            yield "\n"
        if each["type"] in ("text", "link"):
            yield each.get("text") or each.get("url", "")
        yield from _read([part for part in each.get("elements", ()) if each["type"] != "actions"])


@dataclass(eq=False, kw_only=True)
class Channel:
    """A channel (C…) or a direct chat (D…)."""

    id: str
    name: str = ""
    members: list[User] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    archived: bool = False
    status: str = ""
    prompts: dict[str, list[str]] = field(default_factory=dict)  # of its assistant threads

    @property
    def kind(self) -> str:
        """The kind of the channel."""
        return "im" if self.id.startswith("D") else "channel"

    def replies(self, thread: str) -> list[Message]:
        """The messages of a thread behind its first."""
        return [each for each in self.messages if each.thread_ts == thread and not each.deleted and not each.only_for]

    def find(self, ts: str) -> Message | None:
        """The message of this id."""
        return next((each for each in self.messages if each.ts == ts and not each.deleted), None)


class World:
    """All of a workspace."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self.settings, self.clock = settings, clock
        self.users: dict[str, User] = {}
        self.channels: dict[str, Channel] = {}
        self.files: dict[str, File] = {}
        self.triggers: dict[str, tuple[User, float | None]] = {}  # whose, and since when; None: it opened a form
        self._numbers = itertools.count(1)
        self._last = 0
        self.bot = self.user("Legato", bot=True)

    def new(self, letter: str) -> str:
        """Another id."""
        return f"{letter}0{next(self._numbers):08d}"

    def ts(self) -> str:
        """The id of a message that is written now: later than any other."""
        self._last = max(self._last + 1, int(self.clock.now() * 1_000_000))
        return f"{self._last // 1_000_000}.{self._last % 1_000_000:06d}"

    def trigger(self, user: User) -> str:
        """What lets the app open a form for three seconds, once."""
        name = f"{self.ts()}.{user.id}"
        self.triggers[name] = (user, self.clock.now())
        return name

    def user(self, name: str, *, bot: bool = False) -> User:
        """Another person or program."""
        user = User(id=self.new("U"), name=name, bot_id=self.new("B") if bot else "")
        self.users[user.id] = user
        return user

    def channel(self, name: str, *members: User) -> Channel:
        """Another channel, with the bot in it."""
        channel = Channel(id=self.new("C"), name=name, members=[self.bot, *members])
        self.channels[channel.id] = channel
        return channel

    def direct(self, user: User) -> Channel:
        """The chat of a person with the bot."""
        for channel in self.channels.values():
            if channel.kind == "im" and user in channel.members:
                return channel
        channel = Channel(id=self.new("D"), members=[self.bot, user])
        self.channels[channel.id] = channel
        return channel
