"""A channel as lines of a terminal: names, texts as they were written, buttons with numbers to press them by."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from typing import Any, Final

from prompt_toolkit.formatted_text import StyleAndTextTuples

from tests.emulators.discord.interactions import Interaction
from tests.emulators.discord.snowflakes import moment_of
from tests.emulators.discord.world import EPHEMERAL, LOADING, Channel, Message, MessageType, User

Fragments = StyleAndTextTuples

NEWEST: Final = 100  # messages that are drawn
_PARTS: Final = re.compile(
    r"(?P<code>```.*?```|`[^`\n]+`)|(?P<bold>\*\*.+?\*\*)|(?P<italic>\*[^*\n]+\*|_[^_\n]+_)|(?P<strike>~~.+?~~)"
    r"|(?P<mention><[@#][!&]?\d+>)|(?P<link>https?://\S+)",
    re.DOTALL,
)
_STYLES: Final = {
    "code": "class:code",
    "bold": "bold",
    "italic": "italic",
    "strike": "strike",
    "mention": "class:link",
    "link": "class:link",
}


def seen_by(channel: Channel, me: User) -> list[Message]:
    """The newest messages of a channel, as somebody sees them: those for them alone, too."""
    seen = [message for message in channel.messages.values() if not message.deleted]
    return [message for message in seen if message.only_for in (None, me)][-NEWEST:]


def numbered(channel: Channel, me: User) -> dict[int, Message]:
    """Messages by the numbers that they are drawn with: their place in the channel, from 1 on."""
    places = {message.id: place for place, message in enumerate(channel.messages.values(), 1)}
    return {places[message.id]: message for message in seen_by(channel, me)}


def numbered_buttons(channel: Channel, me: User) -> list[tuple[Message, dict[str, Any]]]:
    """The buttons of a channel in the order of their numbers, which begin at 1."""
    return [(message, button) for message in seen_by(channel, me) for button in message.buttons]


def draw_channel(channel: Channel, me: User, bot: User, users: dict[int, User]) -> Fragments:
    """The newest messages of a channel, as `me` sees them."""
    fragments: Fragments = []
    count = 0
    places = {message.id: place for place, message in numbered(channel, me).items()}
    for place, message in numbered(channel, me).items():
        fragments += _head(place, message, me, bot, places)
        fragments += _body(message, users)
        for button in message.buttons:
            count += 1
            label = button.get("label") or button.get("placeholder") or button.get("custom_id") or ""
            fragments += [("class:note" if button.get("disabled") else "class:button", f" {count} {label} "), ("", " ")]
        fragments += [("", "\n")] * (2 if message.buttons else 1)
    return fragments


def draw_choices(interaction: Interaction) -> str:
    """Return the bot's proposals for an unfinished word."""
    return "\n".join(f"{choice['name']} → {choice['value']}" for choice in interaction.choices) or "(no proposals)"


def _head(place: int, message: Message, me: User, bot: User, places: dict[int, int]) -> Fragments:
    author = message.author
    style = "class:bot" if author is bot else "class:me" if author is me else "class:other"
    notes = [f"#{place}", time.strftime("%H:%M:%S", time.localtime(moment_of(message.id)))]
    if message.answered is not None and message.type is MessageType.REPLY:
        notes.append(f"to #{places.get(message.answered.id, '?')}")
    if message.interaction is not None and "name" in message.interaction:
        notes.append(f"used by {message.interaction['user']['username']}: /{message.interaction['name']}")
    if message.edited is not None:
        notes.append(f"edited {len(message.texts) - 1}×")
    if message.flags & EPHEMERAL:
        notes.append("only you can see this")
    if me.id in message.pings:
        notes.append("@you")
    notes += [f"{emoji} {len(users)}" for emoji, users in message.reactions.items()]
    return [(style, author.display or author.name), ("class:note", f"  {'  '.join(notes)}\n")]


def _body(message: Message, users: dict[int, User]) -> Fragments:
    fragments: Fragments = []
    if message.type is MessageType.THREAD_STARTER and message.answered is not None:
        fragments.append(("class:quote", f"under: {message.answered.content}\n"))
    if message.flags & LOADING:
        fragments.append(("class:note", "is thinking…\n"))
    if message.content:
        fragments += [*draw_text(message.content, users), ("", "\n")]
    for embed in message.embeds:
        parts = (str(embed[name]) for name in ("title", "description") if embed.get(name))
        fragments += [("class:quote", f"│ {line}\n") for part in parts for line in part.splitlines()]
    for file in message.attachments:
        fragments.append(("class:note", f"[{file.name}, {file.size} bytes]\n"))
    if message.thread is not None and not message.thread.deleted:
        fragments.append(("class:note", f"[thread: {message.thread.name}]\n"))
    return fragments


def draw_text(text: str, users: dict[int, User]) -> Fragments:
    """A text with its Markdown as styles; the marks stay, because they are what was sent."""
    fragments: Fragments = []
    end = 0
    for match in _PARTS.finditer(text):
        if match.start() > end:
            fragments.append(("", text[end : match.start()]))
        kind = match.lastgroup or ""
        fragments.append((_STYLES[kind], _named(match[0], users) if kind == "mention" else match[0]))
        end = match.end()
    if end < len(text):
        fragments.append(("", text[end:]))
    return fragments


def _named(mention: str, users: dict[int, User]) -> str:
    user = users.get(int("".join(sign for sign in mention if sign.isdigit())))
    return f"@{user.display or user.name}" if user is not None else mention


def places_of(channels: Iterable[Channel]) -> str:
    """Return the names of channels, one a line."""
    return "\n".join(f"{'  ' if channel.is_thread else ''}#{channel.name}" for channel in channels) or "(no channels)"
