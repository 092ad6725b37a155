"""The contents of files, and the facts of memory.

`files:<key>` holds the document of each file by its ref, `filed:<key>` their order, and `content:<key>:<digest>` a
content in pieces, so that a long content holds up no other step of this process. The document is written last: a file
is there when its document is. `facts:<scope>` holds the document of each fact by its id, `facts_version:<scope>` how
often they were changed, and `facts_number:<scope>` their highest number.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from typing import Any, Final

from gateway.domain.chat import SessionKey
from gateway.domain.memory import Fact, Memory, in_order
from gateway.store.redis.partitions import partition_of_key
from gateway.store.redis.wire import Wire
from gateway.store.shared.documents import dumps, storable
from gateway.store.shared.fields import FACT

GUEST_BOOK: Final = "guest_book"  # the folder whose key has no `notes:` before it: earlier versions made it so
_PIECE: Final = 768 * 1024  # bytes; a megabyte as text


async def content_of(wire: Wire, partition: int, lane: str, digest: str) -> bytes | None:
    """A content, put together again; None: there is no such content."""
    name = f"content:{lane}:{storable(digest)}"
    count = int(await wire.ask(partition, "HLEN", name))
    parts = [await wire.ask(partition, "HGET", name, str(place)) for place in range(count)]
    return b"".join(map(b64decode, parts)) if count else None


def pieces(content: bytes) -> Iterator[str]:
    """The pieces of a content in their order; an empty content has one piece."""
    for first in range(0, max(1, len(content)), _PIECE):
        yield b64encode(content[first : first + _PIECE]).decode()


def folder_at(folder: str) -> str:
    """The key of a folder of notes."""
    return folder if folder == GUEST_BOOK else f"notes:{storable(folder)}"


async def read_memory(wire: Wire, scope: SessionKey) -> Memory:
    """A scope's facts. The version is read first, so facts that changed meanwhile have another one."""
    partition = partition_of_key(scope)
    counters = ("facts_version", "facts_number")
    version, number = await wire.ask_all((partition, ("GET", f"{name}:{scope}")) for name in counters)
    documents = await wire.ask(partition, "HVALS", f"facts:{scope}")
    facts = in_order(FACT.of_texts(json.loads(document)) for document in documents)
    return Memory(facts=facts, version=int(version or 0), last_number=int(number or 0))


def fact_texts(fact: Fact) -> tuple[str, str]:
    """A fact's id, and its document."""
    return storable(fact.id), fact_json(FACT.facts(fact))


def fact_json(facts: Mapping[str, Any]) -> str:
    """A fact's document, the same whichever store it comes from."""
    return dumps({**facts, "forgotten": int(facts["forgotten"])})
