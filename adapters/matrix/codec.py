"""Inbounds from Matrix's events, and the contents of messages. Pure.

Events are those of https://spec.matrix.org/v1.15/client-server-api/#room-event-format. The event of an Inbound is
EVENT/PERSON, or MESSAGE~EVENT/PERSON where it is a message's new wording; a person's id begins with @.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct, field

from gateway.domain.chat import Attachment, Button, ChatType, Inbound, KeptFile, Said, Source, straight
from gateway.domain.quoting import CALLED, cannot_read, clipped, flat, in_reply_to, listed

PLATFORM: Final = "matrix"
BUTTONS: Final = "org.legato.buttons"  # of a message: the tokens of its buttons, by the reactions that press them

KEYLESS: Final = (
    "I cannot read your message, because its key did not reach me. Please write your message again. If I still cannot "
    "read your message, write to me in a room without encryption."
)
ENCRYPTED: Final = (
    "This chat is encrypted, and I cannot read encrypted messages. Make a room without encryption, invite me, and "
    "write to me there. Or ask the person who runs this bot to switch encryption on (docs/matrix.md says how)."
)
"""What a person is told, where the bot has no keys."""

_DIGITS: Final = (*(f"{digit}\ufe0f\u20e3" for digit in "123456789"), "🔟")
_PRESSES: Final = frozenset(each.replace("\ufe0f", "") for each in _DIGITS)
_REPLY: Final = re.compile(r"\A(?:> [^\n]*\n|>\n)+\n?")  # what older programs put before a reply
_OTHERS: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`|^> ?[^\n]*", re.DOTALL | re.MULTILINE)  # quotes and code
_FILES: Final = {"m.image": "image", "m.audio": "document", "m.video": "document", "m.file": "document"}
_LINKED: Final = r'\s*(?:<p>)?<a href="https://matrix\.to/#/{}"'

UNREADABLE: Final = (AttributeError, LookupError, RecursionError, TypeError, ValueError)  # an event of another shape

Json = Mapping[str, Any]


class Me(Struct, frozen=True):
    """The bot: its id, what people call it, and the names of its commands."""

    id: str
    name: str
    commands: frozenset[str] = frozenset()


class Room(Struct, kw_only=True):
    """A room as the bot knows it. `first`: the id of the room whose place it took, which was a `group`; `people`: the
    names of its members by their ids; `name`: what people call it; `sealing`: how it is encrypted."""

    id: str
    first: str
    name: str = ""
    people: dict[str, str] = field(default_factory=dict)
    group: bool = False
    sealing: Json | None = None

    @property
    def alone(self) -> bool:
        """Whether only two are there."""
        return len(self.people) <= 2 and not self.group

    def called(self, person: str) -> str:
        """The name of somebody."""
        return straight(self.people.get(person) or person[1:].partition(":")[0])


def content_of(event: Json) -> Json:
    """What an event says, in the newest wording that it holds."""
    content = event.get("content") or {}
    return content.get("m.new_content") or content if replaced(event) else content


def _relation(event: Json) -> Json:
    return (event.get("content") or {}).get("m.relates_to") or {}


def replaced(event: Json) -> str | None:
    """The message of which this is a new wording."""
    relation = _relation(event)
    return str(relation["event_id"]) if relation.get("rel_type") == "m.replace" else None


def thread_of(event: Json) -> str | None:
    """The message that the thread of this one began from."""
    relation = _relation(event)
    return str(relation["event_id"]) if relation.get("rel_type") == "m.thread" else None


def reaction_of(event: Json) -> tuple[str, str]:
    """The message that somebody reacts to, and how."""
    relation = _relation(event)
    return str(relation.get("event_id", "")), str(relation.get("key", "")).replace("\ufe0f", "")


def answered_by(event: Json) -> str | None:
    """The message that this one answers. In a thread each message names the one before it."""
    relation = _relation(event)
    named = (relation.get("m.in_reply_to") or {}).get("event_id")
    return None if relation.get("is_falling_back") else named


def source(room: Room, person: str, thread: str | None) -> Source:
    """The speaker and the place."""
    kind: ChatType = "direct" if room.alone else "thread" if thread else "group"
    return Source(
        platform=PLATFORM,
        chat=room.first,
        chat_type=kind,
        user=person,
        thread=thread,
        user_name=room.called(person),
        chat_name="" if room.alone else straight(room.name),
        within=(room.id,) if room.id != room.first else (),
    )


def event_id(event: Json) -> str:
    """The name of a message, or of a new wording of it."""
    before = replaced(event)
    return f"{before}~{event['event_id']}/{event['sender']}" if before else f"{event['event_id']}/{event['sender']}"


def asked_by(event: str | None) -> tuple[str, str] | None:
    """The message that an Inbound brought, and who wrote it."""
    message, slash, person = (event or "").rpartition("/@")
    return (message.partition("~")[0], f"@{person}") if slash and message.startswith("$") else None


def is_meant(event: Json, me: Me) -> bool:
    """Whether a message names the bot, or one of its commands."""
    said, mentions = words(event), content_of(event).get("m.mentions")
    if _command(said, me) or said.startswith("/"):
        return True
    if mentions is not None:
        return me.id in (mentions.get("user_ids") or ())
    body = said.lower()  # of a program that knows no mentions yet
    return me.id.lower() in body or re.search(rf"(?<!\w){re.escape(me.name.lower())}(?!\w)", body) is not None


def _command(said: str, me: Me) -> bool:
    """Whether a text is a command after an exclamation mark, because many apps keep the slash for themselves."""
    return said.startswith("!") and said[1:].partition(" ")[0].strip().lower() in me.commands


def message_inbound(
    event: Json,
    where: Source,
    me: Me,
    *,
    sealed: bool = False,
    answered: Json | None = None,
    answered_name: str = "",
    before: tuple[Said, ...] = (),
    amends: tuple[str, ...] = (),
) -> Inbound | None:
    """A person's message to the bot. `answered`: the message that it answers, and who wrote that; `before`: what was
    said before it; `amends`: its earlier wordings, newest first; `sealed`: the bot
    reads encrypted messages. None: there is nothing to be read in it."""
    if event["type"] == "m.room.encrypted":
        return _unread(event, where, KEYLESS if sealed else ENCRYPTED) if where.chat_type == "direct" else None
    files, said = tuple(attachments(event)), without_mention(event, me)
    if not (said or files or is_meant(event, me)):
        return _unread(event, where, cannot_read()) if where.chat_type == "direct" and not amends else None
    text = said = f"/{said[1:]}" if _command(said, me) else said
    if not said.startswith("/"):
        context = ""
        if answered is not None:
            quote = " ".join(filter(None, (words(answered), listed(attachments(answered)))))
            context = in_reply_to("you" if answered["sender"] == me.id else answered_name, quote) if quote else ""
            files += tuple(attachments(answered)) if said else ()
        text = context + (said or (CALLED if context and not files else ""))
    elif amends:
        return None  # a command was carried out as it was
    own = _OTHERS.sub("", said).strip()
    return Inbound(
        event_id=event_id(event),
        source=where,
        text=text,
        attachments=files,
        reply_to=answered_by(event),
        place=replaced(event) or event["event_id"],
        sent_at=event.get("origin_server_ts", 0) / 1000.0,
        own=None if own == text else own,
        amends=amends,
        before=before,
    )


def _unread(event: Json, where: Source, what: str) -> Inbound:
    return Inbound(event_id=event_id(event), source=where, text=what, kind="unread")


def words(event: Json) -> str:
    """What a message says, without what it quotes."""
    content = content_of(event)
    kind, body = content.get("msgtype"), str(content.get("body") or "")
    if event.get("type") == "m.sticker":
        return f"[sticker {flat(body)}]"
    if kind in _FILES:  # a name, or the words beside it
        return body.strip() if content.get("filename") not in (None, "", body) else ""
    if answered_by(event) or thread_of(event):
        body = _REPLY.sub("", body)
    if kind == "m.location":
        return f"[location: {flat(body)} {flat(str(content.get('geo_uri', '')))}]"
    return f"[action] {body.strip()}" if kind == "m.emote" else body.strip()


def without_mention(event: Json, me: Me) -> str:
    """What a message says, without the bot's name at its start or end. A link to the bot needs no punctuation after its
    name."""
    text, formatted = words(event), str(content_of(event).get("formatted_body") or "")
    names = "|".join(re.escape(each) for each in (me.id[1:], me.name, me.id[1:].partition(":")[0]))
    linked = re.match(_LINKED.format(re.escape(me.id)), formatted)
    first = rf"@?(?:{names})" if linked else rf"(?:@(?:{names})|(?:{names})(?=[,:]))"
    text = re.sub(rf"\A{first}(?!\w)[\s,:]*", "", text, flags=re.IGNORECASE)
    return re.sub(rf"(?<!\S)@(?:{names})\Z", "", text, flags=re.IGNORECASE).strip()


def digest(event: Json) -> int:
    """A hash of what a message says."""
    content = content_of(event)
    return hash((content.get("body"), content.get("url")))


def quoted(events: Sequence[Json], room: Room) -> tuple[Said, ...]:
    """Messages that others wrote before a mention, oldest first."""
    found = list[Said]()
    for each in events:
        with suppress(*UNREADABLE):  # one odd event must not hide the others
            if not replaced(each) and (text := words(each) or listed(attachments(each))):
                at = each.get("origin_server_ts", 0) / 1000.0
                found.append(Said(source=source(room, each["sender"], None), text=text, at=at, place=each["event_id"]))
    return tuple(found)


def attachments(event: Json) -> Iterator[Attachment]:
    """The file of a message, if it has one."""
    content = content_of(event)
    kind = _FILES.get(content.get("msgtype", ""))
    if event.get("type") == "m.sticker":
        kind = "image"
    info = content.get("info") or {}
    address = content.get("url") or _with_key(content.get("file") or {})
    if kind is None or not address:
        return
    length = info.get("duration")
    voice = "org.matrix.msc3245.voice" in content
    yield Attachment(
        kind="voice" if voice else "image" if kind == "image" else "document",
        ref=str(address),
        name="" if voice else straight(str(content.get("filename") or content.get("body") or "")),
        mime=str(info.get("mimetype") or ""),
        size=info.get("size") if isinstance(info.get("size"), int) else None,
        seconds=length / 1000.0 if isinstance(length, int) else None,
    )


def _with_key(file: Json) -> str:
    """The address of an encrypted file, with what opens it after a #."""
    return f"{file['url']}#{file['key']['k']}.{file['iv']}.{file['hashes']['sha256']}" if file else ""


