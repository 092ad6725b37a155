"""Where the workspaces are: each conversation has a folder of its own, for the people who share its session."""

from __future__ import annotations

import re
from hashlib import blake2s
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from msgspec import Struct, field
from pydantic import Field

from gateway.domain.chat import SessionKey
from gateway.domain.settings import Count, Flag, Section

if TYPE_CHECKING:
    from gateway.agent.workspace.workspace import Workspace

_LONGEST_NAME: Final = 120  # of a folder
BACKGROUND: Final = ".background"
UNBOXED: Final = "shell"  # in the home: where commands outside a sandbox start
_LARGE: Final = re.compile(r"(?<!%)(?<!%.)[A-Z]")
_KEPT: Final = ".kept"  # the folder of what was there before: no conversation's name begins with a dot


class WorkspaceSettings(Section):
    """Each conversation has a folder in which the model reads and writes files (docs/tools.md)."""

    enabled: Flag = Field(True, description="give the model the tools for it")
    most_mb: Count = Field(500, description="megabytes that it may hold, and as many again for earlier versions")
    most_files: Count = Field(20_000, description="files and folders that it may hold")
    keep_days: Count = Field(30, description="days for which earlier versions are kept")


class Turn(Struct, frozen=True, kw_only=True):
    """The turn that is about to change something: its id, its session's, and the time in seconds since the epoch."""

    id: str
    session: str
    at: float


class Workspaces(Struct, frozen=True):
    """All of them, in a folder of the gateway's home."""

    root: Path
    settings: WorkspaceSettings = field(default_factory=WorkspaceSettings)

    @property
    def background(self) -> Path:
        """The folder of what commands printed that went on after their turn."""
        return self.root / BACKGROUND

    def folder(self, key: SessionKey) -> Path:
        """The folder of a conversation, made if it is missing. Only the gateway's user may enter it."""
        path = self.root / name_of(key)
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    def of(self, key: SessionKey) -> Workspace:
        """The workspace of a conversation."""
        return self._of(self.folder(key))

    def _of(self, folder: Path) -> Workspace:
        # By name: most conversations need none of it.
        made: Workspace = import_module("gateway.agent.workspace.workspace").opened(
            folder, self.root / _KEPT / folder.name, self.settings
        )
        return made

    def has(self, key: SessionKey) -> bool:
        """Whether a conversation has used its workspace."""
        return (self.root / name_of(key)).exists()

    def remove(self, key: SessionKey) -> bool:
        """Remove all that a conversation has here, and not with others; say whether it had something. Raises
        OSError."""
        if key.is_own:
            return False
        folders = (self.root, self.root / _KEPT, self.background, self.root.parent / UNBOXED)
        places = [folder / name_of(key) for folder in folders]
        there = [each for each in places if each.exists()]
        for place in there:
            import_module("gateway.agent.workspace.tree").wipe(place)
        return bool(there)

    def shed(self, now: float) -> None:
        """Remove all versions whose time is over, also where nobody writes. `now`: seconds since the epoch."""
        if (self.root / _KEPT).exists():
            for kept in (self.root / _KEPT).iterdir():
                self._of(self.root / kept.name).shed(now)


def name_of(key: SessionKey) -> str:
    """The name of a conversation's folder. Slashes are escaped, so no name leaves the folder above. Some file systems
    take large letters for small ones: then the name alone would not tell two conversations apart."""
    name = quote(key.owner.text, safe="=")
    if len(name) <= _LONGEST_NAME and not _LARGE.search(name):
        return name
    return f"{name[:80]}-{blake2s(name.encode(), digest_size=16).hexdigest()}"
