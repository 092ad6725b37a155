"""Inbounds from Discord's JSON. Pure.

Messages are the objects of https://discord.com/developers/docs/resources/message#message-object, interactions those of
https://discord.com/developers/docs/interactions/receiving-and-responding#interaction-object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct

from adapters.discord import polls
from adapters.discord.components import said as chosen
from gateway.delivery.markdown.characters import length
from gateway.domain.chat import CUT, JOINED, TORN, Attachment, ChatType, Inbound, InboundKind, Said, Source, straight
from gateway.domain.quoting import BY_A_BOT, CALLED, FORWARDED, cannot_read, card, flat, in_reply_to, listed
from gateway.runtime.structs import replace

PLATFORM: Final = "discord"
LONGEST: Final = 2_000  # UTF-16 units of one message: Discord counts characters, of which this is never less

_ALONE: Final = "alone"  # in the place of a channel
_AMONG_PEOPLE: Final = 2  # the context of an interaction
_EPOCH: Final = 1_420_070_400_000  # milliseconds; https://discord.com/developers/docs/reference#snowflakes
_LOOKS_CUT: Final = LONGEST - 50
_OTHERS: Final = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]+`|^>>> .*|^> [^\n]*", re.DOTALL | re.MULTILINE
)  # quotes and code
_MARKUP: Final = re.compile(  # https://discord.com/developers/docs/reference#message-formatting
    r"<(?:@!?(?P<person>\d+)|@&(?P<role>\d+)|#(?P<channel>\d+)|a?:(?P<emoji>\w{1,32}):\d+"
    r"|t:(?P<time>-?\d{1,15})(?::[a-zA-Z])?|/(?P<command>[^:<>]{1,100}):\d+)>"
)
# https://discord.com/developers/docs/resources/message#message-object-message-types
_MESSAGES: Final = (0, 19, 20, 23)  # texts, replies, and answers to commands
STARTER: Final = 21  # in a thread, for the message that it began from
_TEXT: Final = 10  # https://discord.com/developers/docs/components/reference#text-display
_FORWARD: Final = 1  # https://discord.com/developers/docs/resources/message#message-reference-types
_PREVIEW: Final = "p"  # behind the id of a file: its picture
_EMBED: Final = "e"  # before the place of an embed
_STICKER: Final = "s"  # before the id of a sticker
CDN: Final = "https://cdn.discordapp.com"
# https://discord.com/developers/docs/resources/sticker#sticker-object-sticker-format-types: no model sees a Lottie.
_STICKERS: Final = {1: "png", 2: "png", 4: "gif"}
SILENT: Final = 1 << 12
VOICE: Final = 1 << 13  # https://discord.com/developers/docs/resources/message#message-object-message-flags

Json = Mapping[str, Any]

NO_PINGS: Final[Json] = {"parse": []}
"""The mentions of a text that pings nobody, whatever it says."""


class Me(Struct, frozen=True, kw_only=True):
    """The bot itself. `called`: what people call the channel or role of an id where the bot reads now, if it knows."""

    id: str
    name: str = ""
    called: Callable[[str], str] = lambda _: ""


class Place(Struct, frozen=True, kw_only=True):
    """The place of a message. `within`: ids of what the channel lies in, narrowest first: the channel of a thread,
    its category; `guild` None: two are alone. `is_thread`: its participants share a conversation. `own`: the bot
    opened it. `my_role`: the id of the role that stands for the bot there; `name`: what people call the channel."""

    channel: str
    guild: str | None = None
    within: tuple[str, ...] = ()
    is_thread: bool = False
    own: bool = False
    my_role: str | None = None
    name: str = ""


def moment(snowflake: str | int) -> float:
    """Return the moment when an id was given out, in seconds since the epoch."""
    return ((int(snowflake) >> 22) + _EPOCH) / 1000  # rounded once, as a time in Discord's words is


def snowflake(seconds: float) -> int:
    """The least id that was given out at this time."""
    return max(0, int(seconds * 1000) - _EPOCH) << 22


def message_inbound(
    message: Json, place: Place, me: Me, before: tuple[Said, ...] = (), amends: tuple[str, ...] = ()
) -> Inbound | None:
    """Return a person's message to the bot. None: there is nothing to be read in it. `before`: what was said before
    it; `amends`: the events of its earlier wordings, newest first."""
    said, files = words(message, me), tuple(_attachments(message))
    if not (said or files or is_named(message, me)):
        return None if amends else _unread(message, place, me)
    own = _own(message, me)
    if not own.startswith("/"):
        answered = _answered(message)
        context = _context(message, answered, me)
        text = context + (said or (CALLED if context and not files else ""))
        if answered and message.get("content") and not amends:
            files += tuple(_attachments(answered))
    elif amends:
        return None  # a command was carried out as it was
    else:
        text = _written(message, me)
    stamp = f":{message['edited_timestamp']}" if amends else ""
    return Inbound(
        event_id=event_id(me, place, f"{message['id']}{stamp}", message["author"]["id"]),
        source=source(place, message["author"], message.get("member") or {}),
        text=text,
        attachments=files,
        reply_to=(message.get("message_reference") or {}).get("message_id"),
        place=message["id"],
        sent_at=datetime.fromisoformat(message["timestamp"]).timestamp(),
        part_of=_part_of(message),
        own=None if own == text else own,
        amends=amends,
        before=before,
    )


def said_inbound(said: Json, place: Place, me: Me, now: float) -> Inbound:
    """What somebody said in a voice channel: by which `member`, the name of the `recording`, and its `size`."""
    member, name = said["member"], said["recording"]
    return Inbound(
        event_id=event_id(me, place, name, member["user"]["id"]),
        source=source(place, member["user"], member),
        text="",
        attachments=(Attachment(kind="voice", ref=name, mime="audio/ogg", size=said["size"], in_passing=True),),
        sent_at=now,
    )


def _unread(message: Json, place: Place, me: Me) -> Inbound | None:
    """A message that holds nothing for a bot, such as an invitation to a game. In a channel it may be for nobody, or
    Discord does not show its words."""
    if place.guild is not None:
        return None
    return Inbound(
        event_id=event_id(me, place, message["id"], message["author"]["id"]),
        source=source(place, message["author"], {}),
        text=cannot_read(),
        kind="unread",
    )


def source(place: Place, author: Json, member: Json) -> Source:
    """Return the speaker and the place."""
    kind: ChatType = "direct" if place.guild is None else "thread" if place.is_thread else "group"
    within = place.within if place.guild is None else (*place.within, f"guild-{place.guild}")
    return Source(
        platform=PLATFORM,
        chat=place.channel,
        chat_type=kind,
        user=author["id"],
        user_name=name_of(author, member),
        chat_name=straight(place.name),
        within=within,
        roles=tuple(f"role-{each}" for each in member.get("roles") or ()),
    )


def name_of(author: Json, member: Json | None = None) -> str:
    """Return the name that a person has in this place."""
    named = (member or {}).get("nick") or author.get("global_name") or author.get("username") or author["id"]
    return straight(str(named))


def event_id(me: Me, place: Place, message: str, author: str) -> str:
    """The event's name. In a guild an answer may point at the message, and ping its author."""
    return f"{me.id}:{place.channel if place.guild else _ALONE}:{author}:{message}"


