"""Inbounds from Slack's JSON. Pure.

Messages are those of https://docs.slack.dev/reference/events/message, texts are written as
https://docs.slack.dev/messaging/formatting-message-text says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from adapters.slack.components import said
from gateway.domain.chat import Attachment, Inbound, Said, Source, straight
from gateway.domain.quoting import BY_A_BOT, CALLED, FORWARDED, card, listed

PLATFORM: Final = "slack"

_SAID: Final = (None, "file_share", "thread_broadcast", "me_message", "bot_message")  # subtypes of what somebody said
_MARKUP: Final = re.compile(r"<(?P<sign>[@#!]?)(?P<what>[^<>|]*)(?:\|(?P<label>[^<>]*))?>")
_PERSON: Final = re.compile(r"<@([UW][A-Z0-9]+)")
_OTHERS: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`|^&gt;[^\n]*", re.DOTALL | re.MULTILINE)  # quotes and code
_RESPONSE: Final = "/commands/"  # in the address for the answer to a slash command
_MICROSECONDS: Final = 1_000_000

Json = Mapping[str, Any]
Names = Mapping[str, str]


class Me(Struct, frozen=True, kw_only=True):
    """The bot itself: its ids as a person, as a bot and as an app, and those of its workspace and its enterprise."""

    id: str
    bot: str = ""
    team: str = ""
    enterprise: str = ""


class Place(Struct, frozen=True, kw_only=True):
    """The place of a message. `thread`: the message that its thread begins with; `name`: what people call the
    channel."""

    channel: str
    thread: str | None = None
    name: str = ""

    @property
    def alone(self) -> bool:
        """Whether a person is alone with the bot there."""
        return self.channel.startswith("D")

    @property
    def cursor(self) -> str:
        """The name under which it is remembered how far the place is read."""
        return self.channel if self.thread is None else f"{self.channel}/{self.thread}"


def id_at(seconds: float) -> int:
    """The least id of a message at this time, as a number."""
    return max(0, int(seconds * _MICROSECONDS))


def number(ts: str) -> int:
    """The id of a message as a number. Raises ValueError."""
    seconds, _, rest = ts.partition(".")
    return int(seconds) * _MICROSECONDS + int(rest[:6].ljust(6, "0") or 0)


def ts(number: int) -> str:
    """The inverse."""
    return f"{number // _MICROSECONDS}.{number % _MICROSECONDS:06d}"


def is_said(message: Json) -> bool:
    """Whether a message holds what somebody said, and not that something happened."""
    return message.get("subtype") in _SAID and "ts" in message and not message.get("hidden")


def place_of(message: Json, channel: str) -> Place:
    """Where a message is: a thread's first message is in the channel."""
    thread = message.get("thread_ts")
    return Place(channel=channel, thread=None if thread in (None, message["ts"]) else thread)


def author_of(message: Json) -> str:
    """The person, or the bot, who wrote a message."""
    return str(message.get("user") or message.get("bot_id") or "")


def is_bots(message: Json) -> bool:
    """Whether a program wrote it."""
    return bool(message.get("bot_id")) or message.get("subtype") == "bot_message" or message.get("user") == "USLACKBOT"


def is_named(message: Json, me: Me) -> bool:
    """Whether the text names the bot."""
    return f"<@{me.id}" in (message.get("text") or "")


def people_in(messages: Sequence[Json]) -> set[str]:
    """The ids of those who wrote these, and of those they name."""
    named = {person for each in messages for person in _PERSON.findall(each.get("text") or "")}
    return named | {each["user"] for each in messages if each.get("user")}


def event_id(me: Me, place: Place, author: str, message: str) -> str:
    """The event's name."""
    return f"{me.team}:{place.channel}:{author}:{message}"


def source(place: Place, me: Me, author: str, names: Names, team: str = "") -> Source:
    """The speaker and the place. `team`: the speaker's own workspace, if it is known."""
    return Source(
        platform=PLATFORM,
        chat=place.channel,
        chat_type="direct" if place.alone else "thread" if place.thread else "group",
        user=author,
        thread=place.thread,
        user_name=straight(names.get(author, "")),
        chat_name=straight(place.name),
        within=() if place.alone else tuple(filter(None, (me.team, me.enterprise))),
        roles=(team,) if team else (),
    )


def message_inbound(
    message: Json, place: Place, me: Me, names: Names, before: tuple[Said, ...] = (), amends: tuple[str, ...] = ()
) -> Inbound | None:
    """A message to the bot; None: there is nothing to be read in it. `before`: what was said before it; `amends`: the
    events of its earlier wordings, newest first."""
    read, files = words(message, me, names), tuple(attachments(message))
    if not (read or files or is_named(message, me)):
        return None
    bots = is_bots(message)
    own = "" if bots else _written(_OTHERS.sub("", message.get("text") or ""), me, names)
    text = read
    if own.startswith("/"):
        if amends:
            return None  # a command was carried out as it was
    else:
        context = BY_A_BOT if bots else ""
        text = context + (read or (CALLED if not files else ""))
    author, when = author_of(message), (message.get("edited") or {}).get("ts", "")
    return Inbound(
        event_id=event_id(me, place, author, message["ts"] + (f"/{when}" if amends else "")),
        source=source(place, me, author, names, team_of(message)),
        text=text,
        attachments=files,
        place=message["ts"],
        sent_at=float(message["ts"]),
        own=None if own == text else own,
        amends=amends,
        before=before,
    )


