"""The events that a bot asks for, and the permissions that it needs to ask.

Source: https://discord.com/developers/docs/events/gateway#gateway-intents.
"""

from __future__ import annotations

from enum import IntFlag
from typing import Final


class Intent(IntFlag):
    """The bits of `intents` that a chat bot meets."""

    GUILDS = 1 << 0
    GUILD_MEMBERS = 1 << 1
    GUILD_VOICE_STATES = 1 << 7
    GUILD_PRESENCES = 1 << 8
    GUILD_MESSAGES = 1 << 9
    GUILD_MESSAGE_REACTIONS = 1 << 10
    GUILD_MESSAGE_TYPING = 1 << 11
    DIRECT_MESSAGES = 1 << 12
    DIRECT_MESSAGE_REACTIONS = 1 << 13
    DIRECT_MESSAGE_TYPING = 1 << 14
    MESSAGE_CONTENT = 1 << 15


PRIVILEGED: Final = Intent.GUILD_MEMBERS | Intent.GUILD_PRESENCES | Intent.MESSAGE_CONTENT
KNOWN: Final = (1 << 17) - 1 | 1 << 20 | 1 << 21 | 1 << 24 | 1 << 25

_BY_EVENT: Final[dict[str, tuple[int, int]]] = {  # event → (in a guild, in a DM)
    "MESSAGE_CREATE": (Intent.GUILD_MESSAGES, Intent.DIRECT_MESSAGES),
    "MESSAGE_UPDATE": (Intent.GUILD_MESSAGES, Intent.DIRECT_MESSAGES),
    "MESSAGE_DELETE": (Intent.GUILD_MESSAGES, Intent.DIRECT_MESSAGES),
    "MESSAGE_DELETE_BULK": (Intent.GUILD_MESSAGES, Intent.DIRECT_MESSAGES),
    "MESSAGE_REACTION_ADD": (Intent.GUILD_MESSAGE_REACTIONS, Intent.DIRECT_MESSAGE_REACTIONS),
    "MESSAGE_REACTION_REMOVE": (Intent.GUILD_MESSAGE_REACTIONS, Intent.DIRECT_MESSAGE_REACTIONS),
    "TYPING_START": (Intent.GUILD_MESSAGE_TYPING, Intent.DIRECT_MESSAGE_TYPING),
    "GUILD_MEMBER_ADD": (Intent.GUILD_MEMBERS, 0),
    "GUILD_MEMBER_REMOVE": (Intent.GUILD_MEMBERS, 0),
    "VOICE_STATE_UPDATE": (Intent.GUILD_VOICE_STATES, 0),
    "VOICE_SERVER_UPDATE": (0, 0),
    "INTERACTION_CREATE": (0, 0),
    "READY": (0, 0),
    "RESUMED": (0, 0),
    "USER_UPDATE": (0, 0),
}


def wants(intents: int, event: str, *, in_guild: bool) -> bool:
    """Say whether a session with these intents is told of an event."""
    in_guilds, in_dms = _BY_EVENT.get(event, (Intent.GUILDS, 0))
    needed = in_guilds if in_guild else in_dms
    return not needed or bool(intents & needed)
