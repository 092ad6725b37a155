"""The files that a turn's tools may read and send: those of its own key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from gateway.delivery.outbox import Outbox
from gateway.domain.file import KeptFile
from gateway.runtime.clock import Clock, lasting_id
from gateway.runtime.errors import ToolError
from gateway.store.insist import insist
from gateway.store.port import Store
from gateway.store.records import InboxItem

NOT_HERE = "{platform} shows no files here; put the text into your answer instead."
TOO_LARGE = "That file has {size:,} bytes, and {platform} shows {most:,} at most; send it in parts."


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFiles:
    """The tools' `Files` for the turn of one item. A file that is sent is kept, and is a row of the outbox."""

    item: InboxItem
    store: Store
    outbox: Outbox
    clock: Clock

    async def listed(self, limit: int) -> Sequence[KeptFile]:
        """The key's files, newest first."""
        return await self.store.kept_files(self.item.key, limit)

    async def content(self, file: KeptFile) -> bytes | None:
        """The content of one of them."""
        return await self.store.file_content(self.item.key, file.digest)

    async def send(self, name: str, mime: str, content: bytes, caption: str = "") -> None:
        """Show a file in the chat, with a caption. A turn shows the same file under the same name once, because a model
        that hears of an unknown outcome may repeat its call. Raises ToolError where the platform shows no files."""
        platform = self.item.inbound.source.platform.capitalize()
        most = self.outbox.largest_file(self.item.inbound.source.platform)
        if most is None:
            raise ToolError(NOT_HERE.format(platform=platform))
        if len(content) > most:
            raise ToolError(TOO_LARGE.format(size=len(content), platform=platform, most=most))
        digest = sha256(content).hexdigest()
        row_id = lasting_id("o", self.item.key, self.item.inbound.event_id, name, digest)
        file = KeptFile(
            ref=f"sent:{row_id}", digest=digest, name=name, mime=mime, size=len(content), at=self.clock.now()
        )
        kept = await insist(
            lambda: self.store.keep_file(self.item.key, file, content), clock=self.clock, what="keep_file"
        )
        rows = await self.outbox.with_file(self.item, kept, caption, row_id)
        await insist(lambda: self.outbox.emit(rows), clock=self.clock, what="emit")
