"""The rights of people, by place.

Source: https://discord.com/developers/docs/topics/permissions: the bits, and how the overwrites of a channel change
what the roles of a member give.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntFlag
from typing import Final


class Permission(IntFlag):
    """The bits that a chat bot meets."""

    ADMINISTRATOR = 1 << 3
    MANAGE_CHANNELS = 1 << 4
    ADD_REACTIONS = 1 << 6
    VIEW_CHANNEL = 1 << 10
    SEND_MESSAGES = 1 << 11
    SEND_TTS_MESSAGES = 1 << 12
    MANAGE_MESSAGES = 1 << 13
    EMBED_LINKS = 1 << 14
    ATTACH_FILES = 1 << 15
    READ_MESSAGE_HISTORY = 1 << 16
    MENTION_EVERYONE = 1 << 17
    USE_APPLICATION_COMMANDS = 1 << 31
    CONNECT = 1 << 20
    SPEAK = 1 << 21
    MANAGE_THREADS = 1 << 34
    CREATE_PUBLIC_THREADS = 1 << 35
    CREATE_PRIVATE_THREADS = 1 << 36
    SEND_MESSAGES_IN_THREADS = 1 << 38
    SEND_VOICE_MESSAGES = 1 << 46


ALL: Final = (1 << 53) - 1
USUAL: Final = int(
    Permission.ADD_REACTIONS
    | Permission.VIEW_CHANNEL
    | Permission.SEND_MESSAGES
    | Permission.EMBED_LINKS
    | Permission.ATTACH_FILES
    | Permission.READ_MESSAGE_HISTORY
    | Permission.USE_APPLICATION_COMMANDS
    | Permission.CONNECT
    | Permission.SPEAK
    | Permission.CREATE_PUBLIC_THREADS
    | Permission.CREATE_PRIVATE_THREADS
    | Permission.SEND_MESSAGES_IN_THREADS
    | Permission.SEND_VOICE_MESSAGES
)
"""What everybody may do in a new guild, as far as chat goes."""

Overwrites = Mapping[int, tuple[int, int]]  # role or member → (allowed, denied)


def effective(everyone: int, base: int, roles: Iterable[int], member: int, overwrites: Overwrites) -> int:
    """The bits of a member in a channel. `base`: what their roles give together; `everyone`: the role that all have;
    `roles`: the ids of their other roles; `member`: their own id."""
    if base & Permission.ADMINISTRATOR:
        return ALL
    allowed, denied = overwrites.get(everyone, (0, 0))
    base = base & ~denied | allowed
    found = [overwrites.get(role, (0, 0)) for role in roles]
    for _, denied in found:
        base &= ~denied
    for allowed, _ in found:
        base |= allowed
    allowed, denied = overwrites.get(member, (0, 0))
    base = base & ~denied | allowed
    if not base & Permission.VIEW_CHANNEL:
        return 0
    return base if base & Permission.SEND_MESSAGES else base & ~_NEEDS_SENDING


_NEEDS_SENDING: Final = int(
    Permission.SEND_TTS_MESSAGES | Permission.MENTION_EVERYONE | Permission.EMBED_LINKS | Permission.ATTACH_FILES
)