def asked_by(event: str | None) -> str | None:
    """The person whose message or command an event is."""
    match (event or "").split(":"):
        case [bot, _, author, _, *_] if author.isdecimal() and f"{bot}:" != JOINED:
            return author
    return None


def message_of(event: str | None, channel: str) -> str | None:
    """The message that an event brought, if it is in this channel; the message that a thread was opened from is not in
    the thread."""
    match (event or "").split(":"):
        case [_, where, _, number, *_] if where == channel != number and number.isdecimal():
            return number
    return None


# -- texts ----------------------------------------------------------------------------------


def words(message: Json, me: Me) -> str:
    """Return a message's text and its cards, without the bot's name, and with names for numbers."""
    text = _written(message, me)
    shown = [text] if text else []
    shown += [f"[sticker {flat(each.get('name', ''))}]" for each in message.get("sticker_items") or ()]
    if poll := message.get("poll"):
        shown.append(polls.words(poll))
    shown += _cards(message)
    for each in message.get("message_snapshots") or ():
        forwarded = each.get("message") or {}
        named = _named(forwarded.get("content") or "", forwarded.get("mentions") or (), me)
        shown.append(FORWARDED + "\n".join([*([named] if named else []), *_cards(forwarded)]))
    return "\n".join(shown).strip()


def _written(message: Json, me: Me) -> str:
    return _named(without_mention(message.get("content") or "", me), message.get("mentions") or (), me)


def _cards(message: Json) -> Iterator[str]:
    """What previews of links and cards of bots say, one line each."""
    for embed in message.get("embeds") or ():
        fields = [f"{each.get('name', '')}: {each.get('value', '')}" for each in embed.get("fields") or ()]
        about, below = (embed.get("author") or {}).get("name"), (embed.get("footer") or {}).get("text")
        said = [about, embed.get("title"), embed.get("description"), *fields, below]
        if any(said):
            yield card([embed.get("url"), *said])
    if said := list(_displayed(message.get("components") or ())):
        yield card(said)


