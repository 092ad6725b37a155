"""Messages as JSON, with what their reader may see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.emulators.discord.snowflakes import moment_of, timestamp
from tests.emulators.discord.world import Message, MessageType

if TYPE_CHECKING:
    from tests.emulators.discord.cloud import Cloud


def message_json(
    cloud: Cloud, message: Message, *, blank: bool = False, event: bool = False, nested: bool = False
) -> dict[str, Any]:
    """`message`. `blank`: the reader has no MESSAGE_CONTENT; `event`: as the gateway tells of it, with the author's
    membership; `nested`: inside the message that answers it."""
    hidden = blank and not _open_to_bot(cloud, message)
    body: dict[str, Any] = {
        "id": str(message.id),
        "type": int(message.type),
        "channel_id": str(message.channel.id),
        "author": message.author.as_json(),
        "content": "" if hidden else message.content,
        "timestamp": timestamp(moment_of(message.id)),
        "edited_timestamp": timestamp(message.edited) if message.edited else None,
        "tts": False,
        "mention_everyone": message.everyone,
        "mentions": [_mention(message, user, event=event) for user in message.mentions],
        "mention_roles": [str(role) for role in message.mention_roles],
        "attachments": [] if hidden else [file.as_json(cloud.files.link(file)) for file in message.attachments],
        "embeds": [] if hidden else message.embeds,
        "components": [] if hidden else message.components,
        "pinned": message.pinned,
        "flags": message.flags,
    }
    if message.reactions:
        body["reactions"] = [_reaction(cloud, emoji, users) for emoji, users in message.reactions.items()]
    if message.reference is not None:
        body["message_reference"] = message.reference
    if message.type in (MessageType.REPLY, MessageType.THREAD_STARTER) and not nested:
        answered = message.answered
        gone = answered is None or answered.deleted
        body["referenced_message"] = (
            None if gone or answered is None else message_json(cloud, answered, blank=blank, nested=True)
        )
    if message.thread is not None and not message.thread.deleted:
        body["thread"] = message.thread.as_json(cloud.bot)
    if message.interaction is not None:
        body["interaction_metadata"] = message.interaction
    if message.application is not None:
        body["application_id"] = str(message.application)
        body["webhook_id"] = str(message.application)
    if message.stickers and not hidden:
        body["sticker_items"] = message.stickers
    if message.poll is not None:
        body["poll"] = message.poll
    if message.nonce is not None and not nested:
        body["nonce"] = message.nonce
    if event:
        body |= _where(message)
    return body


def _open_to_bot(cloud: Cloud, message: Message) -> bool:
    """Say whether a bot without MESSAGE_CONTENT sees the message: its own messages, its DMs, and those that mention
    it. https://discord.com/developers/docs/events/gateway#message-content-intent"""
    return message.author is cloud.bot or message.channel.guild is None or cloud.bot in message.mentions


def _where(message: Message) -> dict[str, Any]:
    channel = message.channel
    body: dict[str, Any] = {"channel_type": int(channel.kind)}
    if channel.guild is None:
        return body
    body["guild_id"] = str(channel.guild.id)
    member = channel.guild.members.get(message.author.id)
    return {**body, "member": member.as_json()} if member is not None else body


def _mention(message: Message, user: Any, *, event: bool) -> dict[str, Any]:
    body: dict[str, Any] = user.as_json()
    guild = message.channel.guild
    if event and guild is not None and user.id in guild.members:
        body["member"] = guild.members[user.id].as_json()
    return body


def _reaction(cloud: Cloud, emoji: str, users: list[int]) -> dict[str, Any]:
    details = {"burst": 0, "normal": len(users)}
    return {
        "emoji": {"id": None, "name": emoji},
        "count": len(users),
        "count_details": details,
        "me": cloud.bot.id in users,
        "me_burst": False,
        "burst_colors": [],
    }
