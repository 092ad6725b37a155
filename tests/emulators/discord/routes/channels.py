"""Channels and threads: what they are, how they change, and that the bot types in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.emulators.discord.access import channel_of, guild_of, message_of, need, need_writing
from tests.emulators.discord.asked import Asked, snowflake
from tests.emulators.discord.cloud import Cloud
from tests.emulators.discord.permissions import Permission
from tests.emulators.discord.posting import post
from tests.emulators.discord.refusals import bad, bad_length
from tests.emulators.discord.threads import LONGEST_NAME, check_thread, open_alone, open_from, open_post
from tests.emulators.discord.world import Kind

TYPING: Final = 10.0  # seconds for which a person sees it, unless a message comes first


def channel(cloud: Cloud, asked: Asked) -> Any:
    """`GET /channels/{channel}`."""
    return channel_of(cloud, asked.identity("channel")).as_json(cloud.bot)


def typing(cloud: Cloud, asked: Asked) -> Any:
    """`POST /channels/{channel}/typing`."""
    where = channel_of(cloud, asked.identity("channel"))
    need_writing(cloud, where)
    where.typing[cloud.bot.id] = cloud.clock.monotonic() + TYPING
    return None


def change(cloud: Cloud, asked: Asked) -> Any:
    """`PATCH /channels/{channel}`: its name and topic; of a thread, whether it is archived or locked."""
    where = channel_of(cloud, asked.identity("channel"))
    if where.guild is None:
        raise bad(50024)
    own = where.is_thread and where.owner is cloud.bot and "locked" not in asked.form
    if not own:
        need(cloud, where, Permission.MANAGE_THREADS if where.is_thread else Permission.MANAGE_CHANNELS)
    if not 1 <= len(asked.form.get("name", where.name)) <= LONGEST_NAME:
        raise bad_length("name", 1, LONGEST_NAME)
    where.name = asked.form.get("name", where.name)
    where.topic = asked.form.get("topic", where.topic) or ""
    where.archived = bool(asked.form.get("archived", where.archived))
    where.locked = bool(asked.form.get("locked", where.locked))
    where.archive_minutes = asked.form.get("auto_archive_duration", where.archive_minutes)
    event = "THREAD_UPDATE" if where.is_thread else "CHANNEL_UPDATE"
    cloud.tell(event, where.as_json(cloud.bot), guild=where.guild, channel=where)
    return where.as_json(cloud.bot)


def delete(cloud: Cloud, asked: Asked) -> Any:
    """`DELETE /channels/{channel}`."""
    where = channel_of(cloud, asked.identity("channel"))
    if where.guild is None:
        return where.as_json()  # a DM is only closed
    need(cloud, where, Permission.MANAGE_THREADS if where.is_thread else Permission.MANAGE_CHANNELS)
    cloud.remove_channel(where)
    return where.as_json()


def thread_from_message(cloud: Cloud, asked: Asked) -> Any:
    """`POST /channels/{channel}/messages/{message}/threads`."""
    where = channel_of(cloud, asked.identity("channel"))
    check_thread(asked.form)
    need(cloud, where, Permission.CREATE_PUBLIC_THREADS)
    message = message_of(cloud, where, asked.identity("message"))
    thread = open_from(cloud, message, cloud.bot, asked.form["name"], **_details(asked))
    return thread.as_json(cloud.bot)


def thread(cloud: Cloud, asked: Asked) -> Any:
    """`POST /channels/{channel}/threads`: one without a message, or a post of a forum."""
    where = channel_of(cloud, asked.identity("channel"))
    check_thread(asked.form)
    if where.kind is Kind.FORUM:
        return _post_of_forum(cloud, asked)
    kind = Kind(asked.form.get("type", Kind.PRIVATE_THREAD))
    private = kind is Kind.PRIVATE_THREAD
    need(cloud, where, Permission.CREATE_PRIVATE_THREADS if private else Permission.CREATE_PUBLIC_THREADS)
    opened = open_alone(cloud, where, cloud.bot, asked.form["name"], kind, **_details(asked))
    return opened.as_json(cloud.bot)


def _post_of_forum(cloud: Cloud, asked: Asked) -> Any:
    where = channel_of(cloud, asked.identity("channel"))
    need(cloud, where, Permission.SEND_MESSAGES)
    tags = [snowflake(tag, "applied_tags") for tag in asked.form.get("applied_tags") or ()]
    opened = open_post(cloud, where, cloud.bot, asked.form["name"], applied=tags, **_details(asked))
    asked.body = asked.form.get("message") or {}
    message = post(cloud, opened, cloud.bot, asked, id=opened.id)
    return {**opened.as_json(cloud.bot), "message": cloud.shown_to_bot(message)}


def _details(asked: Asked) -> dict[str, Any]:
    minutes = asked.form.get("auto_archive_duration")
    return {"archive_minutes": minutes} if minutes else {}


def join(cloud: Cloud, asked: Asked) -> Any:
    """`PUT /channels/{channel}/thread-members/@me`."""
    where = channel_of(cloud, asked.identity("channel"))
    if not where.is_thread:
        raise bad(50024)
    where.followers.setdefault(cloud.bot.id, cloud.clock.now())
    return None


def active(cloud: Cloud, asked: Asked) -> Any:
    """`GET /guilds/{guild}/threads/active`."""
    guild = guild_of(cloud, asked.identity("guild"))
    seen = [each for each in guild.channels.values() if each.is_thread and each.seen_by(cloud.bot)]
    threads = [each for each in seen if not each.archived]
    members = [each.follower(cloud.bot.id) for each in threads if cloud.bot.id in each.followers]
    return {"threads": [each.as_json(cloud.bot) for each in reversed(threads)], "members": members}


def archived(cloud: Cloud, asked: Asked) -> Any:
    """`GET /channels/{channel}/threads/archived/public`."""
    where = channel_of(cloud, asked.identity("channel"))
    need(cloud, where, Permission.READ_MESSAGE_HISTORY)
    assert where.guild is not None
    found = [each for each in where.guild.channels.values() if each.parent is where and each.archived]
    return {"threads": [each.as_json(cloud.bot) for each in reversed(found)], "members": [], "has_more": False}


ROUTES: Final[Mapping[str, Callable[[Cloud, Asked], Any]]] = {
    "GET /channels/{channel}": channel,
    "PATCH /channels/{channel}": change,
    "DELETE /channels/{channel}": delete,
    "POST /channels/{channel}/typing": typing,
    "POST /channels/{channel}/messages/{message}/threads": thread_from_message,
    "POST /channels/{channel}/threads": thread,
    "PUT /channels/{channel}/thread-members/@me": join,
    "GET /guilds/{guild}/threads/active": active,
    "GET /channels/{channel}/threads/archived/public": archived,
}
