"""The files of its own key that a turn's tools may read and send, and the polls that they make in its chat."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from typing import Final

from msgspec import Struct, field
from msgspec.structs import asdict

from gateway.agent.files.kinds import album_of
from gateway.delivery.outbox import Outbox
from gateway.domain.chat import OUTPUT, PICTURE, SEVERAL, VOICE, WORDS, Album, Button, KeptFile, Outbound, all_of
from gateway.runtime.clock import Clock, lasting_id
from gateway.runtime.errors import AdapterError, ToolError
from gateway.runtime.structs import replace
from gateway.runtime.tasks import unbroken
from gateway.store.insist import insist
from gateway.store.port import ReportStore, Store
from gateway.store.records import InboxItem

_LOOKED_AT: Final = 500  # rows of the chat
_LEFT: Final = 50  # files
SENT: Final = "sent"  # begins the `ref` of a file that a tool sent

NOT_HERE = "{platform} cannot show files here. Put the text into the answer instead."
UNKNOWN = "There is no poll with this question here. Repeat the poll's question word for word."
TOO_LARGE = "The file has {size:,} bytes, but {platform} shows at most {most:,}. Send the file in parts."


class TurnFiles(Struct, frozen=True, kw_only=True):
    """The tools' `Files` for the turn of one item. A file that is sent is kept, and becomes a row of the outbox."""

    item: InboxItem
    store: Store
    outbox: Outbox
    clock: Clock
    _waiting: list[tuple[KeptFile, str, str]] = field(default_factory=list)  # file, with what it goes, caption
    _shown: set[str] = field(default_factory=set)  # the refs of those that were shown

    async def listed(self, limit: int) -> Sequence[KeptFile]:
        files = await self.store.kept_files(self.item.key, limit)
        return [file for file in files if not file.ref.startswith((WORDS, VOICE))]  # which stand in messages

    async def content(self, file: KeptFile) -> bytes | None:
        return await self.store.file_content(self.item.key, file.digest)

    async def output(self, name: str) -> KeptFile | None:
        return await self.store.kept_file(self.item.key, f"{OUTPUT}{name}")

    async def keep(self, tool: str, text: str) -> str:
        """Keep a tool's result. Equal results are one file, and no two files share a name."""
        content, digest = await asyncio.to_thread(_encoded, text)
        name = f"{tool}-{digest[:12]}.txt"
        file = KeptFile(
            ref=f"{OUTPUT}{name}",
            digest=digest,
            name=name,
            mime="text/plain; charset=utf-8",
            size=len(content),
            at=self.clock.now(),
        )
        await insist(lambda: self.store.keep_file(self.item.key, file, content), clock=self.clock, what="keep_file")
        return name

    async def add(self, name: str, mime: str, content: bytes) -> KeptFile:
        """Keep a file of the key. Within a turn, the same content is kept once under a name."""
        return await self._kept("kept", name, mime, content)

    def must_show(self, size: int) -> None:
        platform = self.item.inbound.source.platform
        most = self.outbox.largest_file(platform)
        if most is None:
            raise ToolError(NOT_HERE.format(platform=platform.capitalize()))
        if size > most:
            raise ToolError(TOO_LARGE.format(size=size, platform=platform.capitalize(), most=most))

    async def send(self, name: str, mime: str, content: bytes, caption: str = "", *, kind: str = SENT) -> None:
        """Show a file in the chat, with a caption. A turn shows the same file under the same name once, because a model
        that hears of an unknown outcome may repeat its call. Raises ToolError where the platform shows no files."""
        await self.send_together([(name, mime, content)], caption, kind=kind)

    async def send_together(
        self, files: Sequence[tuple[str, str, bytes]], caption: str = "", *, kind: str = SENT
    ) -> None:
        self.must_show(max(len(content) for _, _, content in files))
        for place, (name, mime, content) in enumerate(files):
            file = await self._kept(kind, name, mime, content)
            self._waiting.append((file, album_of(content), "" if place else caption))

    async def show(self) -> None:
        if self._waiting:
            await unbroken(self._show())  # or a /stop would leave calls whose results say that it is on its way

    async def _show(self) -> None:
        if self.item.attempts > 1:  # a model that hears of an unknown outcome repeats its calls, some of them alone
            self._shown.update(await self._shown_before())
        rows, most = list[Outbound](), self.outbox.album(self.item.inbound.source.platform)
        new = dict[str, tuple[KeptFile, str, str]]()
        for each in self._waiting:
            if each[0].ref not in self._shown:
                new.setdefault(each[0].ref, each)
        for _, group in groupby(new.values(), key=itemgetter(1)):
            together = [*group]
            while together:
                rows += await self._rows(together[:most])
                del together[:most]
        await insist(lambda: self.outbox.emit(rows), clock=self.clock, what="emit")
        self._shown.update(new)
        self._waiting.clear()

    async def _rows(self, together: Sequence[tuple[KeptFile, str, str]]) -> list[Outbound]:
        (first, *others), _, captions = zip(*together, strict=True)
        shown, row_id = first, first.ref.partition(":")[2]
        if others:
            several = captions if sum(map(bool, captions)) > 1 else ()
            shown = Album(**asdict(first), others=tuple(others), captions=several)
            row_id = lasting_id("o", row_id, *(each.ref for each in others))
        return await self.outbox.with_file(self.item, shown, all_of(captions), row_id)

    async def _shown_before(self) -> set[str]:
        rows = await self.store.outbox(self.item.inbound.source.address, _LOOKED_AT)
        return {file.ref for row in rows for file in row.files}

    async def show_left(self) -> None:
        for file in reversed(await self.store.kept_files(self.item.key, _LEFT)):
            if file.ref.startswith((SENT, PICTURE)) and file.at >= self.item.accepted_at:
                content = await self.content(file) or b""
                self._waiting.append((file, album_of(content), ""))
        await self.show()

    async def _kept(self, why: str, name: str, mime: str, content: bytes) -> KeptFile:
        digest = sha256(content).hexdigest()
        row_id = lasting_id("o", self.item.key, self.item.inbound.event_id, name, digest)
        file = KeptFile(
            ref=f"{why}:{row_id}", digest=digest, name=name, mime=mime, size=len(content), at=self.clock.now()
        )
        return await insist(
            lambda: self.store.keep_file(self.item.key, file, content), clock=self.clock, what="keep_file"
        )


