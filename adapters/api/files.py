"""Pictures, recordings and documents of messages, kept before the message is taken."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from adapters.api.shapes import ApiError, Piece, invalid
from gateway.domain.chat import Attachment, Source
from gateway.domain.views import Views
from gateway.runtime.errors import FileRefused

LARGEST: Final = 20_000_000  # bytes, as on other platforms
MOST: Final = 32  # files of a message
_NO_NAME: Final = re.compile(r"[\x00-\x1f\x7f/\\\ud800-\udfff]")


async def kept(views: Views, source: Source, pieces: Sequence[Piece]) -> tuple[Attachment, ...]:
    """Keep the files of a message. Raises ApiError, StoreUnavailable."""
    if len(pieces) > MOST:
        raise invalid("messages", f"A message may hold at most {MOST} files, but this message has {len(pieces):,}.")
    return tuple([await _kept(views, source, piece) for piece in pieces])


async def _kept(views: Views, source: Source, piece: Piece) -> Attachment:
    mime, content = await asyncio.to_thread(piece.content)
    if len(content) > LARGEST:
        text = f"A file may have at most {LARGEST:,} bytes, but this file has {len(content):,}."
        raise ApiError(413, text, code="file_too_large", param=piece.param)
    name = _NO_NAME.sub("_", piece.name)[:200]
    ref = (await asyncio.to_thread(sha256, content)).hexdigest()[:24]
    try:
        await views.keep(source, ref, name, mime, content)
    except FileRefused as error:
        raise ApiError(413, f"The file cannot be kept: {error}.", code="file_refused", param=piece.param) from error
    return Attachment(kind=piece.kind, ref=ref, name=name, mime=mime, size=len(content))
