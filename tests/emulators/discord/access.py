"""The bot's rights: which channels, messages and guilds it may reach, and its deeds there."""

from __future__ import annotations

from tests.emulators.discord.cloud import Cloud
from tests.emulators.discord.permissions import Permission
from tests.emulators.discord.refusals import bad, forbidden, not_found
from tests.emulators.discord.world import TEXTUAL, Channel, Guild, Message


def channel_of(cloud: Cloud, identity: int) -> Channel:
    """A channel that the bot may see. Raises the refusal otherwise."""
    channel = cloud.channels.get(identity)
    if channel is None or channel.deleted:
        raise not_found(10003)
    if channel.guild is not None and cloud.bot.id not in channel.guild.members:
        raise forbidden(50001)
    if not channel.seen_by(cloud.bot):
        raise forbidden(50001)
    return channel


def guild_of(cloud: Cloud, identity: int) -> Guild:
    """A guild that the bot is in. Raises the refusal otherwise."""
    guild = cloud.guilds.get(identity)
    if guild is None:
        raise not_found(10004)
    if cloud.bot.id not in guild.members:
        raise forbidden(50001)
    return guild


def message_of(cloud: Cloud, channel: Channel, identity: int) -> Message:
    """A message of a channel. Raises the refusal if there is none, or its past is closed to the bot."""
    need(cloud, channel, Permission.READ_MESSAGE_HISTORY)
    message = channel.messages.get(identity)
    if message is None or message.deleted or message.only_for is not None:
        raise not_found(10008)
    return message


def need(cloud: Cloud, channel: Channel, permission: Permission) -> None:
    """Raise the refusal if the bot lacks a permission."""
    if not _has(cloud, channel, permission):
        raise forbidden(50013)


def _has(cloud: Cloud, channel: Channel, permission: Permission) -> bool:
    return channel.guild is None or bool(channel.guild.permissions(cloud.bot, channel) & permission)


def need_writing(cloud: Cloud, channel: Channel, *, files: bool = False, embeds: bool = False) -> None:
    """Raise the refusal if the bot cannot write there."""
    if channel.kind not in TEXTUAL:
        raise bad(50008)
    if channel.recipient is not None and channel.recipient.closed:
        raise forbidden(50007)
    if channel.is_thread:
        need(cloud, channel, Permission.SEND_MESSAGES_IN_THREADS)
        if channel.locked and not _has(cloud, channel, Permission.MANAGE_THREADS):
            raise bad(50083)  # a locked thread is archived, and a message does not open it
    else:
        need(cloud, channel, Permission.SEND_MESSAGES)
    if files:
        need(cloud, channel, Permission.ATTACH_FILES)
    if embeds:
        need(cloud, channel, Permission.EMBED_LINKS)
