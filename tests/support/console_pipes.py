"""Tools for the console's tests: pipes that never block the loop, and a gateway that does as told."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
from collections.abc import Callable, Sequence
from typing import Any

from gateway.domain.adapter import Accepted
from gateway.domain.chat import ChatAddress, Inbound, Outbound, OutboundKind, SessionKey
from gateway.runtime.errors import StoreUnavailable


class Pipe:
    """A pipe whose ends close with the test; reading it never blocks the loop."""

    def __init__(self) -> None:
        self.out, self.into = os.pipe()
        self._open = {self.out, self.into}
        self._read = b""  # beyond the last line handed out

    def close(self, *ends: int) -> None:
        for end in ends or (self.out, self.into):
            if end in self._open:
                self._open.remove(end)
                os.close(end)

    async def say(self, data: bytes, *, end: bool = False) -> None:
        def write() -> None:
            with contextlib.suppress(BrokenPipeError):
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(self.into, rest) :]

        await asyncio.to_thread(write)
        if end:
            self.close(self.into)

    async def line(self) -> bytes:
        def read() -> bytes:
            while b"\n" not in self._read:
                self._read += os.read(self.out, 65536)
            line, _, self._read = self._read.partition(b"\n")
            return line + b"\n"

        return await asyncio.to_thread(read)

    async def has_data(self) -> None:
        await asyncio.to_thread(select.select, [self.out], [], [])

    async def everything(self) -> bytes:
        def read() -> bytes:
            return self._read + b"".join(iter(lambda: os.read(self.out, 65536), b""))

        return await asyncio.to_thread(read)


class Gateway:
    """An `accept` that takes everything, or does what `plan` says for each call in turn."""

    def __init__(self, *plan: Callable[[Sequence[Inbound]], Sequence[Accepted]]) -> None:
        self.plan = list(plan)
        self.batches: list[list[Inbound]] = []
        self.taken: list[Inbound] = []
        self.called = asyncio.Event()

    async def __call__(self, batch: Sequence[Inbound]) -> Sequence[Accepted]:
        self.batches.append(list(batch))
        self.called.set()
        results = self.plan.pop(0)(batch) if self.plan else [taken(inbound) for inbound in batch]
        new = {result.event_id for result in results if result.status == "new"}
        self.taken += [inbound for inbound in batch if inbound.event_id in new]
        return results

    @property
    def texts(self) -> list[str]:
        return [inbound.text for inbound in self.taken]


def taken(inbound: Inbound) -> Accepted:
    return Accepted(event_id=inbound.event_id, status="new")


def refuse(batch: Sequence[Inbound]) -> Sequence[Accepted]:
    return [Accepted(event_id=inbound.event_id, status="full") for inbound in batch]


def take_first(batch: Sequence[Inbound]) -> Sequence[Accepted]:
    return [taken(batch[0]), *refuse(batch[1:])]


def break_down(batch: Sequence[Inbound]) -> Sequence[Accepted]:
    raise StoreUnavailable("the disk is full")


def outbound(
    text: str, kind: OutboundKind = "reply", chat: str = "main", id_: str = "o_1", answers: str | None = None
) -> Outbound:
    return Outbound(
        id=id_,
        key=SessionKey(platform="console", chat=chat),
        to=ChatAddress(platform="console", chat=chat),
        kind=kind,
        text=text,
        answers=answers,
    )


def lines(*values: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)
