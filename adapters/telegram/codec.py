"""Updates as Inbounds, by pure functions."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from adapters.telegram.characters import LONGEST, units
from adapters.telegram.updates import (
    Entity,
    Files,
    Membership,
    Message,
    Origin,
    Party,
    Press,
    Reacted,
    Sticker,
    Update,
)
from gateway.domain.adapter import Sign
from gateway.domain.chat import CUT, TORN, Attachment, ChatType, Inbound, Source, one_line, straight
from gateway.domain.place import EVERYWHERE, NOT_SAID, ListenRules
from gateway.domain.quoting import (
    BY_A_BOT,
    CALLED,
    CORRECTED,
    FORWARDED,
    cannot_read,
    in_reply_to,
    listed,
    poll_in_a_line,
)

PLATFORM: Final = "telegram"
_LOOKS_CUT: Final = LONGEST - 100  # UTF-16 units: clients cut at white space shortly before the limit

_CHAT_TYPES: Final[dict[str, ChatType]] = {"private": "direct", "group": "group", "supergroup": "group"}
# Entities around words that are quoted, or are code: https://core.telegram.org/bots/api#messageentity
_OTHERS: Final = ("blockquote", "expandable_blockquote", "code", "pre")
_POST: Final = "p"  # begins the thread of a post's comments
_AWAY: Final = ("left", "kicked")  # https://core.telegram.org/bots/api#chatmember
# The bot's signs, of those reactions that bots may use: https://core.telegram.org/bots/api#reactiontypeemoji
SIGNS: Final[dict[Sign, str]] = {"taken": "👀", "done": "👌", "failed": "💔"}
_OTHER_SIGNS: Final = {"custom_emoji": "❔", "paid": "⭐"}


class Me(Struct, frozen=True, kw_only=True):
    """The bot, as its messages and mentions name it."""

    id: int
    username: str


def inbound(
    update: Update,
    me: Me,
    listens: ListenRules = NOT_SAID,
    amends: tuple[str, ...] = (),
    posts: Container[tuple[int, int]] = (),
) -> Inbound | None:
    """The message of a person to the bot; None for every other update. `posts`: as `thread_of` has them.

    In a group, a message to the bot is a command, a mention or an answer to the bot, unless `listens` says otherwise;
    one that names or answers someone else never is. The bot may see all messages of a group, as an admin or without
    privacy mode. Of the others it takes those that can be a later part of such a message, and where `listens` wants
    that, the rest as `overheard`.
    """
    if update.my_chat_member is not None:
        return _membership(update.update_id, update.my_chat_member, me)
    if update.callback_query is not None:
        return _press(update.callback_query, me, posts)
    if update.message_reaction is not None:
        return _reaction(update.update_id, update.message_reaction, me)
    message = update.message or update.edited_message
    if message is not None and (message.migrate_to_chat_id or message.migrate_from_chat_id):
        return _renamed(update.update_id, message, me)
    writer = None if message is None else _writer(message)
    if message is None or writer is None:
        return None
    thread = thread_of(message, posts)
    chat_type = _chat_type(message, thread)
    said = _words(message)
    files = tuple(_attachments(message))
    if chat_type is None:
        return None
    if not (said or files):
        return _unread(update.update_id, message, _source(message.chat, writer, chat_type, thread), me)
    if update.edited_message and not (message.text or message.caption):
        return None  # the update of a live location
    private = message.chat.type == "private"
    rule = None if private else listens.of(*_places(message, thread), EVERYWHERE)
    if rule == "off":
        return None
    is_meant = private or _is_meant(message, me) or (rule == "free" and not _is_for_others(message))
    if message.is_automatic_forward:  # a post of the channel that the group discusses is nobody's word to the bot
        is_meant = False
    overheard = not is_meant and (message.is_automatic_forward or not _may_be_part(message))
    if overheard and (not listens.talk or said.startswith("/")):
        return None
    text = without_mention(said, me.username)
    context = _context(message, me, is_known=bool(amends))
    own = "" if message.is_automatic_forward else _own(message, text, me, context)
    if not (text if own is None else own).startswith("/"):
        text = context + (text or (CALLED if context and not files else ""))
        files += tuple(_answered_files(message))
    elif update.edited_message:
        return None  # an edited command was carried out already
    return Inbound(
        event_id=f"{me.id}:{update.update_id}:{message.chat.id}:{message.message_id}",  # as `message_of` reads it
        source=_source(message.chat, writer, chat_type, thread),
        text=text,
        kind="overheard" if overheard else "message",
        attachments=files,
        reply_to=str(message.reply_to_message.message_id) if message.reply_to_message else None,
        place=str(message.message_id),
        sent_at=message.date,
        part_of=_part_of(message),
        only_as_part=not is_meant and not overheard,
        own=own,
        amends=amends,
    )


def _writer(message: Message) -> Party | None:
    """The person who wrote a message, or the chat in whose name they did: the group itself of its anonymous admins, or
    a channel. Beside such a chat, `from` is a bot of Telegram's. None: nobody."""
    if message.sender_chat is not None:
        return message.sender_chat
    return None if message.writer is None or message.writer.is_bot else message.writer


