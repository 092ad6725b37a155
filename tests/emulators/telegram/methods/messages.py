"""Text messages: sending, editing, deleting, drafts, reactions, typing, answers to buttons."""

from __future__ import annotations

import re
from typing import Any, Final

from tests.emulators.telegram import access
from tests.emulators.telegram.cloud import CALLBACK_ANSWERED_WITHIN, Cloud
from tests.emulators.telegram.parameters import Parameters
from tests.emulators.telegram.refusals import bad
from tests.emulators.telegram.world import Draft, Message

ACTION_SHOWN_FOR: Final = 5.0
GENERAL: Final = 1  # the topic of this number: https://core.telegram.org/api/forum#message-threads
DRAFT_SHOWN_FOR: Final = 30.0
ACTIONS: Final = frozenset(
    re.findall(
        r"\w+",
        "typing upload_photo record_video upload_video record_voice upload_voice record_audio upload_audio "
        "upload_document choose_sticker find_location pick_up_location record_video_note upload_video_note cancel",
    )
)
REACTIONS: Final = frozenset(
    re.findall(
        r"\S+",
        "❤ 👍 👎 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤‍🔥 "
        "🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨‍💻 👀 🎃 🙈 😇 😨 "
        "🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡",
    )
)
_NOT_MODIFIED: Final = (
    "message is not modified: specified new message content and reply markup are exactly the same as a current content "
    "and reply markup of the message"
)


def send_message(cloud: Cloud, parameters: Parameters) -> Any:
    """`sendMessage`."""
    content = access.text_of(cloud, parameters)
    markup = access.markup_of(parameters)
    chat = access.chat_of(cloud, parameters, writing=True)
    place = access.place_of(cloud, chat, parameters)
    return cloud.show(chat, content, reply_markup=markup, **place).as_json()


def send_message_draft(cloud: Cloud, parameters: Parameters) -> Any:
    """`sendMessageDraft`: shows a message that is still being written, in private chats only, for thirty seconds or
    until the next one is sent there. An empty text is a sign that the bot thinks. How often is nowhere said, and to
    Telegram it is a kind of typing (https://core.telegram.org/api/bots/ai), so flood control does not count it."""
    content: dict[str, Any] = access.text_of(cloud, parameters) if parameters.text("text").strip() else {"text": ""}
    chat = access.chat_of(cloud, parameters, writing=True)
    if chat.user is None:
        raise bad("TEXTDRAFT_PEER_INVALID")
    number = parameters.integer("draft_id")
    if not number:
        raise bad("RANDOM_ID_INVALID")
    topic = access.place_of(cloud, chat, parameters)["topic"]
    until = cloud.clock.monotonic() + DRAFT_SHOWN_FOR
    chat.drafts[topic] = Draft(id=number, text=content["text"], entities=content.get("entities", []), until=until)
    cloud.journal.changed()
    return True


def edit_message_text(cloud: Cloud, parameters: Parameters) -> Any:
    """`editMessageText`. Buttons that are not sent again are taken away."""
    content = access.text_of(cloud, parameters, too_long="MESSAGE_TOO_LONG")
    markup = access.markup_of(parameters)
    message = _editable(cloud, parameters)
    if "text" not in message.content:
        raise bad("there is no text in the message to edit")
    return _edit(cloud, message, content, markup)


def _editable(cloud: Cloud, parameters: Parameters) -> Message:
    if not parameters.text("chat_id") and not parameters.text("message_id"):
        raise bad(
            "Message identifier is not specified" if not parameters.text("inline_message_id") else "MESSAGE_ID_INVALID"
        )
    chat = access.chat_of(cloud, parameters, writing=True)
    message = access.message_of(chat, parameters, "message to edit")
    other_markup = message.reply_markup is not None and "inline_keyboard" not in message.reply_markup
    if message.sender is not cloud.world.bot or other_markup:
        raise bad("message can't be edited")
    return message


def _edit(cloud: Cloud, message: Message, content: dict[str, Any], markup: dict[str, Any] | None) -> Any:
    cloud.flood.take(message.chat.id, group=message.chat.grouplike)
    if _shown(content) == _shown(message.content) and markup == message.reply_markup:
        raise bad(_NOT_MODIFIED)
    message.content, message.reply_markup = content, markup
    message.edited = cloud.world.date()
    message.texts.append(message.text)
    cloud.journal.changed()
    return message.as_json()


def _shown(content: dict[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in content.items() if name != "link_preview_options"}


def send_chat_action(cloud: Cloud, parameters: Parameters) -> Any:
    """`sendChatAction`: shown for five seconds, or until the bot's next message."""
    action = parameters.text("action").lower()
    if action not in ACTIONS:
        raise bad("Wrong parameter action in request")
    chat = access.chat_of(cloud, parameters, writing=True)
    if not chat.is_forum or parameters.integer("message_thread_id") != GENERAL:  # known to this method alone
        access.place_of(cloud, chat, parameters)
    chat.action = "" if action == "cancel" else action
    chat.action_until = cloud.clock.monotonic() + ACTION_SHOWN_FOR
    cloud.journal.changed()
    return True


def set_message_reaction(cloud: Cloud, parameters: Parameters) -> Any:
    """`setMessageReaction`: a bot has at most one on each message."""
    given = parameters.structure("reaction", "reaction types") or []
    if not isinstance(given, list):
        raise bad("Expected an Array of ReactionType")
    for reaction in given:
        if not isinstance(reaction, dict) or reaction.get("type") not in ("emoji", "custom_emoji"):
            raise bad("Can't parse ReactionType: invalid reaction type specified")
        if reaction["type"] == "emoji" and str(reaction.get("emoji")).replace("\ufe0f", "") not in REACTIONS:
            raise bad("REACTION_INVALID")
    if len(given) > 1:
        raise bad("REACTIONS_TOO_MANY")
    chat = access.chat_of(cloud, parameters)
    message = access.message_of(chat, parameters, "message to react")
    message.reactions = [reaction.get("emoji", "") for reaction in given]
    cloud.journal.changed()
    return True


def answer_callback_query(cloud: Cloud, parameters: Parameters) -> Any:
    """`answerCallbackQuery`: once for each press, and not too late."""
    press = cloud.presses.get(parameters.text("callback_query_id"))
    late = press is not None and cloud.clock.monotonic() - press.at > CALLBACK_ANSWERED_WITHIN
    if press is None or late or press.answer is not None:
        raise bad("query is too old and response timeout expired or query ID is invalid")
    if len(parameters.text("text")) > 200:
        raise bad("MESSAGE_TOO_LONG")
    press.answer = {"text": parameters.text("text"), "show_alert": parameters.flag("show_alert")}
    cloud.journal.changed()
    return True


METHODS: Final = {
    "sendMessage": send_message,
    "sendMessageDraft": send_message_draft,
    "editMessageText": edit_message_text,
    "sendChatAction": send_chat_action,
    "setMessageReaction": set_message_reaction,
    "answerCallbackQuery": answer_callback_query,
}