# -- what the bot shows ---------------------------------------------------------------------


def buttons(rows: Sequence[Sequence[Button]]) -> dict[str, Button]:
    """The buttons by the reactions that press them. There is no sign for numbers above ten, but any text will do."""
    found = [button for row in rows for button in row]
    return dict(zip((*_DIGITS, *map(str, range(len(_DIGITS) + 1, len(found) + 1))), found, strict=False))


def tokens(content: Json) -> dict[str, str]:
    """The tokens of a message's buttons, by reactions."""
    kept = content.get(BUTTONS)
    return {str(key).replace("\ufe0f", ""): str(token) for key, token in kept.items()} if isinstance(kept, dict) else {}


def is_button(key: str) -> bool:
    """Whether a reaction, as `reaction_of` has it, is the sign of a button."""
    return key in _PRESSES


def relation(thread: str | None, answers: str | None) -> dict[str, Any]:
    """The relation of a message that is shown in a thread, or answers another one."""
    reply = {"m.in_reply_to": {"event_id": answers or thread}}
    if thread is not None:
        return {"rel_type": "m.thread", "event_id": thread, "is_falling_back": answers is None, **reply}
    return reply if answers is not None else {}


def reaction(message: str, key: str) -> dict[str, Any]:
    """A reaction of the bot's to a message."""
    return {"m.relates_to": {"rel_type": "m.annotation", "event_id": message, "key": key}}


def reworded(content: Mapping[str, Any], message: str) -> dict[str, Any]:
    """The same message as the new wording of one that was sent. Older programs show the beginning of it."""
    new = {name: value for name, value in content.items() if name != "m.relates_to"}
    return {
        "msgtype": content["msgtype"],
        "body": f"* {clipped(content['body'])}",
        "m.mentions": {},
        "m.new_content": new,
        "m.relates_to": {"rel_type": "m.replace", "event_id": message},
    }


def file_content(file: KeptFile, address: Json, text: Mapping[str, Any]) -> dict[str, Any]:
    """The message of a file, with its words. `address`: its `url`, or its `file` with
    that where it is encrypted."""
    kind = next((each for each in ("image", "audio", "video") if file.mime.startswith(f"{each}/")), "file")
    name = file.name or "file"
    return {
        "msgtype": f"m.{kind}",
        "filename": name,
        "info": {"mimetype": file.mime, "size": file.size},
        **(text or {"body": name}),
        **address,
    }