def _displayed(components: Iterable[Json]) -> Iterator[str]:
    for each in components:
        if each.get("type") == _TEXT:
            yield str(each.get("content", ""))
        yield from _displayed(each.get("components") or ())


def without_mention(text: str, me: Me) -> str:
    """The text without the bot's name at its start or its end."""
    if "<@" not in text:
        return text.strip()
    name = rf"<@!?{me.id}>"
    text = re.sub(rf"\A{name}[\s,:]*", "", text.strip())
    return re.sub(rf"{name}\Z", "", text).strip()


def is_named(message: Json, me: Me) -> bool:
    """Whether the text itself names the bot, as a reply's ping does not."""
    return re.search(rf"<@!?{me.id}>", message.get("content") or "") is not None


def _named(text: str, mentioned: Iterable[Json], me: Me) -> str:
    """The text as people see it, who read names and times for Discord's signs."""
    if "<" not in text:
        return text
    names = {each["id"]: name_of(each, each.get("member")) for each in mentioned}

    def seen(found: re.Match[str]) -> str:
        match found.lastgroup, found[found.lastgroup or 0]:
            case "person", number:
                return f"@{names.get(number, number)}"
            case "role", number:
                return f"@{flat(me.called(number)) or number}"
            case "channel", number:
                return f"#{flat(me.called(number)) or number}"
            case "emoji", name:
                return f":{name}:"
            case "command", name:
                return f"/{name}"
            case _, seconds:
                return _time(int(seconds)) or found[0]

    return _MARKUP.sub(seen, text)


def _time(seconds: int) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
    except (OSError, OverflowError, ValueError):  # no year of a calendar
        return ""


def _part_of(message: Json) -> str | None:
    size = length(message.get("content") or "", "utf16")
    if size < _LOOKS_CUT or _is_forward(message):
        return None
    return TORN if size >= LONGEST else CUT


def _own(message: Json, me: Me) -> str:
    """The words that the sender wrote: none of what was forwarded, quoted or written as code, and none of a bot's."""
    if message["author"].get("bot"):
        return ""
    written = without_mention(_OTHERS.sub("", message.get("content") or ""), me)
    return _named(written, message.get("mentions") or (), me)


def _context(message: Json, answered: Json, me: Me) -> str:
    """A line about what this message has to do with others; nothing in it may look like a line of its own."""
    if message["author"].get("bot"):
        return BY_A_BOT
    if not answered:
        return ""
    quote = " ".join(filter(None, (words(answered, me), listed(_attachments(answered)))))
    if not quote:
        return ""
    author = answered["author"]
    return in_reply_to("you" if author["id"] == me.id else name_of(author), quote)


def _answered(message: Json) -> Json:
    """The message that this one answers; empty if there is none, or it is gone."""
    return {} if _is_forward(message) else message.get("referenced_message") or {}


def _is_forward(message: Json) -> bool:
    return (message.get("message_reference") or {}).get("type") == _FORWARD


def quoted(messages: Iterable[Json], place: Place, me: Me) -> tuple[Said, ...]:
    """Messages that were written there, not to the bot."""
    found: list[Said] = []
    for each in messages:
        text = words(each, me) or listed(_attachments(each)) if each["type"] in _MESSAGES else ""
        if text:
            writer = source(place, each["author"], each.get("member") or {})
            if writer.user == me.id:
                writer = replace(writer, user="", user_name="you")
            found.append(Said(source=writer, text=text, at=moment(each["id"]), place=each["id"]))
    return tuple(found)


# -- files ----------------------------------------------------------------------------------


def _attachments(message: Json) -> Iterator[Attachment]:
    """The files of a message. Their addresses last only a day, so a file is named by where it is."""
    where = f"{message['channel_id']}/{message['id']}"
    for carried in _carried(message):
        voice = bool(carried.get("flags", 0) & VOICE)
        for file in carried.get("attachments") or ():
            mime = (file.get("content_type") or "").partition(";")[0]
            yield Attachment(
                kind="voice" if voice else "image" if mime.startswith("image/") else "document",
                ref=f"{where}/{file['id']}",
                name="" if voice else straight(file.get("filename", "")),
                mime=mime,
                size=file.get("size"),
                seconds=file.get("duration_secs"),
                preview=f"{where}/{file['id']}{_PREVIEW}" if mime.startswith("video/") and "proxy_url" in file else "",
            )
        for sticker in carried.get("sticker_items") or ():
            if sticker.get("format_type") in _STICKERS:
                name = f"{straight(sticker.get('name', 'sticker'))}.{_STICKERS[sticker['format_type']]}"
                yield Attachment(kind="image", ref=f"{where}/{_STICKER}{sticker['id']}", name=name)
        for number, embed in enumerate(carried.get("embeds") or ()):
            if embed.get("type") == "gifv" and _seen(embed):  # a GIF that people picked from Discord's own list
                ref = f"{where}/{_EMBED}{number}"
                yield Attachment(kind="document", ref=ref, name="GIF", mime="video/mp4", preview=ref)


