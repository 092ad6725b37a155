"""The rights of a call by place: its chat, the message it names, the topic, the message it answers, and its buttons."""

from __future__ import annotations

import re
from typing import Any, Final

from tests.emulators.telegram.cloud import Cloud
from tests.emulators.telegram.entities import LARGEST_TEXT, Entity, read_entities, settle
from tests.emulators.telegram.parameters import Parameters, whole_number
from tests.emulators.telegram.refusals import bad, forbidden, migrated
from tests.emulators.telegram.world import MEMBERS, Chat, Message

LONGEST_TEXT: Final = 4096
LONGEST_CAPTION: Final = 1024
LONGEST_CALLBACK_DATA: Final = 64  # bytes
MOST_BUTTONS: Final = 100


def chat_of(cloud: Cloud, parameters: Parameters, *, writing: bool = False) -> Chat:
    """The chat that a call names. Raises Refusal if there is none, or the bot may not do there what it wants."""
    name = parameters.text("chat_id")
    if not name:
        raise bad("chat_id is empty")
    chat = cloud.world.find(name)
    if chat is None:
        raise bad("chat not found")
    if chat.user is not None:
        _check_person(cloud, chat, writing)
    else:
        _check_membership(cloud, chat, writing)
    return chat


def _check_person(cloud: Cloud, chat: Chat, writing: bool) -> None:
    assert chat.user is not None
    if not chat.user.started:
        shared = any(chat.user.id in other.members for other in cloud.world.chats.values())
        raise forbidden("bot can't initiate conversation with a user") if shared else bad("chat not found")
    if writing and chat.user.blocked:
        raise forbidden("bot was blocked by the user")


def _check_membership(cloud: Cloud, chat: Chat, writing: bool) -> None:
    status = chat.members.get(cloud.world.bot.id, "left")
    if writing and status == "restricted":
        raise bad("not enough rights to send text messages to the chat")
    if chat.type == "group":
        if writing and chat.migrated_to is not None:
            raise migrated(chat.migrated_to)
        if writing and status == "kicked":
            raise forbidden("bot was kicked from the group chat")
        if writing and status not in MEMBERS:
            raise forbidden("bot is not a member of the group chat")
        return
    if status == "kicked":
        raise forbidden(f"bot was kicked from the {chat.type} chat")
    if status not in MEMBERS and (writing or not chat.username):
        raise forbidden(f"bot is not a member of the {chat.type} chat")
    if chat.type == "channel" and writing and status not in ("administrator", "creator"):
        raise bad("need administrator rights in the channel chat")


def message_of(chat: Chat, parameters: Parameters, what: str) -> Message:
    """The message that a call names; `what` is what it is called if there is none."""
    message = chat.messages.get(parameters.integer("message_id"))
    if message is None or message.deleted:
        raise bad(f"{what} not found")
    return message


def place_of(cloud: Cloud, chat: Chat, parameters: Parameters) -> dict[str, Any]:
    """Return the place of a new message in a chat: `topic` and `reply_to`."""
    topic = _topic(cloud, chat, parameters.integer("message_thread_id"))
    reply_to = _answered(chat, parameters)
    if reply_to is not None and topic is None and reply_to.topic is not None:
        topic = reply_to.topic
    return {"topic": topic, "reply_to": reply_to}


def _topic(cloud: Cloud, chat: Chat, thread: int) -> int | None:
    if thread <= 0:
        return None
    if thread not in chat.topics:  # nor is General, whose number is 1
        is_thread = any(message.thread == thread for message in chat.visible)
        raise bad("Message thread is not a forum topic thread" if is_thread else "Message thread not found")
    if thread in chat.closed_topics and chat.members.get(cloud.world.bot.id) != "administrator":
        raise bad("TOPIC_CLOSED")
    return thread


