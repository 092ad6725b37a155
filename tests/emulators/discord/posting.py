"""The way from a form of the bot to a message, or to another version of one.

Source: https://discord.com/developers/docs/resources/message#create-message and #edit-message.
"""

from __future__ import annotations

import base64
from typing import Any, Final

from tests.emulators.discord.access import need
from tests.emulators.discord.asked import Asked, Upload, snowflake
from tests.emulators.discord.cloud import Cloud
from tests.emulators.discord.components import check_components
from tests.emulators.discord.mentions import Allowed, allowed, named_in
from tests.emulators.discord.permissions import Permission
from tests.emulators.discord.polls import made
from tests.emulators.discord.refusals import Refusal, bad, bad_length, invalid, too_long
from tests.emulators.discord.world import (
    COMPONENTS_V2,
    LOADING,
    UPLOAD_LIMITS,
    Attachment,
    Channel,
    Message,
    MessageType,
    User,
)

VOICE: Final = 1 << 13  # the flag of a voice message
LONGEST: Final = 2000
LONGEST_NONCE: Final = 25
MOST_FILES: Final = 10
MOST_EMBEDS: Final = 10
SUPPRESS_EMBEDS: Final = 1 << 2
EMBED_TOTAL: Final = 6000


def text_of(form: dict[str, Any]) -> str:
    """The `content`, as it will be shown. Raises the refusal if that is too long."""
    content = form.get("content")
    if content is None:
        return ""
    if not isinstance(content, str):
        raise invalid("content", "STRING_TYPE_CONVERT", "Could not interpret as string.")
    content = content.strip()
    if len(content) > LONGEST:
        raise too_long("content", LONGEST)
    return content


def check_form(form: dict[str, Any]) -> None:
    """Raise the refusal of a form that breaks a limit."""
    nonce = form.get("nonce")
    if isinstance(nonce, str) and len(nonce) > LONGEST_NONCE:
        raise too_long("nonce", LONGEST_NONCE)
    embeds = form.get("embeds") or []
    if len(embeds) > MOST_EMBEDS:
        raise bad_length("embeds", 0, MOST_EMBEDS)
    if sum(_embed_size(embed) for embed in embeds) > EMBED_TOTAL:
        raise invalid("embeds", "MAX_EMBED_SIZE_EXCEEDED", f"Embed size exceeds maximum size of {EMBED_TOTAL}")
    check_components(form.get("components") or [], v2=bool(int(form.get("flags") or 0) & COMPONENTS_V2))
    if int(form.get("flags") or 0) & COMPONENTS_V2 and (form.get("content") or embeds):
        raise invalid("content", "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2", "The field cannot be used.")


def _embed_size(embed: dict[str, Any]) -> int:
    texts = [embed.get("title", ""), embed.get("description", "")]
    texts += [embed.get("footer", {}).get("text", ""), embed.get("author", {}).get("name", "")]
    texts += [part for field in embed.get("fields", ()) for part in (field.get("name", ""), field.get("value", ""))]
    return sum(len(text or "") for text in texts)


def attach(cloud: Cloud, channel: Channel, asked: Asked) -> list[Attachment]:
    """Store the files of a request. Raises the refusal if they are too many or too large."""
    if len(asked.files) > MOST_FILES:
        raise bad(50035)
    most = channel.guild.upload_limit if channel.guild else UPLOAD_LIMITS[0]
    if any(len(upload.content) > most for upload in asked.files.values()):
        raise Refusal(413, 40005)
    described = {str(each.get("id")): each for each in asked.form.get("attachments") or ()}
    voice = bool(int(asked.form.get("flags") or 0) & VOICE)
    if voice:
        _check_voice(cloud, channel, asked, described)
    return [
        keep(cloud, channel, upload, description=described.get(number, {}).get("description") or "", voice=voice)
        for number, upload in sorted(asked.files.items(), key=lambda item: int(item[0]))
    ]


def _check_voice(cloud: Cloud, channel: Channel, asked: Asked, described: dict[str, Any]) -> None:
    """https://discord.com/developers/docs/resources/message#voice-messages"""
    need(cloud, channel, Permission.SEND_VOICE_MESSAGES)
    (told,) = described.values() if len(described) == 1 else ({},)
    form, drawn = asked.form, base64.b64decode(told.get("waveform") or "")
    alone = len(asked.files) == 1 and not form.get("content") and not form.get("embeds")
    if not alone or not told.get("duration_secs") or not 0 < len(drawn) <= 256:
        raise invalid("attachments", "VOICE_MESSAGE_INVALID", "This is no voice message.")


def keep(cloud: Cloud, channel: Channel, upload: Upload, *, description: str = "", voice: bool = False) -> Attachment:
    """Store one file of a channel."""
    identity = cloud.ids.new()
    name = _safe(upload.name)
    path = f"{channel.id}/{identity}/{name}"
    cloud.files.keep(path, upload.content, upload.content_type)
    return Attachment(
        id=identity,
        name=name,
        size=len(upload.content),
        content_type=upload.content_type,
        path=path,
        description=description,
        is_voice=voice,
    )


def _safe(name: str) -> str:
    """A file name as Discord keeps it: letters, digits, dots, dashes and underscores."""
    return "".join(sign if sign.isascii() and (sign.isalnum() or sign in "._-") else "_" for sign in name) or "unknown"


