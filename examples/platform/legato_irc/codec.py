"""IRC's lines, read and written. Pure: text in, text out. https://modern.ircdocs.horse and https://ircv3.net"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from gateway.domain.chat import Inbound, Source

CAPABILITIES = "message-tags account-tag"
_LONGEST = 400  # bytes of a text: a line has 512, and the server puts the bot's name and host in front
_STYLE = re.compile(r"\x03\d{0,2}(?:,\d{1,2})?|[\x00-\x1f]")
_ESCAPES = {r"\:": ";", r"\s": " ", r"\\": "\\", r"\r": "\r", r"\n": "\n"}


class Line(Struct, frozen=True, kw_only=True):
    """One line from the server."""

    command: str
    args: tuple[str, ...] = ()
    nick: str = ""
    tags: Mapping[str, str] = {}


def read(line: str) -> Line:
    """`@msgid=7 :anna!a@host PRIVMSG legato :Hello there` and the like."""
    tags: dict[str, str] = {}
    if line.startswith("@"):
        written, _, line = line[1:].partition(" ")
        for tag in written.split(";"):
            name, _, value = tag.partition("=")
            tags[name] = re.sub(r"\\[:s\\rn]", lambda found: _ESCAPES[found[0]], value)
    nick = ""
    if line.startswith(":"):
        nick, _, line = line[1:].partition(" ")
    words, colon, rest = line.partition(" :")
    command, *args = words.split() or [""]
    return Line(command=command, args=(*args, *([rest] if colon else [])), nick=nick.partition("!")[0], tags=tags)


def inbound(line: Line, *, me: str, trust_nicks: bool, new_id: str) -> Inbound | None:
    """What a PRIVMSG says to the bot: all in a private chat, and in a channel what begins with the bot's nick."""
    if len(line.args) != 2 or not line.nick or line.nick.lower() == me.lower() or line.args[1].startswith("\x01"):
        return None
    to, text = line.args[0].lower(), _STYLE.sub("", line.args[1])
    person = line.nick.lower() if trust_nicks else line.tags.get("account", f"~{line.nick.lower()}")
    is_group = to.startswith(("#", "&"))
    if is_group:
        called, _, text = text.partition(" ")
        if called.rstrip(":,").lower() != me.lower():
            return None
    source = Source(
        platform="irc",
        chat=to if is_group else line.nick.lower(),
        chat_type="group" if is_group else "direct",
        user=person,
        user_name=line.nick,
    )
    return Inbound(event_id=line.tags.get("msgid") or new_id, source=source, text=text.strip())


def lines(text: str) -> Iterator[str]:
    """A text in pieces that a line can carry, cut between words where that is possible. IRC has no empty lines."""
    for line in text.splitlines():
        rest = _STYLE.sub(" ", line).strip()
        while rest:
            piece = rest.encode()[:_LONGEST].decode(errors="ignore")
            if piece != rest and " " in piece and rest[len(piece)] != " ":
                piece = piece.rpartition(" ")[0]
            yield piece.rstrip()
            rest = rest[len(piece) :].lstrip()