def _answered(chat: Chat, parameters: Parameters) -> Message | None:
    if "reply_parameters" in parameters:
        given = parameters.structure("reply_parameters", "reply parameters")
        if not isinstance(given, dict):
            raise bad("Object expected as reply parameters")
    else:
        given = {
            "message_id": parameters.integer("reply_to_message_id"),
            "allow_sending_without_reply": parameters.flag("allow_sending_without_reply"),
        }
    if not given or given.get("message_id") == 0:
        return None
    number = whole_number(given.get("message_id"))
    if number is None:
        raise bad('Can\'t find field "message_id"')
    message = chat.messages.get(number)
    if message is None or message.deleted:
        if given.get("allow_sending_without_reply"):
            return None
        raise bad("message to be replied not found")
    if str(given.get("quote", "")) not in message.text:
        raise bad("QUOTE_TEXT_INVALID")
    return message


def text_of(cloud: Cloud, parameters: Parameters, *, too_long: str = "message is too long") -> dict[str, Any]:
    """The content of a text message."""
    if not parameters.text("text"):
        raise bad("Message text is empty")
    preview = parameters.structure("link_preview_options", "link preview options")
    if preview is not None and not isinstance(preview, dict):
        raise bad("Object expected as link preview options")
    text, entities = settle(*_formatted(parameters, "text", "entities"))
    if cloud.settings.measure(text) > LONGEST_TEXT:
        raise bad(too_long)
    content: dict[str, Any] = {"text": text}
    if entities:
        content["entities"] = entities
    if preview and preview.get("is_disabled"):
        content["link_preview_options"] = {"is_disabled": True}
    return content


def _formatted(parameters: Parameters, name: str, entities: str) -> tuple[str, list[Entity]]:
    """A text of a request before it is settled, with the entities that came along. Parse modes are not emulated."""
    text = parameters.text(name)
    if len(text.encode()) > LARGEST_TEXT:
        raise bad("Text is too long")
    if parameters.text("parse_mode"):
        raise bad("Unsupported parse_mode")
    return text, read_entities(parameters.structure(entities, "entities"))


def caption_of(cloud: Cloud, parameters: Parameters) -> dict[str, Any]:
    """The caption of a media message, if it has one."""
    caption, entities = settle(*_formatted(parameters, "caption", "caption_entities"), allow_empty=True)
    if cloud.settings.measure(caption) > LONGEST_CAPTION:
        raise bad("message caption is too long")
    content: dict[str, Any] = {"caption": caption} if caption else {}
    return {**content, "caption_entities": entities} if entities else content


def markup_of(parameters: Parameters) -> dict[str, Any] | None:
    """The `reply_markup` of a call, checked; None if there is none."""
    value = parameters.structure("reply_markup", "reply keyboard markup")
    if value is None:
        return None
    if not isinstance(value, dict):
        raise bad("Object expected as reply markup")
    if "inline_keyboard" not in value:
        return value if value else None
    rows = value["inline_keyboard"]
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise bad('Field "inline_keyboard" of the InlineKeyboardMarkup must be an Array of Arrays')
    for row in rows:
        for button in row:
            _check_button(button)
    if sum(len(row) for row in rows) > MOST_BUTTONS:
        raise bad("reply markup is too long")
    return {"inline_keyboard": [row for row in rows if row]} if any(rows) else None


def _check_button(button: Any) -> None:
    broken = "Can't parse inline keyboard button: "
    if not isinstance(button, dict):
        raise bad(f"{broken}InlineKeyboardButton must be an Object")
    if not isinstance(button.get("text"), str):
        raise bad(f'{broken}Can\'t find field "text"')
    if button.get("url"):
        if not re.match(r"(?i)(https?|tg)://[^\s]+|[\w-]+(\.[\w-]+)+", str(button["url"])):
            raise bad("BUTTON_URL_INVALID")
    elif button.get("callback_data"):
        if len(str(button["callback_data"]).encode()) > LONGEST_CALLBACK_DATA:
            raise bad("BUTTON_DATA_INVALID")
    elif not button.keys() - {"text", "callback_data", "url", "style", "icon_custom_emoji_id"}:
        raise bad(f"{broken}Text buttons are unallowed in the inline keyboard")
