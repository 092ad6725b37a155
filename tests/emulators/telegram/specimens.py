"""One update of every kind that the Bot API has, for bots that must not stumble over what they do not use.

Source: https://core.telegram.org/bots/api#update.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.emulators.telegram.world import Chat, User

Update = tuple[str, dict[str, Any]]
_ADDRESS = {
    "country_code": "DE",
    "state": "",
    "city": "Berlin",
    "street_line1": "a",
    "street_line2": "",
    "post_code": "1",
}


def specimens(chat: Chat, user: User, date: int) -> Iterator[Update]:
    """Kind and body of each, about a private chat and its person. `date` is Unix time."""
    sender, where = user.as_json(), chat.as_json()
    message = {"message_id": 900_001, "date": date, "chat": where, "from": sender}
    channel = {"id": -1_000_000_000_999, "type": "channel", "title": "News"}
    post = {"message_id": 7, "date": date, "chat": channel, "sender_chat": channel}
    yield "message", {**message, "dice": {"emoji": "🎲", "value": 4}}
    yield "edited_message", {**message, "text": "Changed.", "edit_date": date}
    yield "channel_post", {**post, "text": "News."}
    yield "edited_channel_post", {**post, "text": "Newer news.", "edit_date": date}
    yield from _queries(sender)
    yield from _payments(sender)
    yield from _polls(sender)
    yield from _members(sender, where, date)
    yield from _chat_events(sender, where, channel, date)
    yield from _business(sender, where, message, date)


def _queries(sender: dict[str, Any]) -> Iterator[Update]:
    yield "inline_query", {"id": "1", "from": sender, "query": "cats", "offset": ""}
    yield "chosen_inline_result", {"result_id": "1", "from": sender, "query": "cats"}
    yield "callback_query", {"id": "2", "from": sender, "chat_instance": "3", "inline_message_id": "x", "data": "y"}


def _payments(sender: dict[str, Any]) -> Iterator[Update]:
    yield "shipping_query", {"id": "3", "from": sender, "invoice_payload": "p", "shipping_address": _ADDRESS}
    order = {"currency": "XTR", "total_amount": 1, "invoice_payload": "p"}
    yield "pre_checkout_query", {"id": "4", "from": sender, **order}
    yield "purchased_paid_media", {"from": sender, "paid_media_payload": "p"}


def _polls(sender: dict[str, Any]) -> Iterator[Update]:
    option = {"persistent_id": "0", "text": "Yes", "voter_count": 1}
    yield (
        "poll",
        {
            "id": "5",
            "question": "Really?",
            "options": [option],
            "total_voter_count": 1,
            "is_closed": False,
            "is_anonymous": True,
            "type": "regular",
            "allows_multiple_answers": False,
            "allows_revoting": False,
            "members_only": False,
        },
    )
    yield "poll_answer", {"poll_id": "5", "user": sender, "option_ids": [0], "option_persistent_ids": ["0"]}


def _members(sender: dict[str, Any], where: dict[str, Any], date: int) -> Iterator[Update]:
    member = {"user": sender, "status": "member"}
    left = {"user": sender, "status": "left"}
    change = {"chat": where, "from": sender, "date": date, "old_chat_member": left, "new_chat_member": member}
    yield "my_chat_member", change
    yield "chat_member", change
    yield "chat_join_request", {"chat": where, "from": sender, "user_chat_id": sender["id"], "date": date}


def _chat_events(sender: dict[str, Any], where: dict[str, Any], channel: dict[str, Any], date: int) -> Iterator[Update]:
    source = {"source": "premium", "user": sender}
    boost = {"boost_id": "6", "add_date": date, "expiration_date": date + 60, "source": source}
    yield "chat_boost", {"chat": channel, "boost": boost}
    yield "removed_chat_boost", {"chat": channel, "boost_id": "6", "remove_date": date, "source": source}
    thumb = {"type": "emoji", "emoji": "👍"}
    reacted = {"chat": where, "message_id": 1, "date": date}
    yield "message_reaction", {**reacted, "user": sender, "old_reaction": [], "new_reaction": [thumb]}
    yield "message_reaction_count", {**reacted, "reactions": [{"type": thumb, "total_count": 1}]}


def _business(sender: dict[str, Any], where: dict[str, Any], message: dict[str, Any], date: int) -> Iterator[Update]:
    connection = {"id": "b", "user": sender, "user_chat_id": sender["id"], "date": date, "is_enabled": True}
    yield "business_connection", connection
    yield "business_message", {**message, "business_connection_id": "b", "text": "Hello."}
    yield "edited_business_message", {**message, "business_connection_id": "b", "text": "Hi.", "edit_date": date}
    yield "deleted_business_messages", {"business_connection_id": "b", "chat": where, "message_ids": [900_001]}
    yield (
        "managed_bot",
        {"user": sender, "bot": {"id": 77, "is_bot": True, "first_name": "Child", "username": "child_bot"}},
    )
    yield "guest_message", {**message, "text": "May I?", "guest_query_id": "g"}
