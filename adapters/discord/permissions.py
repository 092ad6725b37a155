"""Direct messages to people who ask in a channel where the bot may not write, once a channel."""

from __future__ import annotations

from contextlib import suppress
from hashlib import blake2s
from typing import Final

from discord.errors import HTTPException
from discord.http import Route

from adapters.discord import codec, failures
from adapters.discord.connection import ApiClient
from gateway.domain.chat import Outbound
from gateway.domain.reading import Recent

TOLD: Final = (
    "I cannot write in <#{channel}>: my role there needs the permissions View Channel and Send Messages (in a thread, "
    "Send Messages in Threads). Until I can write in that channel, write to me here."
)
LOCKED: Final = (
    "I cannot write in <#{channel}>: the thread is locked. Someone who may manage threads can unlock the thread, or "
    "give my role Manage Threads. Until I can write in that channel, write to me here."
)
_SENTENCES: Final = {
    failures.MISSING_PERMISSIONS: TOLD,
    failures.MISSING_ACCESS: TOLD,
    failures.THREAD_ARCHIVED: LOCKED,
}


class MissingPermissions:
    """Remembers which channels' people were told."""

    def __init__(self) -> None:
        self._told: Recent[str, None] = Recent()

    async def tell(self, calls: ApiClient, outbound: Outbound, error: HTTPException) -> None:
        """Tell who asked why `outbound` is not shown, if the error says so, and if they take direct messages."""
        asker, channel = codec.asked_by(outbound.answers), outbound.to.chat
        told = _SENTENCES.get(error.code)
        if asker is None or channel in self._told or told is None:
            return
        self._told[channel] = None
        with suppress(*failures.Foreign):
            direct = await calls.start_private_message(asker)
            route = Route("POST", "/channels/{channel_id}/messages", channel_id=direct["id"])
            nonce = blake2s(f"{asker} {channel}".encode(), digest_size=12).hexdigest()
            body = {"content": told.format(channel=channel), "allowed_mentions": codec.NO_PINGS}
            await calls.request(route, json={**body, "nonce": nonce, "enforce_nonce": True})
