"""Files from Slack and to it: https://docs.slack.dev/messaging/working-with-files"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp

from adapters.slack.calls import APPS, SlackCalls, mapped
from adapters.slack.limits import LARGEST_FETCHED
from gateway.domain.chat import Attachment, KeptFile
from gateway.runtime.connections import at_most, too_large
from gateway.runtime.errors import AdapterError, DeliveryRefused, FileRefused, repeatable

GONE: Final = "Slack no longer has the file"
NO_SCOPE: Final = (
    f"the bot lacks the scope files:read: add it at {APPS}, page OAuth & Permissions, and reinstall the app"
)
_CHUNK: Final = 65_536


async def fetch(calls: SlackCalls, file: Attachment) -> bytes:
    """A file's content. Raises FileRefused, or AdapterError if another try may succeed."""
    if file.size is not None and file.size > LARGEST_FETCHED:
        raise too_large(LARGEST_FETCHED)
    try:
        found: Mapping[str, Any] = (await calls("files.info", file=file.ref))["file"]
    except DeliveryRefused as error:
        raise FileRefused(str(error) if "scope" in str(error) else GONE) from error
    except AdapterError as error:
        raise repeatable(error) from error
    address = str(found.get("url_private_download") or found.get("url_private") or "")
    if not address or not _is_slacks(calls, address):
        raise FileRefused(GONE)
    headers = {"Authorization": f"Bearer {calls.client.token}"}
    try:
        async with calls.http.get(address, headers=headers, allow_redirects=False) as response:
            is_login = response.content_type == "text/html" and file.mime != "text/html"
            if response.status in (301, 302, 303) or is_login:
                raise FileRefused(NO_SCOPE)
            if response.status in (403, 404, 410):
                raise FileRefused(GONE)
            response.raise_for_status()
            content = await at_most(response.content.iter_chunked(_CHUNK), LARGEST_FETCHED)
    except (aiohttp.ClientError, OSError) as error:
        raise repeatable(mapped(error)) from error
    if content is None:
        raise too_large(LARGEST_FETCHED)
    return content


def _is_slacks(calls: SlackCalls, address: str) -> bool:
    """Whether an address is Slack's own, because nobody else may see the token."""
    host, own = urlsplit(address).hostname or "", urlsplit(calls.client.base_url).hostname
    return host == own or host.endswith(".slack.com")


async def upload(calls: SlackCalls, file: KeptFile, content: bytes, **where: Any) -> str:
    """Show a file; gives its id. Raises AdapterError."""
    name = file.name or "file"
    place = await calls("files.getUploadURLExternal", filename=name, length=len(content))
    try:
        async with calls.http.post(place["upload_url"], data=content, proxy=calls.client.proxy) as response:
            response.raise_for_status()
    except (aiohttp.ClientError, OSError) as error:
        raise repeatable(mapped(error)) from error  # nobody has seen it yet
    await calls("files.completeUploadExternal", files=[{"id": place["file_id"], "title": name}], **where)
    return str(place["file_id"])