def team_of(message: Json) -> str:
    """The workspace of who wrote a message, if Slack says it."""
    return str(message.get("user_team") or message.get("team") or "")


# -- commands and buttons -------------------------------------------------------------------


def command_inbound(data: Json, place: Place, me: Me, text: str, *, private: bool) -> Inbound:
    """A slash command, as if a person had typed it. The event's name holds the address for its answer, so that any
    process can answer for half an hour; `private`: only the person sees that."""
    path = str(data.get("response_url", "")).partition(_RESPONSE)[2]
    mark = f"{'p' if private else 's'}{data['trigger_id']}"
    author = data["user_id"]
    return Inbound(
        event_id=f"{event_id(me, place, author, mark)}:{path}",
        source=source(place, me, author, {author: data.get("user_name", "")}, str(data.get("team_id") or "")),
        text=text,
        sent_at=0.0,
    )


def press_inbound(data: Json, me: Me) -> Inbound:
    """A button that somebody pressed, with what they ticked or wrote before."""
    where, user, action = data["container"], data["user"], data["actions"][0]
    thread = where.get("thread_ts") or (data.get("message") or {}).get("thread_ts")
    place = Place(channel=where["channel_id"], thread=None if thread == where["message_ts"] else thread)
    author = user["id"]
    return Inbound(
        event_id=event_id(me, place, author, f"b{action['action_ts']}"),
        source=source(place, me, author, {author: user.get("name", "")}, str(user.get("team_id") or "")),
        text=said(data),
        kind="press",
        sent_at=float(action["action_ts"]),
    )


def command_of(event: str | None) -> tuple[str, bool] | None:
    """The address of a slash command's answer, behind the server's name, and whether only its person sees that."""
    match (event or "").split(":", 4):
        case [_, _, _, mark, path] if mark[:1] in ("p", "s") and path:
            return _RESPONSE + path, mark[0] == "p"
    return None


def asked_at(event: str | None) -> float | None:
    """When the message was written that an event brought (seconds since the epoch)."""
    match (event or "").split(":"):
        case [_, _, _, mark, *_] if mark[:1].isdecimal():
            return float(mark.partition("/")[0])
    return None


# -- texts ----------------------------------------------------------------------------------


def words(message: Json, me: Me, names: Names) -> str:
    """A message's text and its cards, without the bot's name, as people see them."""
    text = _written(message.get("text") or "", me, names)
    return "\n".join([*([text] if text else []), *_cards(message, names)])


def _written(text: str, me: Me, names: Names) -> str:
    if f"<@{me.id}" in text:
        name = rf"<@{me.id}(?:\|[^<>]*)?>"
        text = re.sub(rf"\A\s*{name}[\s,:]*", "", text)
        text = re.sub(rf"{name}\s*\Z", "", text)
    return seen(text, names).strip()


def seen(text: str, names: Names) -> str:
    """A text as people see it."""

    def shown(found: re.Match[str]) -> str:
        what, label = found["what"], found["label"]
        match found["sign"]:
            case "@":
                return f"@{names.get(what) or label or what}"
            case "#":
                return f"#{label or what}"
            case "!":
                return label or f"@{what.partition('^')[0]}"
        address = what.removeprefix("mailto:").removeprefix("tel:")
        return address if label in (None, "", address) else f"{label} ({address})"

    text = _MARKUP.sub(shown, text) if "<" in text else text
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") if "&" in text else text


def _cards(message: Json, names: Names) -> Iterator[str]:
    """Messages that are shared, and the cards of programs; the previews of links are not told."""
    for each in message.get("attachments") or ():
        if each.get("is_msg_unfurl") or each.get("is_share"):
            yield FORWARDED + seen(each.get("text") or each.get("fallback") or "", names)
        elif is_bots(message):
            fields = [f"{field.get('title', '')}: {field.get('value', '')}" for field in each.get("fields") or ()]
            parts = [each.get(part) for part in ("pretext", "author_name", "title", "text", "footer")]
            parts = [part for part in (*parts[:4], *fields, parts[4]) if part] or [each.get("fallback")]
            yield card(seen(part, names) for part in parts if part)


def quoted(messages: Sequence[Json], place: Place, me: Me, names: Names) -> tuple[Said, ...]:
    """Messages that others wrote before a mention, oldest first."""
    found = list[Said]()
    for each in messages:
        text = words(each, me, names) or listed(attachments(each)) if is_said(each) else ""
        if text:
            author = author_of(each)
            called = {author: names.get(author) or str(each.get("username") or "")}
            writer = source(place, me, author, called, team_of(each))
            found.append(Said(source=writer, text=text, at=float(each["ts"]), place=each["ts"]))
    return tuple(found)


# -- files ----------------------------------------------------------------------------------


def attachments(message: Json) -> Iterator[Attachment]:
    """The files of a message, named by their ids: addresses are asked for when a file is fetched."""
    for file in message.get("files") or ():
        if file.get("mode") in ("tombstone", "hidden_by_limit"):
            continue
        mime, voice = file.get("mimetype") or "", file.get("subtype") == "slack_audio"
        seconds = file.get("duration_ms")
        yield Attachment(
            kind="voice" if voice else "image" if mime.startswith("image/") else "document",
            ref=file["id"],
            name="" if voice else straight(file.get("name") or file.get("title") or ""),
            mime=mime,
            size=file.get("size"),
            seconds=seconds / 1000 if seconds is not None else None,
        )
