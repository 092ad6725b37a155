"""The part of the store that keeps files. `files:<key>` holds what is known of each by its ref,
`filed:<key>` their order, and `content:<key>:<digest>` a content in pieces, so that a long one holds up
no other step of this process. A file is there when its document is, which is written last."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any, Final

from gateway.domain.chat import SessionKey
from gateway.domain.file import KeptFile
from gateway.store.redis.codec import number
from gateway.store.redis.partitions import partition_of_key
from gateway.store.redis.pinning import PinningStore
from gateway.store.redis.wire import Wire
from gateway.store.shared.documents import file_from, file_json, storable

_PIECE: Final = 768 * 1024  # bytes; a megabyte as text


class FilingStore(PinningStore):
    """Files, seen by all processes as soon as they are kept."""

    async def keep_file(self, key: SessionKey, file: KeptFile, content: bytes) -> KeptFile:
        partition, lane = partition_of_key(key), str(key)
        for place, piece in enumerate(pieces(content)):
            await self._wire.run(partition, "keep_piece", lane, file.digest, str(place), piece)

        def read(reply: list[Any]) -> KeptFile:
            return file_from(reply[0])

        parts = [lane, storable(file.ref), number(file.at), file_json(file)]
        return await self._wire.run(partition, "keep_file", *parts, read=read)

    async def kept_file(self, key: SessionKey, ref: str) -> KeptFile | None:
        document = await self._wire.ask(partition_of_key(key), "HGET", f"files:{key}", storable(ref))
        return file_from(document) if document else None

    async def kept_files(self, key: SessionKey, limit: int) -> list[KeptFile]:
        partition = partition_of_key(key)
        refs = await self._wire.ask(partition, "ZRANGE", f"filed:{key}", "0", str(limit - 1), "REV")
        documents = await self._wire.ask(partition, "HMGET", f"files:{key}", *refs) if refs else []
        return [file_from(document) for document in documents if document]

    async def file_content(self, key: SessionKey, digest: str) -> bytes | None:
        return await content_of(self._wire, partition_of_key(key), str(key), digest)


async def content_of(wire: Wire, partition: int, lane: str, digest: str) -> bytes | None:
    """A content, put together again; None if there is none."""
    name = f"content:{lane}:{storable(digest)}"
    count = int(await wire.ask(partition, "HLEN", name))
    parts = [await wire.ask(partition, "HGET", name, str(place)) for place in range(count)]
    return b"".join(map(b64decode, parts)) if count else None


def pieces(content: bytes) -> Iterator[str]:
    """A content as it is kept, in order; an empty one has one piece."""
    for first in range(0, max(1, len(content)), _PIECE):
        yield b64encode(content[first : first + _PIECE]).decode()