def address_of(message: Json, file: str) -> str | None:
    """Return the address where a file of a message, or a picture of it, can be read now."""
    for carried in _carried(message):
        for sticker in carried.get("sticker_items") or ():
            if file == f"{_STICKER}{sticker['id']}":
                return f"{CDN}/stickers/{sticker['id']}.{_STICKERS[sticker['format_type']]}"
        for number, embed in enumerate(carried.get("embeds") or ()):
            if file == f"{_EMBED}{number}":
                return _seen(embed)
        for each in carried.get("attachments") or ():
            if each["id"] == file:
                return str(each["url"])
            if f"{each['id']}{_PREVIEW}" == file:
                address = str(each["proxy_url"])
                return f"{address}{'&' if '?' in address else '?'}format=jpeg"  # of a video, its first frame
    return None


def _carried(message: Json) -> Sequence[Json]:
    return [message, *((each.get("message") or {}) for each in message.get("message_snapshots") or ())]


def _seen(embed: Json) -> str | None:
    thumbnail = embed.get("thumbnail") or {}
    return thumbnail.get("proxy_url") or None


# -- interactions ---------------------------------------------------------------------------


class Interaction(Struct, frozen=True, kw_only=True):
    """A command or a press that Discord waits for an answer to. `private`: only the person sees the answer.
    `elsewhere`: it was given where the bot is not, so its address is the person's own chat with the bot."""

    id: str
    token: str
    private: bool
    elsewhere: bool = False


def interaction_event(me: Me, place: Place, author: str, each: Interaction) -> str:
    """The event's name. It contains the token with which any process may answer for fifteen minutes."""
    return event_id(me, place, f"{'p' if each.private else 'i'}{each.id}:{each.token}", author)


def interaction_of(event: str | None) -> Interaction | None:
    """The inverse: the interaction that an answer goes to."""
    match (event or "").split(":", 4):
        case [_, where, _, number, token] if number[:1] in ("i", "p") and number[1:].isdecimal():
            private = number[0] == "p"
            return Interaction(id=number[1:], token=token, private=private, elsewhere=private and where == _ALONE)
    return None


def is_elsewhere(data: Json) -> bool:
    """Whether a command or a press comes from where the bot is not: somebody installed it for themselves.
    https://discord.com/developers/docs/interactions/receiving-and-responding#interaction-object-interaction-context-types
    """
    owners = data.get("authorizing_integration_owners") or {}  # "0": a server has the bot, "1": a person
    in_guild = "guild_id" in data and "1" in owners and "0" not in owners
    return in_guild or data.get("context") == _AMONG_PEOPLE


def person_of(data: Json) -> str:
    """The id of the person behind an interaction."""
    return str(_person(data)[0]["id"])


def command_inbound(
    data: Json, place: Place, me: Me, text: str, kind: InboundKind = "message", *, private: bool, waited_for: bool
) -> Inbound:
    """A slash command, as if a person had typed it, or a press. `waited_for`: Discord waits for its answer."""
    author, member = _person(data)
    each = Interaction(id=data["id"], token=data["token"], private=private)
    plain = event_id(me, place, f"{'b' if kind == 'press' else 'c'}{data['id']}", author["id"])
    return Inbound(
        event_id=interaction_event(me, place, author["id"], each) if waited_for else plain,
        source=source(place, author, member if place.guild else {}),
        text=text,
        kind=kind,
        sent_at=moment(data["id"]),
    )


def press_inbound(data: Json, place: Place, me: Me) -> Inbound:
    """A button that somebody pressed, or a menu or a form that they sent. Where the bot is not, what comes of it can
    only be shown as an answer to the press."""
    text, elsewhere = chosen(data["data"]), is_elsewhere(data)
    return command_inbound(data, place, me, text, "press", private=True, waited_for=elsewhere)


def _person(data: Json) -> tuple[Json, Json]:
    member = data.get("member") or {}
    return (member["user"] if member else data["user"]), member
