"""Threads: opened by the bot or by people, from a message, on their own, or as a post of a forum.

Source: https://discord.com/developers/docs/topics/threads.
"""

from __future__ import annotations

from typing import Any, Final

from tests.emulators.discord.cloud import Cloud
from tests.emulators.discord.refusals import Refusal, bad, bad_choice, bad_length, missing
from tests.emulators.discord.world import HAS_THREAD, Channel, Kind, Message, MessageType, User

DURATIONS: Final = (60, 1440, 4320, 10080)  # minutes without a message after which a thread is archived
LONGEST_NAME: Final = 100


def check_thread(form: dict[str, Any]) -> None:
    """Raise the refusal of a thread that breaks a limit."""
    if not form.get("name"):
        raise missing("name")
    if len(form["name"]) > LONGEST_NAME:
        raise bad_length("name", 1, LONGEST_NAME)
    if form.get("auto_archive_duration") not in (None, *DURATIONS):
        raise bad_choice("auto_archive_duration", f"Value must be one of {set(DURATIONS)}.")


def open_from(cloud: Cloud, message: Message, user: User, name: str, **details: Any) -> Channel:
    """Open a thread under a message; both have the same id. Raises the refusal where that cannot be."""
    parent = message.channel
    if parent.guild is None or parent.kind not in (Kind.TEXT, Kind.NEWS):
        raise bad(50024)
    if message.thread is not None:
        raise bad(160004)
    if message.type not in (MessageType.DEFAULT, MessageType.REPLY, MessageType.COMMAND):
        raise Refusal(400, 50068, "Invalid message type")
    kind = Kind.NEWS_THREAD if parent.kind is Kind.NEWS else Kind.PUBLIC_THREAD
    thread = _open(cloud, parent, kind, user, name, id=message.id, **details)
    message.thread = thread
    message.flags |= HAS_THREAD
    starter = Message(
        id=cloud.ids.new(),
        channel=thread,
        author=message.author,
        content="",
        type=MessageType.THREAD_STARTER,
        answered=message,
        reference=_reference(message),
    )
    thread.messages[starter.id] = starter
    _tell(cloud, thread)
    cloud.tell_message("MESSAGE_UPDATE", message)
    return thread


def open_alone(cloud: Cloud, parent: Channel, user: User, name: str, kind: Kind, **details: Any) -> Channel:
    """Open a thread without a message. Raises the refusal where that cannot be."""
    if parent.guild is None or parent.kind not in (Kind.TEXT, Kind.NEWS):
        raise bad(50024)
    thread = _open(cloud, parent, kind, user, name, **details)
    _tell(cloud, thread)
    if kind is not Kind.PRIVATE_THREAD:
        note = Message(id=cloud.ids.new(), channel=parent, author=user, content=name, type=MessageType.THREAD_CREATED)
        note.reference = {"type": 0, "channel_id": str(thread.id), "guild_id": str(parent.guild.id)}
        note.thread = thread
        parent.messages[note.id] = note
        cloud.tell_message("MESSAGE_CREATE", note)
    return thread


def open_post(cloud: Cloud, forum: Channel, user: User, name: str, **details: Any) -> Channel:
    """Open a post of a forum, still without its first message (which gets the thread's id). Raises the refusal where
    that cannot be."""
    if forum.kind is not Kind.FORUM:
        raise bad(50024)
    tags = details.get("applied", [])
    if forum.require_tag and not tags:
        raise Refusal(400, 40067, "A tag is required to create a forum post in this channel")
    if any(tag not in forum.tags for tag in tags) or len(tags) > 5:
        raise Refusal(400, 10087, "Unknown tag")
    thread = _open(cloud, forum, Kind.PUBLIC_THREAD, user, name, **details)
    _tell(cloud, thread)
    return thread


def _open(cloud: Cloud, parent: Channel, kind: Kind, user: User, name: str, **details: Any) -> Channel:
    assert parent.guild is not None
    thread = cloud.add_channel(kind, name, parent.guild, parent=parent, owner=user, **details)
    thread.followers[user.id] = cloud.clock.now()
    return thread


def _tell(cloud: Cloud, thread: Channel) -> None:
    data = {**thread.as_json(cloud.bot), "newly_created": True}
    cloud.tell("THREAD_CREATE", data, guild=thread.guild, channel=thread)


def _reference(message: Message) -> dict[str, Any]:
    assert message.channel.guild is not None
    place = {"channel_id": str(message.channel.id), "guild_id": str(message.channel.guild.id)}
    return {"type": 0, "message_id": str(message.id), **place}


def set_archived(cloud: Cloud, thread: Channel, archived: bool) -> None:
    """Archive a thread, or open it again."""
    thread.archived = archived
    cloud.tell("THREAD_UPDATE", thread.as_json(cloud.bot), guild=thread.guild, channel=thread)
