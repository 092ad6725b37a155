"""Inbounds from the JSON of Meta's webhooks. Pure.

https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/messages. A person goes by
their telephone number, or by an id of Meta's where they hide that behind a name. Each of the bot's numbers beside the
first is a topic in the chat with a person, so a conversation of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from gateway.domain.chat import Attachment, Inbound, Source, one_line, straight
from gateway.domain.quoting import FORWARDED, cannot_read, in_reply_to, listed

PLATFORM: Final = "whatsapp"
_FILES: Final = ("image", "audio", "video", "document", "sticker")
AN_ORDER: Final = "an order"
NOT_HANDED_ON: Final = (
    "a message of a kind that WhatsApp does not hand on, such as a poll, or a picture to be seen once"
)

Json = Mapping[str, Any]


class Quote(Struct, frozen=True):
    """Words that may be quoted: who said them, and what."""

    who: str
    said: str


class Heard(Struct, frozen=True, kw_only=True):
    """A message of a webhook: the bot's number that it came to, the first of its numbers, and what is said of its
    writer."""

    number: str
    first: str
    message: Json
    contact: Json

    @property
    def person(self) -> str:
        """The writer."""
        said, contact = self.message, self.contact
        found = said.get("from") or contact.get("wa_id") or said.get("from_user_id") or contact.get("user_id")
        return str(found or "")

    @property
    def source(self) -> Source:
        """The writer and the place. Their id of Meta's is a role of theirs, so that an access list may name it."""
        person, profile = self.person, self.contact.get("profile") or {}
        lasting = str(self.message.get("from_user_id") or self.contact.get("user_id") or "")
        return Source(
            platform=PLATFORM,
            chat=person,
            chat_type="direct",
            user=person,
            thread=None if self.number == self.first else self.number,
            user_name=straight(str(profile.get("name") or profile.get("username") or "")),
            within=(self.number,),
            roles=(lasting,) if lasting not in ("", person) else (),
        )

    def event(self, message: str) -> str:
        """The event of a message of the same writer."""
        return f"{self.number}:{self.person}:{message}"

    @property
    def at(self) -> float:
        """When it was written (seconds since the epoch)."""
        return float(self.message.get("timestamp") or 0.0)


def message_of(event: str | None) -> str:
    """The message that an event brought; "": none did."""
    parts = (event or "").split(":", 2)
    return parts[2] if len(parts) == 3 and parts[2].startswith("wamid.") else ""


def inbound(heard: Heard, quote: Quote | None = None, amends: tuple[str, ...] = (), before: str = "") -> Inbound | None:
    """What a message means; None: nothing. `quote`: of the message that it answers. `amends`: the events of its earlier
    wordings, newest first. `before`: the reaction whose place this one takes."""
    message, kind = heard.message, str(heard.message.get("type") or "")
    own: dict[str, Any] = {"event_id": heard.event(str(message["id"])), "source": heard.source, "sent_at": heard.at}
    match kind:
        case "interactive":
            answer = message["interactive"]
            pressed = answer.get("button_reply") or answer.get("list_reply")
            return None if pressed is None else Inbound(kind="press", text=str(pressed["id"]), **own)
        case "reaction":
            return _reaction(message["reaction"], before, own)
        case "revoke":
            return Inbound(kind="withdrawn", text="", amends=amends, **own)
        case "system":
            return None  # a number that changed is another person, whom the lists name or not
        case "edit":
            original = str(message["edit"]["original_message_id"])
            return _said({**message, **message["edit"]["message"]}, quote, {**own, "amends": amends, "place": original})
    return _said(message, quote, {**own, "place": str(message["id"])})


def _said(message: Json, quote: Quote | None, own: dict[str, Any]) -> Inbound | None:
    files, said = tuple(_attachments(message)), words(message)
    if not (files or said):
        own.pop("place", None)
        what = AN_ORDER if message.get("type") == "order" else NOT_HANDED_ON
        return Inbound(kind="unread", text=cannot_read(what), **own)
    context = message.get("context") or {}
    forwarded = bool(context.get("forwarded") or context.get("frequently_forwarded"))
    line = FORWARDED if forwarded else in_reply_to(quote.who, quote.said) if quote and quote.said else ""
    if not forwarded and said.startswith("/"):
        line = ""
    mine = "" if forwarded else _own(message)
    text = line + said
    return Inbound(
        text=text,
        own=None if mine == text else mine,
        attachments=files,
        reply_to=None if forwarded or not context.get("id") else str(context["id"]),
        **own,
    )


def words(message: Json) -> str:
    """A message's words, with replacements for things that are not words."""
    lines = [_own(message)] if _own(message) else []
    if place := message.get("location"):
        named = [one_line(str(place[part])) for part in ("name", "address") if place.get(part)]
        named += [f"{place[part]:.6f}" for part in ("latitude", "longitude")]
        lines.append(f"[location: {', '.join(named)}]")
    for card in message.get("contacts") or ():
        known = [str((card.get("name") or {}).get("formatted_name") or "")]
        known += [str(each.get("phone") or each.get("wa_id") or "") for each in card.get("phones") or ()]
        known += [str(each.get("email") or "") for each in card.get("emails") or ()]
        lines.append(f"[contact: {one_line(', '.join(filter(None, known)))}]")
    return "\n".join(lines)


def _own(message: Json) -> str:
    kind = str(message.get("type") or "")
    part = message.get(kind) if isinstance(message.get(kind), Mapping) else {}
    assert isinstance(part, Mapping)
    return str(part.get("body") or part.get("caption") or (part.get("text") if kind == "button" else "") or "").strip()


def quotable(message: Json) -> str:
    """A message as a line quotes it."""
    return " ".join(filter(None, (words(message), listed(_attachments(message)))))


def _attachments(message: Json) -> list[Attachment]:
    kind = str(message.get("type") or "")
    file = message.get(kind)
    if kind not in _FILES or not isinstance(file, Mapping):
        return []
    mime = str(file.get("mime_type") or "").partition(";")[0]
    shown: Literal["image", "voice", "document"] = "document"
    if kind in ("image", "sticker"):
        shown = "image"
    elif kind == "audio" and file.get("voice"):
        shown = "voice"
    name = straight(str(file.get("filename") or ""))
    return [Attachment(kind=shown, ref=str(file["id"]), name=name, mime=mime)]


def _reaction(reaction: Json, before: str, own: dict[str, Any]) -> Inbound | None:
    """A sign that somebody put on a message of the bot's, or took away; None: nothing is known of the one that went."""
    sign = str(reaction.get("emoji") or "")
    changes = " ".join([f"-{before}"] * bool(before) + [f"+{sign}"] * bool(sign))
    return Inbound(kind="reaction", text=changes, reply_to=str(reaction["message_id"]), **own) if changes else None