def _source(chat: Party, person: Party, chat_type: ChatType, thread: str | None = None) -> Source:
    return Source(
        platform=PLATFORM,
        chat=str(chat.id),
        chat_type=chat_type,
        user=str(person.id),
        thread=thread,
        user_name=person.name,
        chat_name=straight(chat.title),
    )


def _unread(update: int, message: Message, source: Source, me: Me) -> Inbound | None:
    """A message that holds nothing for a bot. In a group it may be for nobody."""
    if not message.unread or source.chat_type != "direct":
        return None
    return Inbound(event_id=f"{me.id}:{update}", source=source, text=cannot_read(message.unread), kind="unread")


def _membership(update: int, change: Membership, me: Me) -> Inbound | None:
    """The bot left a chat or came back. It leaves the chat of a person who blocks it."""
    was, now = (member["status"] in _AWAY for member in (change.old_chat_member, change.new_chat_member))
    if was == now or change.chat.type not in _CHAT_TYPES:
        return None
    chat_type = _CHAT_TYPES[change.chat.type]
    why = "the person has blocked the bot" if chat_type == "direct" else "the bot is no longer in the group"
    return Inbound(
        event_id=f"{me.id}:{update}",
        source=_source(change.chat, change.writer, chat_type),
        kind="left" if now else "joined",
        text=why if now else "",
        sent_at=change.date,
    )


def _reaction(update: int, reacted: Reacted, me: Me) -> Inbound | None:
    """A person changed their reactions on a message: between two or, where the bot is an admin, in a group; Telegram
    never says in which topic."""
    said, chat = _changes(reacted), reacted.chat
    if reacted.user is None or reacted.user.is_bot or not said or chat.type not in _CHAT_TYPES:
        return None
    return Inbound(
        event_id=f"{me.id}:{update}",
        source=_source(chat, reacted.user, _CHAT_TYPES[chat.type]),
        kind="reaction",
        text=said,
        reply_to=str(reacted.message_id),
        sent_at=reacted.date,
    )


def _changes(reacted: Reacted) -> str:
    """The signs that were put and taken away, as an Inbound of kind `reaction` has them."""
    before, now = (
        dict.fromkeys(_OTHER_SIGNS.get(each["type"]) or each["emoji"] for each in side)
        for side in (reacted.old_reaction, reacted.new_reaction)
    )
    gone, came = (each for each in before if each not in now), (each for each in now if each not in before)
    return " ".join([*(f"-{each}" for each in gone), *(f"+{each}" for each in came)])


