"""Where the workspaces are: each conversation has a folder of its own, for the people who share its session."""

from __future__ import annotations

from hashlib import blake2s
from pathlib import Path
from typing import Final
from urllib.parse import quote

from msgspec import Struct

from gateway.domain.chat import SessionKey

_LONGEST_NAME: Final = 120  # of a folder


class Workspaces(Struct, frozen=True):
    """All of them, in a folder of the gateway's home."""

    root: Path

    def folder(self, key: SessionKey) -> Path:
        """The folder of a conversation, made if it is missing. Only the gateway's user may enter it."""
        path = self.root / name_of(key)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path


def name_of(key: SessionKey) -> str:
    """The name of a conversation's folder. Slashes are escaped, so no name leaves the folder above."""
    name = quote(str(key), safe="=")
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[:80]}-{blake2s(name.encode(), digest_size=16).hexdigest()}"
