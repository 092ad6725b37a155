"""Guilds, channels, people and messages, as Discord's servers know them, and how they look as JSON.

Source: https://discord.com/developers/docs/resources: user, guild, channel, message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

from tests.emulators.discord.permissions import ALL, USUAL, Permission, effective
from tests.emulators.discord.snowflakes import moment_of, timestamp

UPLOAD_LIMITS: Final = {0: 10 << 20, 1: 10 << 20, 2: 50 << 20, 3: 100 << 20}
"""Bytes of one file, by the boost tier of the guild.
https://discord.com/developers/docs/reference#uploading-files gives the first; the help pages on boosts the others."""


class Kind(IntEnum):
    """The type of a channel."""

    TEXT = 0
    DM = 1
    VOICE = 2
    GROUP_DM = 3
    CATEGORY = 4
    NEWS = 5
    NEWS_THREAD = 10
    PUBLIC_THREAD = 11
    PRIVATE_THREAD = 12
    STAGE = 13
    FORUM = 15


THREADS: Final = frozenset({Kind.NEWS_THREAD, Kind.PUBLIC_THREAD, Kind.PRIVATE_THREAD})
TEXTUAL: Final = THREADS | {Kind.TEXT, Kind.DM, Kind.GROUP_DM, Kind.VOICE, Kind.NEWS, Kind.STAGE}


@dataclass(slots=True, kw_only=True, eq=False)
class User:
    """A person or a bot. `closed`: their privacy settings let no bot write to them. `installed`: they installed the
    bot for themselves."""

    id: int
    name: str
    display: str = ""
    bot: bool = False
    closed: bool = False
    installed: bool = False

    def as_json(self) -> dict[str, Any]:
        """`user`."""
        return {
            "id": str(self.id),
            "username": self.name,
            "global_name": None if self.bot else self.display or None,
            "discriminator": "0000" if self.bot else "0",
            "avatar": None,
            "public_flags": 0,
            **({"bot": True} if self.bot else {}),
        }


@dataclass(slots=True, kw_only=True, eq=False)
class Role:
    """A role of a guild."""

    id: int
    name: str
    permissions: int = 0
    position: int = 1
    mentionable: bool = False

    def as_json(self) -> dict[str, Any]:
        """`role`."""
        return {
            "id": str(self.id),
            "name": self.name,
            "permissions": str(self.permissions),
            "position": self.position,
            "mentionable": self.mentionable,
            "color": 0,
            "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
            "hoist": False,
            "managed": False,
            "flags": 0,
        }


@dataclass(slots=True, kw_only=True, eq=False)
class Member:
    """Somebody in a guild. `roles`: ids, without the one that all have."""

    user: User
    joined: float
    nick: str = ""
    roles: list[int] = field(default_factory=list)

    def as_json(self, *, with_user: bool = False) -> dict[str, Any]:
        """`guild member`."""
        body: dict[str, Any] = {
            "nick": self.nick or None,
            "avatar": None,
            "roles": [str(role) for role in self.roles],
            "joined_at": timestamp(self.joined),
            "premium_since": None,
            "deaf": False,
            "mute": False,
            "flags": 0,
            "pending": False,
            "communication_disabled_until": None,
        }
        return {**body, "user": self.user.as_json()} if with_user else body


@dataclass(slots=True, kw_only=True, eq=False)
class Guild:
    """A server. The role that all have bears the guild's own id. `tier`: of its boosts."""

    id: int
    name: str
    owner: User
    tier: int = 0
    available: bool = True
    roles: dict[int, Role] = field(default_factory=dict)
    members: dict[int, Member] = field(default_factory=dict)
    channels: dict[int, Channel] = field(default_factory=dict)  # threads, too
    talking: dict[int, Channel] = field(default_factory=dict)  # who is in which voice channel

    @property
    def upload_limit(self) -> int:
        """The most bytes of one file."""
        return UPLOAD_LIMITS[self.tier]

    def permissions(self, user: User, channel: Channel | None = None) -> int:
        """Return somebody's rights in the guild, or in one of its channels (of a thread, its parent counts)."""
        member = self.members.get(user.id)
        if member is None:
            return 0
        if user is self.owner:
            return ALL
        base = self.roles[self.id].permissions
        for role in member.roles:
            base |= self.roles[role].permissions
        place = channel.parent if channel is not None and channel.is_thread else channel
        if place is None:
            return ALL if base & Permission.ADMINISTRATOR else base
        return effective(self.id, base, member.roles, user.id, place.overwrites)

    def as_json(self, user: User) -> dict[str, Any]:
        """`guild` as in GUILD_CREATE, with what a user sees of it."""
        seen = [channel for channel in self.channels.values() if channel.seen_by(user)]
        threads = [thread for thread in seen if thread.is_thread and not thread.archived]
        return {
            **self.summary(),
            "joined_at": timestamp(self.members[user.id].joined),
            "large": len(self.members) > 250,
            "unavailable": False,
            "member_count": len(self.members),
            "voice_states": [voice_state(user, channel) for user, channel in self.talking.items()],
            "members": [self.members[user.id].as_json(with_user=True)],
            "channels": [channel.as_json() for channel in self.channels.values() if not channel.is_thread],
            "threads": [thread.as_json(user) for thread in threads],
            "presences": [],
            "stage_instances": [],
            "guild_scheduled_events": [],
            "soundboard_sounds": [],
        }

    def summary(self) -> dict[str, Any]:
        """`guild` as over HTTP."""
        return {
            "id": str(self.id),
            "name": self.name,
            "owner_id": str(self.owner.id),
            "roles": [role.as_json() for role in self.roles.values()],
            "premium_tier": self.tier,
            "premium_subscription_count": 0,
            "afk_timeout": 300,
            "verification_level": 0,
            "default_message_notifications": 1,
            "explicit_content_filter": 0,
            "mfa_level": 0,
            "nsfw_level": 0,
            "system_channel_flags": 0,
            "preferred_locale": "en-US",
            "features": [],
            "emojis": [],
            "stickers": [],
            "premium_progress_bar_enabled": False,
            **dict.fromkeys(_NOTHING),
        }


