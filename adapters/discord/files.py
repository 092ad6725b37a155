"""Files from Discord and to it: https://discord.com/developers/docs/reference#uploading-files"""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any, Final

import aiohttp
import discord
import yarl
from discord.http import handle_message_parameters

from adapters.discord import codec, failures
from adapters.discord.connection import ApiClient
from adapters.discord.limits import LARGEST_FETCHED
from adapters.discord.voice import voice_of
from gateway.domain.chat import Attachment, KeptFile
from gateway.runtime.connections import too_large
from gateway.runtime.errors import AdapterError, DeliveryRefused, FileRefused

_PLAIN: Final = discord.MessageFlags()
GONE: Final = "Discord no longer has the file"


async def fetch(calls: ApiClient, file: Attachment) -> bytes:
    """A file's content. Its address is asked for again, because it lasts only a day. Raises FileRefused, or
    AdapterError if another try may succeed."""
    if file.size is not None and file.size > LARGEST_FETCHED:
        raise too_large(LARGEST_FETCHED)
    channel, message, number = file.ref.split("/")
    try:
        found = await calls.get_message(int(channel), int(message))
        address = codec.address_of(found, number)
        if address and address.startswith(codec.CDN) and calls.base_url:  # another server has stickers of its own
            address = str(yarl.URL(calls.base_url).with_path(address.removeprefix(codec.CDN)))
        content = await calls.read(address, LARGEST_FETCHED) if address else None
    except aiohttp.ClientResponseError as error:
        if error.status in (403, 404, 410):
            raise FileRefused(GONE) from None
        raise AdapterError(f"Discord's file server answered {error.status}") from None
    except failures.Foreign as error:
        mapped = failures.mapped_edit(error)
        if isinstance(mapped, DeliveryRefused) or getattr(error, "code", 0) == failures.UNKNOWN_MESSAGE:
            raise FileRefused(GONE) from error
        raise mapped from error
    if address is None:
        raise FileRefused(GONE)
    if content is None:
        raise too_large(LARGEST_FETCHED)
    return content


async def upload(
    calls: ApiClient, channel: str, files: Iterable[tuple[KeptFile, bytes]], payload: dict[str, Any]
) -> Any:
    """Show files with their text; an answer said aloud as a voice message, if it may be one. Raises what the library
    raises."""
    shown = [*files]
    if (voice := voice_of(*shown[0])) is not None:
        try:
            return await _sent(calls, channel, [voice], {**payload, "content": ""}, discord.MessageFlags(voice=True))
        except discord.HTTPException as error:
            if error.code not in (failures.NO_VOICE, failures.MISSING_PERMISSIONS, failures.INVALID_FORM):
                raise
    plain = [discord.File(io.BytesIO(content), filename=file.name or "file") for file, content in shown]
    return await _sent(calls, channel, plain, payload, _PLAIN)


async def _sent(
    calls: ApiClient, channel: str, files: list[discord.File], payload: dict[str, Any], flags: discord.MessageFlags
) -> Any:
    reference = payload.get("message_reference")
    mentions = discord.AllowedMentions(
        everyone=False,
        roles=False,
        users=[discord.Object(int(each)) for each in payload["allowed_mentions"]["users"]],
        replied_user=payload["allowed_mentions"]["replied_user"],
    )
    with handle_message_parameters(
        payload["content"] or None,
        files=files,
        flags=flags,
        nonce=payload["nonce"],
        allowed_mentions=mentions,
        message_reference=reference if reference is not None else discord.utils.MISSING,
    ) as parameters:
        return await calls.send_message(int(channel), params=parameters)
