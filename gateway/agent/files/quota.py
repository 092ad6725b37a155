"""How much room a person and a chat have for the files they send.

When it is full, no more are taken; nothing that is kept is removed. The bytes are counted under accounts of the store,
as money is, so all processes count together. A file counts once, however often its turn begins, and no longer when it
is forgotten or purged.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Annotated, Final

from msgspec import Struct
from pydantic import Field

from gateway.domain.chat import KeptFile, SessionKey, Source
from gateway.domain.settings import Section
from gateway.runtime.errors import FileRefused
from gateway.store.port import BudgetStore
from gateway.store.records import Cap, Reservation

_MB: Final = 1_000_000
_NEAR: Final = 0.8  # of a quota: then the person is told once

FULL = (
    "the room for files of {whose} is full ({limit} MB); the files already kept stay, and the operator can raise "
    "`files.{key}`"
)
NEARLY_FULL = (
    "The room for files of {whose} ({limit} MB) is four fifths full. When it is full, I will take no more files."
)
NOT_KEPT = "I could not keep {name}, because {reason}."

Quota = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]


class FileSettings(Section):
    """`files` limits how many megabytes of files people can store; null means no limit. At the limit, Legato refuses
    new files."""

    per_person_mb: Quota | None = Field(500, description="for one person, in all chats of a platform")
    per_chat_mb: Quota | None = Field(2000, description="for one chat, all its people together")


class FileQuotas(Struct, frozen=True, kw_only=True):
    """Counts what people send."""

    store: BudgetStore
    settings: FileSettings

    async def take(
        self, key: SessionKey, source: Source, ref: str, size: int, tell: Callable[[str], Awaitable[None]]
    ) -> None:
        """Count a file of `size` bytes that is about to be kept under `ref`; `tell` shows its sender a sentence when a
        quota is nearly used up. Raises FileRefused with the reason, StoreUnavailable."""
        rooms = self._rooms(source)
        if not rooms:
            return
        reached = await self.store.reserve(Reservation(id=f"file {key} {ref}", amount=size, caps=(*rooms,)))
        if reached is not None:
            raise FileRefused(FULL.format(**rooms[reached.cap]))
        spent = await self.store.spent([cap.account for cap in rooms])
        for (cap, named), used in zip(rooms.items(), spent, strict=True):
            if used - size < _NEAR * cap.limit <= used:
                await tell(NEARLY_FULL.format(**named))

    async def fit(self, source: Source, size: int) -> None:
        """Raise FileRefused if files of `size` bytes together find no room. Raises StoreUnavailable."""
        rooms = self._rooms(source)
        spent = await self.store.spent([cap.account for cap in rooms])
        for (cap, named), used in zip(rooms.items(), spent, strict=True):
            if used + size > cap.limit:
                raise FileRefused(FULL.format(**named))

    def _rooms(self, source: Source) -> dict[Cap, dict[str, str]]:
        """What has a limit, each with the words for it."""
        person, chat = _accounts(source.platform, source.user, source.chat)
        limits = (
            (person, "per_person_mb", "one person", self.settings.per_person_mb),
            (chat, "per_chat_mb", "this chat", self.settings.per_chat_mb),
        )
        rooms: dict[Cap, dict[str, str]] = {}
        for account, key, whose, most in limits:
            if most is not None:
                cap = Cap(name="files", account=account, limit=int(most * _MB))
                rooms[cap] = {"whose": whose, "limit": f"{most:g}", "key": key}
        return rooms


async def give_back(store: BudgetStore, key: SessionKey, gone: Iterable[KeptFile], senders: Mapping[str, str]) -> None:
    """Count files of a key no more. `senders`: who sent each, by its ref; others were never counted. A file that came
    before there were quotas gives nothing. Raises StoreUnavailable."""
    for file in gone:
        if file.ref not in senders:
            continue
        for account in _accounts(key.platform, senders[file.ref], key.chat):
            (used,) = await store.spent([account])
            if left := min(file.size, used):
                cap = Cap(name="files", account=account, limit=used)
                await store.reserve(Reservation(id=f"no file {key} {file.ref}", amount=-left, caps=(cap,)))


def _accounts(platform: str, person: str, chat: str) -> tuple[str, str]:
    of_person, in_chat = (SessionKey(platform=platform, chat=each) for each in (person, chat))
    return f"files of {of_person}", f"files in {in_chat}"
