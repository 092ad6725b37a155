"""Files that nobody else may read, whatever the umask is. Files that root makes get the owner of the folder, because a
service that is not root must be able to read them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from gateway.runtime import posix


def private(path: str, flags: int) -> int:
    """Open a file, as the `opener` of `open`: a new one is only for its owner."""
    return os.open(path, flags | posix.OWN, 0o600)


def make_private(folder: Path) -> None:
    """Make a folder only for its owner, and missing ones above it. Raises OSError."""
    for each in reversed([folder, *folder.parents]):
        if not each.exists():
            each.mkdir(mode=0o700, exist_ok=True)


def leave_to_owner(of: Path, *made: int | Path) -> None:
    """Give files (paths, descriptors) to the owner of `of`, if root runs this. Where root may not, they stay root's."""
    if posix.user() == 0:
        owner = of.stat()
        with suppress(PermissionError):
            for each in made:
                os.chown(each, owner.st_uid, owner.st_gid, follow_symlinks=isinstance(each, int))