def post(cloud: Cloud, channel: Channel, author: User, asked: Asked, **more: Any) -> Message:
    """A new message from a form. `more`: other fields of `Message`. Raises the refusal if the form is invalid."""
    form = asked.form
    content = text_of(form)
    check_form(form)
    files = attach(cloud, channel, asked)
    if not (
        content or files or form.get("embeds") or form.get("components") or form.get("sticker_ids") or form.get("poll")
    ):
        raise bad(50006)
    message = Message(
        id=more.pop("id", None) or cloud.ids.new(),
        channel=channel,
        author=author,
        content=content,
        flags=int(form.get("flags") or 0) | int(more.pop("flags", 0)),
        embeds=[{"type": "rich", **embed} for embed in form.get("embeds") or ()],
        components=numbered(form.get("components") or []),
        attachments=files,
        nonce=form.get("nonce"),
        poll=made(form.get("poll")),
        **more,
    )
    refer(cloud, message, form.get("message_reference"))
    mention(cloud, message, allowed(form))
    add(cloud, message)
    return message


def numbered(components: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Components with the ids that Discord gives them."""
    count = 0

    def number(component: dict[str, Any]) -> dict[str, Any]:
        nonlocal count
        count += 1
        body = {"id": count, **component}
        if "components" in component:
            body["components"] = [number(each) for each in component["components"]]
        return body

    return [number(component) for component in components]


def add(cloud: Cloud, message: Message) -> None:
    """Put a finished message at the end of its channel, and tell the bot of it."""
    channel = message.channel
    message.texts.append(message.content)
    channel.messages[message.id] = message
    channel.typing.pop(message.author.id, None)
    if channel.is_thread:
        channel.archived = False
        channel.followers.setdefault(message.author.id, cloud.clock.now())
    if message.only_for is None:
        cloud.tell_message("MESSAGE_CREATE", message)
    cloud.journal.changed()


def refer(cloud: Cloud, message: Message, reference: Any) -> None:
    """Make a message an answer to another one. Raises the refusal if there is none."""
    if reference is None:
        return
    identity = snowflake(reference.get("message_id"), "message_reference.message_id")
    need(cloud, message.channel, Permission.READ_MESSAGE_HISTORY)
    answered = message.channel.messages.get(identity)
    if answered is None or answered.deleted:
        if reference.get("fail_if_not_exists", True):
            raise invalid("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
        return
    if answered.type not in (MessageType.DEFAULT, MessageType.REPLY, MessageType.COMMAND):
        text = "Cannot reply to a system message"
        raise invalid("message_reference", "REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE", text)
    answer(message, answered)


def answer(message: Message, answered: Message) -> None:
    """Make a message an answer to another one of its channel."""
    channel = message.channel
    message.type, message.answered = MessageType.REPLY, answered
    message.reference = {"type": 0, "channel_id": str(channel.id), "message_id": str(answered.id)}
    if channel.guild is not None:
        message.reference["guild_id"] = str(channel.guild.id)


def mention(cloud: Cloud, message: Message, may: Allowed) -> None:
    """Note whom a message names and who is told."""
    named = named_in(message.content)
    guild = message.channel.guild
    users = [cloud.users[identity] for identity in named.users if identity in cloud.users and may.user(identity)]
    if message.answered is not None and may.replied_user and message.answered.author not in users:
        users.append(message.answered.author)
    message.mentions = users
    message.pings = {user.id for user in users}
    if guild is None:
        return
    message.mention_roles = [role for role in named.roles if role in guild.roles and may.role(role)]
    permitted = guild.permissions(message.author, message.channel) & Permission.MENTION_EVERYONE
    message.everyone = bool(named.everyone and permitted and "everyone" in may.parse)
    roles = set(message.mention_roles)
    for member in guild.members.values():
        if message.everyone or roles & set(member.roles):
            message.pings.add(member.user.id)


def change(cloud: Cloud, message: Message, asked: Asked, *, settle: bool = False) -> None:
    """Another version of a message. `settle`: the first one of a message that was only announced. Raises the refusal if
    the message would be empty or breaks a limit."""
    form = asked.form
    check_form(form)
    if "flags" in form:
        message.flags = message.flags & ~SUPPRESS_EMBEDS | int(form["flags"] or 0) & SUPPRESS_EMBEDS
    content = text_of(form) if "content" in form else message.content
    kept = _kept(message, form)
    added = attach(cloud, message.channel, asked)
    embeds = form["embeds"] or [] if "embeds" in form else message.embeds
    components = form["components"] or [] if "components" in form else message.components
    if not (content or kept or added or embeds or components):
        raise bad(50006)
    message.content, message.attachments, message.embeds = content, [*kept, *added], embeds
    message.components = numbered(components) if "components" in form else components
    if settle:
        message.flags &= ~LOADING
        message.texts[:] = [content]
    else:
        message.edited = cloud.clock.now()
        message.texts.append(content)
    mention(cloud, message, allowed(form))
    if message.only_for is None:
        cloud.tell_message("MESSAGE_UPDATE", message)
    cloud.journal.changed()


def _kept(message: Message, form: dict[str, Any]) -> list[Attachment]:
    if form.get("attachments") is None:
        return message.attachments
    wanted = {str(each.get("id")) for each in form["attachments"]}
    return [file for file in message.attachments if str(file.id) in wanted]