def voice_state(user: int, channel: Channel | None) -> dict[str, Any]:
    """`voice state`: https://discord.com/developers/docs/resources/voice#voice-state-object"""
    flags = ("deaf", "mute", "self_deaf", "self_mute", "self_video", "suppress")
    place = None if channel is None else str(channel.id)
    body = {
        "user_id": str(user),
        "channel_id": place,
        "session_id": f"voice-{user}",
        "request_to_speak_timestamp": None,
    }
    return {**body, **dict.fromkeys(flags, False)}


_NOTHING: Final = re.findall(
    r"\w+",
    "icon splash discovery_splash description banner afk_channel_id application_id system_channel_id rules_channel_id "
    "vanity_url_code public_updates_channel_id safety_alerts_channel_id",
)


@dataclass(slots=True, kw_only=True, eq=False)
class Channel:
    """A place to write, or a forum, which holds only threads. `recipient`: the person of a DM; `parent`: the channel of
    a thread; `owner`: whoever opened it; `followers`: who has joined it."""

    id: int
    kind: Kind
    name: str = ""
    topic: str = ""
    guild: Guild | None = None
    recipient: User | None = None
    parent: Channel | None = None
    owner: User | None = None
    archived: bool = False
    locked: bool = False
    overwrites: dict[int, tuple[int, int]] = field(default_factory=dict)
    tags: dict[int, str] = field(default_factory=dict)
    applied: list[int] = field(default_factory=list)
    slowmode: int = 0
    require_tag: bool = False
    archive_minutes: int = 4320
    messages: dict[int, Message] = field(default_factory=dict)
    followers: dict[int, float] = field(default_factory=dict)
    typing: dict[int, float] = field(default_factory=dict)  # user → until when (monotonic)
    deleted: bool = False

    @property
    def is_thread(self) -> bool:
        """A thread, also a post of a forum."""
        return self.kind in THREADS

    @property
    def visible(self) -> list[Message]:
        """Return the visible messages, oldest first: edits applied, deleted messages gone."""
        return [message for message in self.messages.values() if not message.deleted and message.only_for is None]

    def seen_by(self, user: User) -> bool:
        """Say whether somebody may look into it."""
        if self.guild is None:
            return self.kind is not Kind.GROUP_DM or not user.bot
        allowed = self.guild.permissions(user, self) & Permission.VIEW_CHANNEL
        if self.kind is Kind.PRIVATE_THREAD and user.id not in self.followers:
            return bool(self.guild.permissions(user, self) & Permission.MANAGE_THREADS)
        return bool(allowed)

    def as_json(self, user: User | None = None) -> dict[str, Any]:
        """`channel`. With a user, a thread says when they joined."""
        if self.recipient is not None:
            return self._dm()
        last = next(reversed(self.messages), None)
        if self.kind is Kind.FORUM and self.guild:  # its newest post
            last = max((each.id for each in self.guild.channels.values() if each.parent is self), default=None)
        body: dict[str, Any] = {
            "id": str(self.id),
            "type": int(self.kind),
            "guild_id": str(self.guild.id) if self.guild else None,
            "name": self.name,
            "parent_id": str(self.parent.id) if self.parent else None,
            "last_message_id": str(last) if last else None,
            "rate_limit_per_user": self.slowmode,
            "flags": 16 if self.require_tag else 0,
        }
        if self.guild is None:
            return body
        return {**body, **(self._thread(user) if self.is_thread else self._place())}

    def _dm(self) -> dict[str, Any]:
        assert self.recipient is not None
        last = next(reversed(self.messages), None)
        people = {"recipients": [self.recipient.as_json()], "last_message_id": str(last) if last else None}
        return {"id": str(self.id), "type": int(self.kind), "flags": 0, **people}

    def _place(self) -> dict[str, Any]:
        assert self.guild is not None
        overwrites = [
            {"id": str(key), "type": 0 if key in self.guild.roles else 1, "allow": str(allow), "deny": str(deny)}
            for key, (allow, deny) in self.overwrites.items()
        ]
        body: dict[str, Any] = {"topic": self.topic or None, "position": 0}
        body |= {"permission_overwrites": overwrites, "nsfw": False}
        if self.kind is Kind.FORUM:
            moderated: dict[str, Any] = {"moderated": False, "emoji_id": None, "emoji_name": None}
            body["available_tags"] = [{"id": str(key), "name": name, **moderated} for key, name in self.tags.items()]
            body |= {"default_reaction_emoji": None, "default_sort_order": None, "default_forum_layout": 0}
        if self.kind in (Kind.VOICE, Kind.STAGE):
            body |= {"bitrate": 64000, "user_limit": 0, "rtc_region": None}
        return body

    def _thread(self, user: User | None) -> dict[str, Any]:
        created = timestamp(moment_of(self.id))
        count = sum(
            not message.deleted and message.type != MessageType.THREAD_STARTER for message in self.messages.values()
        )
        body: dict[str, Any] = {
            "owner_id": str(self.owner.id) if self.owner else None,
            "message_count": count,
            "total_message_sent": count,
            "member_count": min(50, len(self.followers)),
            "thread_metadata": {
                "archived": self.archived,
                "auto_archive_duration": self.archive_minutes,
                "archive_timestamp": created,
                "create_timestamp": created,
                "locked": self.locked,
            },
            "applied_tags": [str(tag) for tag in self.applied],
        }
        if user is not None and user.id in self.followers:
            body["member"] = self.follower(user.id)
        return body

    def follower(self, user: int) -> dict[str, Any]:
        """`thread member`."""
        joined = timestamp(self.followers[user])
        return {"id": str(self.id), "user_id": str(user), "join_timestamp": joined, "flags": 0}