class TurnPolls(Struct, frozen=True, kw_only=True):
    """The tools' `Polls` for the turn of one item. A poll is a row of the outbox."""

    item: InboxItem
    store: ReportStore
    outbox: Outbox
    clock: Clock

    async def make(self, question: str, answers: Sequence[str], *, several: bool) -> None:
        """Show a poll, once a turn."""
        text = "\n".join([question, *(f"{number}. {answer}" for number, answer in enumerate(answers, 1))])
        poll_id = lasting_id("o", self.item.key, self.item.inbound.event_id, text)
        (row,) = self.outbox.rows(self.item, "poll", text, first_id=poll_id, parts=[text])
        buttons = tuple((Button(label=answer, token=SEVERAL if several else ""),) for answer in answers)
        await insist(lambda: self.outbox.emit([replace(row, buttons=buttons)]), clock=self.clock, what="emit")

    async def close(self, question: str) -> str:
        rows = await self.store.outbox(self.item.inbound.source.address, _LOOKED_AT)
        for row in rows:
            if row.kind == "poll" and row.key == self.item.key and row.text.partition("\n")[0] == question:
                try:
                    return await self.outbox.close_poll(row)
                except AdapterError as error:
                    raise ToolError(f"I could not end the poll: {error}") from error
        raise ToolError(UNKNOWN)


def _encoded(text: str) -> tuple[bytes, str]:
    """A text's bytes, and their digest."""
    content = text.encode("utf-8", "replace")
    return content, sha256(content).hexdigest()
