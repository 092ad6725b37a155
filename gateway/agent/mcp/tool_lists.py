"""The lists of tools that servers gave last, in files: a start offers them at once, while the servers are started.

So the first question after a start finds the same tools as the last one before, in the same prompt, and an approval
that a restart interrupted is asked again. The files hold servers' own descriptions, and no secret.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import structlog
from msgspec import Struct
from msgspec.structs import asdict

from gateway.agent.mcp.server import ToolFacts

log = structlog.get_logger(__name__)

_LARGEST: Final = 8 * 1024 * 1024  # bytes of a file


class ToolLists(Struct, frozen=True, kw_only=True):
    """The files of one gateway. `folder` is made when there is something to be kept."""

    folder: Path

    def read(self, server: str, place: str) -> list[ToolFacts]:
        """The tools that a server at this place offered last; none if nobody knows."""
        with suppress(OSError, ValueError, TypeError, KeyError):
            path = self._path(server)
            kept = json.loads(path.read_text("utf-8")) if path.stat().st_size <= _LARGEST else {}
            if kept["place"] == place:
                return [_facts(each) for each in kept["tools"]]
        return []

    def write(self, server: str, place: str, tools: Sequence[ToolFacts]) -> None:
        """Keep a list, whole or not at all."""
        path = self._path(server)
        made = path.with_suffix(f".{os.getpid()}")
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            made.write_text(json.dumps({"place": place, "tools": [asdict(each) for each in tools]}), "utf-8")
            made.replace(path)
        except OSError as error:
            log.info("mcp_list_not_kept", server=server, error=str(error))

    def _path(self, server: str) -> Path:
        return self.folder / f"{server}.json"


def _facts(kept: Mapping[str, Any]) -> ToolFacts:
    return ToolFacts(
        name=str(kept["name"]),
        description=str(kept["description"]),
        schema=kept["schema"],
        read_only=kept["read_only"] is True,
        idempotent=kept["idempotent"] is True,
    )
