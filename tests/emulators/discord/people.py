"""What people do: they write, open threads, press buttons, come and go. The bot is told as Discord would tell it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.emulators.discord.asked import Upload
from tests.emulators.discord.cloud import Cloud
from tests.emulators.discord.mentions import Allowed
from tests.emulators.discord.posting import LONGEST, add, answer, keep, mention
from tests.emulators.discord.world import Channel, Guild, Kind, Message, Role, User

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360000002000001"
    "e221bc330000000049454e44ae426082"
)
"""A picture of one dot, as PNG."""


class People:
    """Everybody but the bot."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    # -- who and where -----------------------------------------------------------------------------

    def person(self, name: str, *, display: str = "", bot: bool = False) -> User:
        """Somebody new."""
        return self._cloud.add_user(name.lower(), display=display or name, bot=bot)

    def guild(self, name: str, *members: User, tier: int = 0, with_bot: bool = True) -> Guild:
        """A guild with one channel, `general`. Its first member owns it. The bot is told if it is connected."""
        owner = members[0] if members else self._cloud.owner
        guild = self._cloud.add_guild(name, owner, tier=tier)
        for member in members:
            self._cloud.join(guild, member)
        self._cloud.add_channel(Kind.TEXT, "general", guild)
        if with_bot:
            self.invite_bot(guild)
        return guild

    def invite_bot(self, guild: Guild) -> None:
        """The bot comes into a guild."""
        self._cloud.join(guild, self._cloud.bot)
        self._cloud.tell("GUILD_CREATE", guild.as_json(self._cloud.bot), guild=guild)

    def channel(self, guild: Guild, name: str, *, kind: Kind = Kind.TEXT, **details: Any) -> Channel:
        """A new channel. `details`: other fields of `Channel`."""
        channel = self._cloud.add_channel(kind, name, guild, **details)
        self._cloud.tell("CHANNEL_CREATE", channel.as_json(), guild=guild, channel=channel)
        return channel

    def general(self, guild: Guild) -> Channel:
        """The first channel of a guild."""
        return next(iter(guild.channels.values()))

    def direct(self, user: User) -> Channel:
        """Somebody's DM with the bot."""
        return self._cloud.direct(user)

    def role(self, guild: Guild, name: str, *members: User, permissions: int = 0) -> Role:
        """A role, and who bears it."""
        role = Role(id=self._cloud.ids.new(), name=name, permissions=permissions)
        guild.roles[role.id] = role
        for user in members:
            guild.members[user.id].roles.append(role.id)
        body = {"guild_id": str(guild.id), "role": role.as_json()}
        self._cloud.tell("GUILD_ROLE_CREATE", body, guild=guild)
        return role

    # -- writing -----------------------------------------------------------------------------------

    def say(
        self,
        channel: Channel,
        user: User,
        text: str,
        *,
        reply_to: Message | None = None,
        ping: bool = True,
        files: Sequence[Upload] = (),
    ) -> Message:
        """Write a message; `@Name` of a member becomes a mention, as in Discord's clients. `ping`: whether whoever is
        answered is told. Raises ValueError for a text that a client would not send."""
        content = self._with_mentions(channel, text).strip()
        if len(content) > LONGEST:
            raise ValueError(f"A message has at most {LONGEST} characters.")
        if not content and not files:
            raise ValueError("A message needs a text or a file.")
        message = Message(id=self._cloud.ids.new(), channel=channel, author=user, content=content)
        message.attachments = [keep(self._cloud, channel, upload) for upload in files]
        if reply_to is not None:
            answer(message, reply_to)
        mention(self._cloud, message, Allowed(replied_user=ping))
        add(self._cloud, message)
        return message

    def _with_mentions(self, channel: Channel, text: str) -> str:
        guild = channel.guild
        users = [member.user for member in guild.members.values()] if guild else [self._cloud.bot]
        for user in sorted(users, key=lambda each: -len(each.name)):
            for name in {user.name, user.display} - {""}:
                text = text.replace(f"@{name}", f"<@{user.id}>")
        return text

    def edit(self, message: Message, text: str) -> Message:
        """Change one's message."""
        message.content = self._with_mentions(message.channel, text).strip()
        message.edited = self._cloud.clock.now()
        message.texts.append(message.content)
        mention(self._cloud, message, Allowed())
        self._cloud.tell_message("MESSAGE_UPDATE", message)
        return message

    def delete(self, message: Message) -> None:
        """Delete a message."""
        self._cloud.remove(message)

    def react(self, message: Message, user: User, emoji: str, *, gone: bool = False) -> None:
        """Put a reaction on a message, or take it away."""
        self._cloud.react(message, user, emoji, gone=gone)
