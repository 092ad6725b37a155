"""Reactions: the bot's signs on messages, and what people put on the bot's messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from discord.http import Route

from adapters.discord import codec
from adapters.discord.connection import ApiClient
from gateway.domain.adapter import SIGNS, Sign
from gateway.domain.chat import Inbound

_PATH: Final = "/channels/{channel_id}/messages/{message_id}/reactions/{emoji}/@me"


async def show(calls: ApiClient, channel: str, message: str, sign: Sign) -> None:
    """Show a reaction in place of the one before. Raises what the library raises."""

    def route(method: str, emoji: str) -> Route:
        return Route(method, _PATH, channel_id=channel, message_id=message, emoji=emoji)

    await calls.request(route("PUT", SIGNS[sign]))
    if sign != "taken":
        await calls.request(route("DELETE", SIGNS["taken"]))


def reaction_inbound(data: Mapping[str, Any], place: codec.Place, me: codec.Me) -> Inbound:
    """Somebody put an emoji on a message, or took it away:
    https://discord.com/developers/docs/events/gateway-events#message-reaction-add."""
    member, emoji = data.get("member") or {}, data["emoji"]
    author = member.get("user") or {"id": data["user_id"]}
    name = str(emoji.get("name") or "❔")
    sign = f":{name}:" if emoji.get("id") else name
    return Inbound(
        event_id=f"{me.id}:reaction:{data['message_id']}:{data['user_id']}:{sign}",
        source=codec.source(place, author, member),
        kind="reaction",
        text=f"{'+' if data['came'] else '-'}{sign}",
        reply_to=data["message_id"],
    )
