"""The part of the store port that keeps files. They belong to a key, as pins do: what was sent in one
conversation is never read in another. A content is named by its SHA-256 and never changes, so no lease
is needed: whoever keeps it twice, or too late, keeps the same. Messages and rows name a content and
never hold it; it is loaded only when it is shown."""

from __future__ import annotations

from abc import ABC, abstractmethod

from gateway.domain.chat import SessionKey
from gateway.domain.file import KeptFile


class FileStore(ABC):
    """Four of the port's steps; the rules of `gateway.store.port` hold for them, too."""

    @abstractmethod
    async def keep_file(self, key: SessionKey, file: KeptFile, content: bytes) -> KeptFile:
        """Keep a file and its content, whose digest the file states. The first one kept under a `ref`
        stands, and is returned."""

    @abstractmethod
    async def kept_file(self, key: SessionKey, ref: str) -> KeptFile | None:
        """The file that was kept under this `ref`."""

    @abstractmethod
    async def kept_files(self, key: SessionKey, limit: int) -> list[KeptFile]:
        """The key's files, newest first."""

    @abstractmethod
    async def file_content(self, key: SessionKey, digest: str) -> bytes | None:
        """The content of a file of this key; None if it has none of this digest."""
