"""A chat as lines of a terminal: names, formatted text, buttons with numbers to press them by."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

from prompt_toolkit.formatted_text import StyleAndTextTuples

from tests.emulators.telegram.units import Ruler
from tests.emulators.telegram.world import Chat, Draft, Message, User

Fragments = StyleAndTextTuples

NEWEST: Final = 100  # messages that are drawn
STYLES: Final = {
    "bold": "bold",
    "italic": "italic",
    "underline": "underline",
    "strikethrough": "strike",
    "spoiler": "reverse",
    "code": "class:code",
    "pre": "class:code",
    "text_link": "class:link",
    "text_mention": "class:link",
    "url": "class:link",
    "mention": "class:link",
    "bot_command": "class:link",
    "hashtag": "class:link",
    "blockquote": "class:quote",
    "expandable_blockquote": "class:quote",
}
_SERVICE: Final = {
    "forum_topic_created": "opened the topic {name}",
    "new_chat_members": "came in",
    "left_chat_member": "left",
    "migrate_to_chat_id": "made this group a supergroup",
    "migrate_from_chat_id": "made a group this supergroup",
}
_FILES: Final = ("photo", "document", "voice", "audio", "video", "animation", "sticker", "video_note", "location")


def draw_chat(chat: Chat, me: User, bot: User, drafts: Mapping[int | None, Draft]) -> Fragments:
    """The newest messages of a chat, as `me` sees them, with `drafts`, what the bot is just writing, at the end."""
    fragments: Fragments = []
    number = 0
    for message in chat.visible[-NEWEST:]:
        fragments += _head(message, me, bot)
        fragments += _body(message)
        for button in message.buttons:
            number += 1
            fragments.append(("class:button", f" {number} {button['text']} "))
            fragments.append(("", " "))
        fragments += [("", "\n")] * (2 if message.buttons else 1)
    for topic, draft in drafts.items():
        where = f" in {chat.topics.get(topic, topic)}" if topic is not None else ""
        fragments.append(("class:bot", f"{bot.first_name} is writing{where}\n"))
        fragments += [*draw_text(draft.text or "Thinking…", draft.entities), ("", "\n")]
    return fragments


def numbered_buttons(chat: Chat) -> list[tuple[Message, dict[str, Any]]]:
    """The buttons of a chat in the order of their numbers, which begin at 1."""
    return [(message, button) for message in chat.visible[-NEWEST:] for button in message.buttons]


def _head(message: Message, me: User, bot: User) -> Fragments:
    sender = message.sender
    style = "class:bot" if sender is bot else "class:me" if sender is me else "class:other"
    name = sender.first_name if sender else message.chat.title
    clock = time.strftime("%H:%M:%S", time.localtime(message.date))
    notes = [f"#{message.id}", clock]
    if message.topic is not None:
        notes.append(f"in {message.chat.topics.get(message.topic, message.topic)}")
    if message.reply_to is not None:
        notes.append(f"to #{message.reply_to.id}")
    if message.edited is not None:
        notes.append(f"edited {len(message.texts) - 1}×")
    notes += message.reactions
    return [(style, name), ("class:note", f"  {'  '.join(notes)}\n")]


def _body(message: Message) -> Fragments:
    fragments: Fragments = []
    for kind in _FILES:
        if kind in message.content:
            fragments.append(("class:note", f"[{kind}{_file_name(message.content[kind])}]\n"))
    for kind, words in _SERVICE.items():
        if kind in message.content:
            content = message.content[kind]
            name = content.get("name", "") if isinstance(content, dict) else ""
            fragments.append(("class:note", f"{words.format(name=name)}\n"))
    if message.text:
        fragments += [*draw_text(message.text, message.entities), ("", "\n")]
    return fragments


def _file_name(content: Any) -> str:
    name = content.get("file_name", "") if isinstance(content, dict) else ""
    return f" {name}" if name else ""


def draw_text(text: str, entities: list[dict[str, Any]]) -> Fragments:
    """A text with its entities as styles; the address of a link follows it."""
    ruler = Ruler(text)
    spans = [
        (ruler.index(entity["offset"]) or 0, ruler.index(entity["offset"] + entity["length"]) or 0, entity)
        for entity in entities
    ]
    edges = sorted({0, len(text), *(edge for start, end, _ in spans for edge in (start, end))})
    fragments: Fragments = []
    for start, end in pairwise(edges):
        styles = (STYLES.get(entity["type"], "") for first, last, entity in spans if first <= start and end <= last)
        fragments.append((" ".join(style for style in styles if style), text[start:end]))
        for _, last, entity in spans:
            if last == end and entity.get("url"):
                fragments.append(("class:note", f" ({entity['url']})"))
    return fragments
