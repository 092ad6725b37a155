"""The owner of a file that root makes: a service that is not root has to read what root leaves in its folder."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def leave_to_owner(of: Path, *made: int | Path) -> None:
    """Give files (paths, descriptors) to the owner of `of`, if root runs this. Where root may not, they stay root's."""
    if os.geteuid() == 0:
        owner = of.stat()
        with suppress(PermissionError):
            for each in made:
                os.chown(each, owner.st_uid, owner.st_gid, follow_symlinks=isinstance(each, int))
