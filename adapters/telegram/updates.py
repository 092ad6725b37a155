"""What is read of Telegram's updates (https://core.telegram.org/bots/api#update), held to its types.

The library's own objects have every field that there is: to make them takes forty times as long.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import structlog
from msgspec import Meta, Struct, ValidationError, convert, field

from gateway.domain.chat import straight

log = structlog.get_logger(__name__)

_Date = Annotated[float, Meta(ge=0, lt=1 << 32)]
_Told = dict[str, Any] | None  # looked into where it is told in words
_UNREAD: Final = {
    "story": "a story",
    "gift": "a gift",
    "unique_gift": "a gift",
    "giveaway": "a giveaway",
    "giveaway_winners": "a giveaway",
    "game": "a game",
    "invoice": "an invoice",
    "paid_media": "pictures that have a price",
}


class Party(Struct, frozen=True, kw_only=True):
    """A person, a bot or a chat."""

    id: int
    type: str = ""  # of a chat
    is_bot: bool = False
    first_name: str = ""
    last_name: str = ""
    title: str = ""

    @property
    def name(self) -> str:
        return straight(f"{self.first_name} {self.last_name}".strip() or self.title)


class Entity(Struct, frozen=True, kw_only=True):
    """A marked part of a text, in UTF-16 units."""

    type: str
    offset: int
    length: int
    user: Party | None = None
    url: str = ""


class Quote(Struct, frozen=True, kw_only=True):
    """The words of a message that a reply is about."""

    text: str = ""
    entities: tuple[Entity, ...] = ()


class File(Struct, frozen=True, kw_only=True):
    """A file of any kind, or a picture in one of its sizes."""

    file_id: str
    file_unique_id: str  # stays, where the other one may change
    file_name: str = ""
    mime_type: str = ""
    file_size: int | None = None
    duration: float | None = None
    width: int = 0
    height: int = 0
    thumbnail: File | None = None


class Sticker(File, frozen=True, kw_only=True):
    """A picture that people send for a word. One that moves is a video, or a drawing that no program here reads."""

    emoji: str = ""
    set_name: str = ""
    is_animated: bool = False
    is_video: bool = False


class Origin(Struct, frozen=True, kw_only=True):
    """Who wrote a message of another chat: a person, a person who hides, a group or a channel."""

    sender_user: Party | None = None
    sender_chat: Party | None = None
    chat: Party | None = None
    sender_user_name: str = ""


class Files(Struct, frozen=True, kw_only=True):
    """The files of a message, of this chat or of another one."""

    photo: tuple[File, ...] = ()
    voice: File | None = None
    document: File | None = None
    audio: File | None = None
    video: File | None = None
    video_note: File | None = None
    animation: File | None = None
    sticker: Sticker | None = None
    origin: Origin = Origin()  # of a message of another chat


class Message(Files, frozen=True, kw_only=True):
    """A message. Of one that is too old, only the number and the chat are told."""

    message_id: int
    chat: Party
    date: _Date
    writer: Party | None = field(default=None, name="from")
    sender_chat: Party | None = None
    message_thread_id: int | None = None
    is_topic_message: bool = False
    is_automatic_forward: bool = False
    edit_date: _Date | None = None
    media_group_id: str | None = None
    text: str = ""
    caption: str = ""
    entities: tuple[Entity, ...] = ()
    caption_entities: tuple[Entity, ...] = ()
    reply_to_message: Message | None = None
    external_reply: Files | None = None
    quote: Quote = Quote()
    forward_origin: _Told = None
    via_bot: _Told = None
    migrate_to_chat_id: int | None = None
    migrate_from_chat_id: int | None = None
    forum_topic_created: _Told = None
    venue: _Told = None
    location: _Told = None
    contact: _Told = None
    dice: _Told = None
    poll: _Told = None
    checklist: _Told = None
    story: _Told = None
    gift: _Told = None
    unique_gift: _Told = None
    giveaway: _Told = None
    giveaway_winners: _Told = None
    game: _Told = None
    invoice: _Told = None
    paid_media: _Told = None

    @property
    def unread(self) -> str:
        """What a person sent that has neither words nor a file for a bot; "" if it is nothing of the kind."""
        return next((what for name, what in _UNREAD.items() if getattr(self, name) is not None), "")

    @property
    def thread(self) -> str | None:
        """A topic. A reply in an ordinary group has a thread, too, but is no conversation of its own."""
        return str(self.message_thread_id) if self.is_topic_message and self.message_thread_id else None


class Press(Struct, frozen=True, kw_only=True):
    """The press of a button."""

    id: str
    writer: Party = field(name="from")
    message: Message | None = None
    data: str | None = None


class Membership(Struct, frozen=True, kw_only=True):
    """What the bot was in a chat, and what it is now."""

    chat: Party
    writer: Party = field(name="from")
    date: _Date
    old_chat_member: dict[str, Any]
    new_chat_member: dict[str, Any]


class Reacted(Struct, frozen=True, kw_only=True):
    """The reactions of a person on a message, before and now; those of anonymous people are nobody's."""

    chat: Party
    message_id: int
    date: _Date
    user: Party | None = None
    old_reaction: tuple[dict[str, Any], ...] = ()
    new_reaction: tuple[dict[str, Any], ...] = ()


class Update(Struct, frozen=True, kw_only=True):
    """Something that happened; nothing, if it is of another kind."""

    update_id: int
    message: Message | None = None
    edited_message: Message | None = None
    callback_query: Press | None = None
    my_chat_member: Membership | None = None
    message_reaction: Reacted | None = None


# What a message can be read without: without any other field it would say something else, or in another's name.
_WORDS: Final = ("entities", "caption_entities", "quote", "venue", "location", "contact", "dice", "poll")
_SPARE: Final = frozenset(
    (*Files.__struct_fields__, *_WORDS, *_UNREAD, "checklist", "reply_to_message", "external_reply")
)
# Of these, what says whose words they are and whom they are for is kept if it can be read.
_TRIES: Final = (frozenset[str](), _SPARE - {"entities", "caption_entities", "reply_to_message"}, _SPARE)
_ODD: Final = (ValidationError, UnicodeEncodeError, RecursionError)  # a lone surrogate in a number's place; a deep nest


def read(document: dict[str, Any]) -> Update:
    """An update from Telegram's JSON; one that is of another shape says nothing."""
    try:
        return convert(document, Update)
    except _ODD:
        return _mended(document)


def _mended(document: dict[str, Any]) -> Update:
    """One that has nulls, as look-alikes of Telegram send them, or else spare fields of another shape."""
    for spare in _TRIES:
        try:
            update = convert(_without(document, spare), Update)
        except _ODD as error:
            odd = error
        else:
            if spare:
                log.warning("update_read_in_part", update=update.update_id, error=str(odd))
            return update
    log.error("update_unreadable", update=document["update_id"], exc_info=odd)
    return Update(update_id=document["update_id"])


def _without(value: Any, spare: frozenset[str] = frozenset()) -> Any:
    """The same without nulls and without these fields, however deep they lie."""
    if isinstance(value, dict):
        return {name: _without(part, spare) for name, part in value.items() if part is not None and name not in spare}
    return [_without(part, spare) for part in value if part is not None] if isinstance(value, list) else value
