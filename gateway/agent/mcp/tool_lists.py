"""The lists of tools and prompts that servers gave last, in files: a start offers them at once, while the servers are
started.

So the first question after a start finds the same tools as the last one before, in the same prompt, and an approval
that a restart interrupted is asked again. The files hold servers' own descriptions, and no secret.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog
from msgspec import DecodeError, Struct
from msgspec.json import decode, encode

from gateway.agent.mcp.server import PromptFacts, ToolFacts
from gateway.runtime.owners import private

log = structlog.get_logger(__name__)

_LARGEST: Final = 8 * 1024 * 1024  # bytes of a file


class KeptList(Struct, frozen=True):
    """A file's content."""

    place: str
    tools: list[ToolFacts] = []
    prompts: list[PromptFacts] = []


class ToolLists(Struct, frozen=True, kw_only=True):
    """The files of one gateway. `folder` is made when there is something to be kept."""

    folder: Path

    def read(self, server: str, place: str) -> KeptList:
        """What a server at this place last offered; nothing if that is unknown."""
        with suppress(OSError, DecodeError):
            path = self._path(server)
            if path.stat().st_size <= _LARGEST and (kept := decode(path.read_bytes(), type=KeptList)).place == place:
                return kept
        return KeptList(place)

    def write(self, server: str, known: KeptList) -> None:
        """Keep a list, whole or not at all."""
        path = self._path(server)
        made = path.with_suffix(f".{os.getpid()}")
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(made, "wb", opener=private) as file:
                file.write(encode(known))
            made.replace(path)
        except OSError as error:
            log.info("mcp_list_not_kept", server=server, error=str(error))

    def _path(self, server: str) -> Path:
        return self.folder / f"{server}.json"


def login_file(folder: Path, server: str) -> Path:
    """The file of a server's login, which holds secrets."""
    return folder / f"{server}.login"