class MessageType(IntEnum):
    """The types of messages. https://discord.com/developers/docs/resources/message#message-object-message-types"""

    DEFAULT = 0
    THREAD_CREATED = 18
    REPLY = 19
    COMMAND = 20
    THREAD_STARTER = 21


EPHEMERAL: Final = 1 << 6
HAS_THREAD: Final = 1 << 5
LOADING: Final = 1 << 7
COMPONENTS_V2: Final = 1 << 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file of a message. `url` and `size` may be claims, as they may be with Discord."""

    id: int
    name: str
    size: int
    content_type: str
    path: str
    description: str = ""
    is_voice: bool = False

    def as_json(self, url: str) -> dict[str, Any]:
        """`attachment`; `url`: where it can be fetched for a while."""
        body: dict[str, Any] = {
            "id": str(self.id),
            "filename": self.name,
            "size": self.size,
            "url": url,
            "proxy_url": url,
            "content_type": self.content_type,
        }
        if self.content_type.startswith("image/"):
            body |= {"width": 1, "height": 1}
        if self.is_voice:
            body |= {"duration_secs": 1.0, "waveform": "AA=="}
        return {**body, "description": self.description} if self.description else body


@dataclass(slots=True, kw_only=True, eq=False)
class Message:
    """One message as it stands now. `texts`: what it said, from the first version on; `mentions`: whom it names, and
    `pings`: who was told of it; `only_for`: the one person who sees it (an ephemeral message)."""

    id: int
    channel: Channel
    author: User
    content: str
    type: MessageType = MessageType.DEFAULT
    flags: int = 0
    edited: float | None = None
    mentions: list[User] = field(default_factory=list)
    mention_roles: list[int] = field(default_factory=list)
    everyone: bool = False
    pinned: bool = False
    pings: set[int] = field(default_factory=set)
    attachments: list[Attachment] = field(default_factory=list)
    embeds: list[dict[str, Any]] = field(default_factory=list)
    components: list[dict[str, Any]] = field(default_factory=list)
    reactions: dict[str, list[int]] = field(default_factory=dict)
    reference: dict[str, Any] | None = None
    answered: Message | None = None
    thread: Channel | None = None
    nonce: str | int | None = None
    only_for: User | None = None
    interaction: dict[str, Any] | None = None
    application: int | None = None
    poll: dict[str, Any] | None = None
    stickers: list[dict[str, Any]] = field(default_factory=list)
    deleted: bool = False
    texts: list[str] = field(default_factory=list)

    @property
    def buttons(self) -> list[dict[str, Any]]:
        """All its buttons and menus, row by row."""
        return list(walk_components(self.components))


def walk_components(components: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Yield the usable components among some, at any depth."""
    for component in components:
        if component.get("type") in (2, 3, 5, 6, 7, 8):
            yield component
        yield from walk_components(component.get("components", ()))
        if "accessory" in component:
            yield from walk_components([component["accessory"]])


def everybody(guild: int) -> Role:
    """The role that all in a new guild have."""
    return Role(id=guild, name="@everyone", permissions=USUAL, position=0)