def _renamed(update: int, message: Message, me: Me) -> Inbound:
    """A group became a supergroup, with another number. Telegram tells this in the old group and in the new one."""
    before, after = message.migrate_from_chat_id or message.chat.id, message.migrate_to_chat_id or message.chat.id
    user = "" if message.writer is None else str(message.writer.id)
    return Inbound(
        event_id=f"{me.id}:{update}",
        source=Source(platform=PLATFORM, chat=str(after), chat_type="group", user=user),
        kind="renamed",
        text=str(before),
        sent_at=message.date,
    )


def _press(query: Press, me: Me, posts: Container[tuple[int, int]]) -> Inbound | None:
    message = query.message  # None for buttons of inline mode; of an old message there is only the chat
    if message is None or query.data is None or query.writer.is_bot:
        return None
    thread = thread_of(message, posts)
    kind: ChatType = "direct" if message.chat.type == "private" else "thread" if thread else "group"
    return Inbound(
        event_id=press_id(me.id, query.id),
        source=_source(message.chat, query.writer, kind, thread),
        text=query.data,
        kind="press",
    )


def press_id(bot: int, query: str) -> str:
    """The id of the event. A press that is delivered again keeps its number."""
    return f"{bot}:press:q{query}"


def message_of(event: str | None, chat: int) -> int | None:
    """The number of an event's message, if it is in this chat. A group that became a supergroup is another chat, and
    counts from one again."""
    match (event or "").split(":"):
        case [_, _, where, number] if where == str(chat) and number.isdecimal():
            return int(number)
    return None


def without_mention(text: str, username: str) -> str:
    """The text without the bot's name at its start or end, or after a command."""
    name = f"@{username}".lower()
    words = text.strip()
    lowered = words.lower()
    if words.startswith("/"):
        command, space, rest = words.partition(" ")
        return command[: -len(name)] + space + rest if command.lower().endswith(name) else words
    if lowered.startswith(name) and not _goes_on(words[len(name) :]):
        return words[len(name) :].lstrip(" ,:\n")
    return words[: -len(name)].rstrip() if lowered.endswith(name) else words


def _goes_on(rest: str) -> bool:
    return bool(rest) and (rest[0].isalnum() or rest[0] == "_")  # a longer name, of someone else


def thread_of(message: Message, posts: Container[tuple[int, int]]) -> str | None:
    """The topic of a message, or the post that it comments on. Telegram copies a channel's post into the group that
    discusses it, and shows each comment as a reply in the thread that begins there; a reply to a comment names the
    thread alone. `posts`: the copies that are known, by chat and number."""
    for each in (message, message.reply_to_message):
        if each is not None and each.is_automatic_forward:
            return f"{_POST}{each.message_id}"
    known = (message.chat.id, message.message_thread_id) in posts
    return f"{_POST}{message.message_thread_id}" if known else message.thread


def post_of(thread: str | None) -> int | None:
    """The number of the post whose comments are this thread; None if it is not such a thread."""
    return int(thread.removeprefix(_POST)) if thread is not None and thread.startswith(_POST) else None


def _chat_type(message: Message, thread: str | None) -> ChatType | None:
    kind = _CHAT_TYPES.get(message.chat.type)
    return "thread" if kind == "group" and thread else kind


def _places(message: Message, thread: str | None) -> tuple[str, ...]:
    chat = str(message.chat.id)
    return (f"{chat}/{thread}", chat) if thread else (chat,)


def _words(message: Message) -> str:
    if message.text or message.caption:
        return _shown(message).strip()
    if message.venue:
        return f"[venue: {message.venue['title']}, {message.venue['address']}]"
    if message.location:
        live = "live " if message.location.get("live_period") else ""
        return f"[{live}location: {message.location['latitude']:.6f}, {message.location['longitude']:.6f}]"
    if message.contact:
        name = f"{message.contact['first_name']} {message.contact.get('last_name') or ''}".strip()
        return f"[contact: {name}, {message.contact['phone_number']}]"
    if message.sticker:
        named = f'of the set "{one_line(message.sticker.set_name)}"' if message.sticker.set_name else ""
        return f"[{' '.join(filter(None, ['sticker', one_line(message.sticker.emoji), named]))}]"
    if message.dice:
        return f"[{message.dice['emoji']} shows {message.dice['value']}]"
    if message.checklist:
        tasks = " / ".join(each["text"] for each in message.checklist["tasks"])
        return f"[checklist: {message.checklist['title']} — {tasks}]"
    if message.poll:
        return asked(message.poll)
    return ""


