"""Files from Discord and to it: https://discord.com/developers/docs/reference#uploading-files"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import aiohttp
import discord
import yarl
from discord.http import Route

from adapters.discord import codec, failures
from adapters.discord.connection import ApiClient
from adapters.discord.limits import LARGEST_FETCHED
from adapters.discord.voice import voice_of
from gateway.domain.chat import Attachment, KeptFile
from gateway.runtime.connections import too_large
from gateway.runtime.errors import AdapterError, DeliveryRefused, FileRefused

_BESIDE: Final = ("content", "embeds", "components")  # what no voice message may have
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
    """Show files with their text; an answer said aloud as a voice message, if it may be one and stands alone. Raises
    what the library raises."""
    shown = [*files]
    voice = None if any(map(payload.get, _BESIDE)) else voice_of(*shown[0])
    if voice is not None:
        alone = {name: value for name, value in payload.items() if name not in _BESIDE}
        try:
            flags = payload["flags"] & codec.SILENT | codec.VOICE
            return await _sent(calls, channel, [voice], {**alone, "flags": flags})
        except discord.HTTPException as error:
            if error.code not in failures.NO_VOICE:
                raise
    plain = [discord.File(io.BytesIO(content), filename=file.name or "file") for file, content in shown]
    return await _sent(calls, channel, plain, payload)


async def _sent(calls: ApiClient, channel: str, files: Sequence[discord.File], payload: Mapping[str, Any]) -> Any:
    told = {**payload, "attachments": [each.to_dict(number) for number, each in enumerate(files)]}
    form: list[dict[str, Any]] = [{"name": "payload_json", "value": json.dumps(told)}]
    for number, each in enumerate(files):
        named = {"filename": each.filename, "content_type": "application/octet-stream"}
        form.append({"name": f"files[{number}]", "value": each.fp, **named})
    route = Route("POST", "/channels/{channel_id}/messages", channel_id=channel)
    return await calls.request(route, form=form, files=files)
