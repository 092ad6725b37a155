"""Chats and their members."""

from __future__ import annotations

import re
from typing import Any, Final

from tests.emulators.telegram import access
from tests.emulators.telegram.cloud import Cloud
from tests.emulators.telegram.parameters import Parameters
from tests.emulators.telegram.refusals import bad
from tests.emulators.telegram.world import Chat, User

_RIGHTS: Final = re.findall(
    r"\w+",
    "is_anonymous can_manage_chat can_delete_messages can_manage_video_chats can_restrict_members "
    "can_promote_members can_change_info can_invite_users can_post_stories can_edit_stories can_delete_stories",
)


def member_json(user: User, status: str) -> dict[str, Any]:
    """`ChatMember`."""
    body: dict[str, Any] = {"user": user.as_json(), "status": status}
    if status == "creator":
        body["is_anonymous"] = False
    if status == "administrator":
        body |= {"can_be_edited": False, **dict.fromkeys(_RIGHTS, True), "is_anonymous": False}
    if status == "kicked":
        body["until_date"] = 0
    return body


def status_of(cloud: Cloud, chat: Chat, user: User) -> str:
    """Return somebody's standing in a chat."""
    if chat.user is not None:
        return "member" if user in (chat.user, cloud.world.bot) else "left"
    return chat.members.get(user.id, "left")


def _forum_of(cloud: Cloud, parameters: Parameters) -> Chat:
    chat = access.chat_of(cloud, parameters)
    if not chat.is_forum:
        raise bad("the chat is not a forum")
    if chat.members.get(cloud.world.bot.id) != "administrator":
        raise bad("not enough rights to create a topic")
    return chat


def create_forum_topic(cloud: Cloud, parameters: Parameters) -> Any:
    """`createForumTopic`: 1 to 128 characters; the bot must be an administrator that may manage topics."""
    chat, name = _forum_of(cloud, parameters), parameters.text("name")
    if not 1 <= len(name) <= 128:
        raise bad("TOPIC_TITLE_EMPTY" if not name else "TOPIC_TITLE_TOO_LONG")
    message = cloud.world.post(chat, cloud.world.bot, {"forum_topic_created": {"name": name, "icon_color": 7322096}})
    message.topic = message.thread = message.id
    chat.topics[message.id] = name
    cloud.journal.changed()
    return {"message_thread_id": message.id, "name": name, "icon_color": 7322096}


def edit_forum_topic(cloud: Cloud, parameters: Parameters) -> Any:
    """`editForumTopic`."""
    chat = _forum_of(cloud, parameters)
    chat.topics[parameters.integer("message_thread_id")] = parameters.text("name")
    cloud.journal.changed()
    return True


def close_forum_topic(cloud: Cloud, parameters: Parameters) -> Any:
    """`closeForumTopic`."""
    chat = _forum_of(cloud, parameters)
    chat.closed_topics.add(parameters.integer("message_thread_id"))
    cloud.journal.changed()
    return True


METHODS: Final = {
    "createForumTopic": create_forum_topic,
    "editForumTopic": edit_forum_topic,
    "closeForumTopic": close_forum_topic,
}
