"""Messages: written, read, changed, deleted, and reacted to."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import unquote

from tests.emulators.discord.access import channel_of, message_of, need, need_writing
from tests.emulators.discord.asked import Asked, snowflake
from tests.emulators.discord.cloud import Cloud
from tests.emulators.discord.permissions import Permission
from tests.emulators.discord.posting import change, check_form, post
from tests.emulators.discord.refusals import Refusal, forbidden, invalid
from tests.emulators.discord.snowflakes import moment_of
from tests.emulators.discord.world import Channel, Message

HOUR: Final = 3600.0
MOST_READ: Final = 100


def create(cloud: Cloud, asked: Asked) -> Any:
    """`POST /channels/{channel}/messages`."""
    where = channel_of(cloud, asked.identity("channel"))
    need_writing(cloud, where, files=bool(asked.files), embeds=bool(asked.form.get("embeds")))
    check_form(asked.form)
    known = _same_nonce(cloud, asked.form)
    if known is not None:
        return cloud.shown_to_bot(known)
    _check_slowmode(cloud, where)
    message = post(cloud, where, cloud.bot, asked)
    if message.nonce is not None:
        cloud.nonces[cloud.bot.id, str(message.nonce)] = (cloud.clock.monotonic(), message)
    return cloud.shown_to_bot(message)


def _same_nonce(cloud: Cloud, form: dict[str, Any]) -> Message | None:
    """The message that was made of the same nonce in the past few minutes, if the bot asks for that to be enforced."""
    if not form.get("enforce_nonce") or form.get("nonce") is None:
        return None
    found = cloud.nonces.get((cloud.bot.id, str(form["nonce"])))
    if found is None or cloud.clock.monotonic() - found[0] > cloud.settings.nonces:
        return None
    return found[1]


def _check_slowmode(cloud: Cloud, where: Channel) -> None:
    """Slowmode binds bots too, unless they may manage messages or the channel."""
    if not where.slowmode or where.guild is None:
        return
    if where.guild.permissions(cloud.bot, where) & (Permission.MANAGE_MESSAGES | Permission.MANAGE_CHANNELS):
        return
    own = [message for message in where.messages.values() if message.author is cloud.bot]
    wait = moment_of(own[-1].id) + where.slowmode - cloud.clock.now() if own else 0.0
    if wait > 0:
        raise Refusal(429, 20016, more={"retry_after": wait, "global": False})


def read_many(cloud: Cloud, asked: Asked) -> Any:
    """`GET /channels/{channel}/messages`: newest first, whatever was asked for."""
    where = channel_of(cloud, asked.identity("channel"))
    if where.guild is not None and not where.guild.permissions(cloud.bot, where) & Permission.READ_MESSAGE_HISTORY:
        return []
    limit = int(asked.query.get("limit", 50))
    if not 1 <= limit <= MOST_READ:
        raise invalid("limit", "NUMBER_TYPE_MAX", f"int value should be between 1 and {MOST_READ}.")
    found = where.visible
    marks = {name: snowflake(asked.query[name], name) for name in ("around", "before", "after") if name in asked.query}
    if "around" in marks:
        older = [message for message in found if message.id <= marks["around"]]
        newer = [message for message in found if message.id > marks["around"]]
        chosen = older[-(limit // 2 + 1) :] + newer[: limit // 2]
    elif "after" in marks:
        chosen = [message for message in found if message.id > marks["after"]][:limit]
    else:
        chosen = [message for message in found if "before" not in marks or message.id < marks["before"]][-limit:]
    return [cloud.shown_to_bot(message) for message in reversed(chosen)]


def read_one(cloud: Cloud, asked: Asked) -> Any:
    """`GET /channels/{channel}/messages/{message}`."""
    where = channel_of(cloud, asked.identity("channel"))
    return cloud.shown_to_bot(message_of(cloud, where, asked.identity("message")))


def edit(cloud: Cloud, asked: Asked) -> Any:
    """`PATCH /channels/{channel}/messages/{message}`."""
    where = channel_of(cloud, asked.identity("channel"))
    message = message_of(cloud, where, asked.identity("message"))
    if message.author is not cloud.bot:
        raise forbidden(50005)
    _check_old(cloud, message)
    change(cloud, message, asked)
    return cloud.shown_to_bot(message)


def _check_old(cloud: Cloud, message: Message) -> None:
    """A message older than an hour takes only a few edits in an hour."""
    now = cloud.clock.now()
    if now - moment_of(message.id) <= HOUR:
        return
    times = cloud.old_edits.setdefault(message.channel.id, deque())
    while times and times[0] <= now - HOUR:
        times.popleft()
    if len(times) >= cloud.settings.edits_of_old:
        raise Refusal(429, 30046, more={"retry_after": times[0] + HOUR - now, "global": False})
    times.append(now)


def delete(cloud: Cloud, asked: Asked) -> Any:
    """`DELETE /channels/{channel}/messages/{message}`."""
    where = channel_of(cloud, asked.identity("channel"))
    message = message_of(cloud, where, asked.identity("message"))
    if message.author is not cloud.bot:
        if where.guild is None:
            raise forbidden(50003)
        need(cloud, where, Permission.MANAGE_MESSAGES)
    cloud.remove(message)
    return None


def react(cloud: Cloud, asked: Asked) -> Any:
    """`PUT /channels/{channel}/messages/{message}/reactions/{emoji}/@me`."""
    where = channel_of(cloud, asked.identity("channel"))
    message = message_of(cloud, where, asked.identity("message"))
    emoji = unquote(asked.path["emoji"])
    if emoji.isascii() and ":" not in emoji:
        raise Refusal(400, 10014)
    if emoji not in message.reactions:
        need(cloud, where, Permission.ADD_REACTIONS)
    cloud.react(message, cloud.bot, emoji)
    return None


def unreact(cloud: Cloud, asked: Asked) -> Any:
    """`DELETE /channels/{channel}/messages/{message}/reactions/{emoji}/@me`."""
    where = channel_of(cloud, asked.identity("channel"))
    message = message_of(cloud, where, asked.identity("message"))
    cloud.react(message, cloud.bot, unquote(asked.path["emoji"]), gone=True)
    return None


def expire(cloud: Cloud, asked: Asked) -> Any:
    """`POST /channels/{channel}/polls/{message}/expire`."""
    where = channel_of(cloud, asked.identity("channel"))
    message = message_of(cloud, where, asked.identity("message"))
    if message.author is not cloud.bot or message.poll is None:
        raise forbidden(50001)
    message.poll["results"]["is_finalized"] = True
    cloud.tell_message("MESSAGE_UPDATE", message)
    cloud.journal.changed()
    return cloud.shown_to_bot(message)


ROUTES: Final[Mapping[str, Callable[[Cloud, Asked], Any]]] = {
    "POST /channels/{channel}/messages": create,
    "GET /channels/{channel}/messages": read_many,
    "GET /channels/{channel}/messages/{message}": read_one,
    "PATCH /channels/{channel}/messages/{message}": edit,
    "DELETE /channels/{channel}/messages/{message}": delete,
    "POST /channels/{channel}/polls/{message}/expire": expire,
    "PUT /channels/{channel}/messages/{message}/reactions/{emoji}/@me": react,
    "DELETE /channels/{channel}/messages/{message}/reactions/{emoji}/@me": unreact,
}