def asked(poll: Mapping[str, Any]) -> str:
    """A poll in a line."""
    answers = [(each["text"], each.get("voter_count", 0)) for each in poll["options"]]
    return poll_in_a_line(poll["question"], answers, closed=bool(poll.get("is_closed")))


def _shown(message: Message, without: Container[str] = ()) -> str:
    entities = message.entities if message.text else message.caption_entities
    return _with_links(message.text or message.caption, entities, without)


def _with_links(text: str, entities: Sequence[Entity], without: Container[str] = ()) -> str:
    """The text with the addresses of the links behind words, and `without` entities of these types."""
    meant = [each for each in entities if each.url or each.type in without]
    if not meant:
        return text
    counted = text.encode("utf-16-le", "surrogatepass")  # offsets count UTF-16 units
    kept, done = "", 0
    for each in sorted(meant, key=lambda each: each.offset):
        start, end = 2 * each.offset, 2 * (each.offset + each.length)
        if start < done:
            continue
        words = counted[start:end].decode("utf-16-le", "replace")
        link = words if words == each.url else f"[{words}]({each.url})"
        kept += counted[done:start].decode("utf-16-le", "replace") + ("" if each.type in without else link)
        done = end
    return kept + counted[done:].decode("utf-16-le", "replace")


def _answered_files(message: Message) -> Iterator[Attachment]:
    """The files of the message that this one answers. Of an album, the picture with the words answers it."""
    answered = message.external_reply or message.reply_to_message
    if answered is not None and (message.text or message.caption) and message.edit_date is None:
        yield from _attachments(answered)


def _attachments(message: Files) -> Iterator[Attachment]:
    if message.photo:
        best = max(message.photo, key=lambda size: size.width * size.height)
        yield Attachment(kind="image", ref=best.file_id, name="photo.jpg", mime="image/jpeg", size=best.file_size)
    if message.voice:
        voice = message.voice
        yield Attachment(
            kind="voice",
            ref=voice.file_id,
            mime=voice.mime_type or "audio/ogg",
            size=voice.file_size,
            seconds=voice.duration,
        )
    if message.sticker:
        yield from _sticker(message.sticker)
    for file in (message.document, message.audio, message.video, message.video_note, message.animation):
        if file is None or (file is message.document and message.animation):  # an animation comes as both
            continue
        mime = file.mime_type or ("video/mp4" if file in (message.video, message.video_note) else "")
        yield Attachment(
            kind="image" if mime.startswith("image/") and file is message.document else "document",
            ref=file.file_id,
            name=straight(file.file_name),
            mime=mime,
            size=file.file_size,
            seconds=file.duration,
            preview=file.thumbnail.file_id if file.thumbnail and mime.startswith("video/") else "",
        )


def _sticker(sticker: Sticker) -> Iterator[Attachment]:
    """A sticker as a picture; of one that moves, frames where it is a video, else its thumbnail."""
    still = sticker.thumbnail if sticker.is_animated else sticker
    if sticker.is_video and sticker.thumbnail is not None:
        preview = sticker.thumbnail.file_id
        yield Attachment(
            kind="document",
            ref=sticker.file_id,
            name="sticker.webm",
            mime="video/webm",
            size=sticker.file_size,
            preview=preview,
        )
    elif still is not None and not sticker.is_video:
        yield Attachment(kind="image", ref=still.file_id, name="sticker.webp", mime="image/webp", size=still.file_size)


def _part_of(message: Message) -> str | None:
    if message.edit_date is not None:
        return None  # an edited part is taken alone
    if message.media_group_id is not None:
        return f"album {message.media_group_id}"
    length = units(message.text)
    if length < _LOOKS_CUT or message.forward_origin is not None:  # a forwarded text was a whole message
        return None
    return TORN if length == LONGEST else CUT


def _is_meant(message: Message, me: Me) -> bool:
    answered = message.reply_to_message
    if answered is not None and answered.writer is not None and answered.writer.id == me.id:
        return True
    text = message.text or message.caption
    entities = message.entities if message.text else message.caption_entities
    return any(_names(entity, text, me) for entity in entities)


def _is_for_others(message: Message) -> bool:
    """Whether a message which does not mean the bot names or answers someone else."""
    answered = message.reply_to_message
    if answered is not None and not (_begins_topic(answered) or answered.is_automatic_forward):
        author = answered.sender_chat or answered.writer
        if author is not None and author != (message.sender_chat or message.writer):
            return True
    entities = message.entities if message.text else message.caption_entities
    return any(each.type in ("mention", "text_mention") for each in entities)


def _may_be_part(message: Message) -> bool:
    """Whether the message can continue the one before it. Of a text in several parts only the first is a reply."""
    if message.media_group_id is not None:
        return True
    answered = message.reply_to_message
    plain = message.edit_date is None and message.forward_origin is None and bool(message.text)
    return plain and not message.text.startswith("/") and (answered is None or _begins_topic(answered))


def _begins_topic(message: Message) -> bool:
    return message.forum_topic_created is not None  # Telegram shows each message of a topic as a reply to its start


def _names(entity: Entity, text: str, me: Me) -> bool:
    if entity.type == "text_mention":
        return entity.user is not None and entity.user.id == me.id
    name = f"@{me.username}".lower()
    if entity.type == "mention":
        return _part(text, entity) == name
    if entity.type == "bot_command":
        _, at, bot = _part(text, entity).partition("@")
        return not at or f"@{bot}" == name
    return False


def _part(text: str, entity: Entity) -> str:
    counted = text.encode("utf-16-le", "surrogatepass")  # offsets count UTF-16 units
    return counted[2 * entity.offset : 2 * (entity.offset + entity.length)].decode("utf-16-le", "replace").lower()


def _context(message: Message, me: Me, *, is_known: bool) -> str:
    """The line in front of a message that was edited, forwarded, made by another bot, or is a reply. Line ends of
    quoted words are taken out, so that they stay in this line. `is_known`: the gateway says itself that it is an
    edit."""
    if message.edit_date is not None and not is_known:
        return CORRECTED
    if message.forward_origin is not None:
        return FORWARDED
    if message.via_bot is not None:
        return BY_A_BOT
    elsewhere, answered = message.external_reply, message.reply_to_message
    quoted = _with_links(message.quote.text, message.quote.entities)
    if elsewhere is not None:  # a message of another chat, of which Telegram tells no words but the quoted ones
        said = quoted or listed(_attachments(elsewhere)) or "a message of another chat"
        return in_reply_to(_origin(elsewhere.origin), said)
    if answered is None or _begins_topic(answered):
        return ""
    said = quoted or " ".join(filter(None, (_words(answered), listed(_attachments(answered)))))
    if not said:
        return ""
    author = answered.sender_chat or answered.writer
    who = "you" if author is not None and author.id == me.id else author.name if author else "somebody"
    return in_reply_to(who, said)


def _origin(said: Origin) -> str:
    party = said.sender_user or said.sender_chat or said.chat
    return (party.name if party else said.sender_user_name) or "somebody"


def _own(message: Message, text: str, me: Me, context: str) -> str | None:
    """The sender's own words in `text`, without forwarded text, quotes, code, contacts and words of other bots. None:
    all words are the sender's."""
    said = message.text or message.caption
    if message.forward_origin is not None or message.via_bot is not None or not said:
        return "" if text else None
    if any(each.type in _OTHERS for each in message.entities or message.caption_entities):
        return without_mention(_shown(message, _OTHERS), me.username)
    return None if text.startswith("/") or not context else text
