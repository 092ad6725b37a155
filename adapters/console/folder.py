"""The folder of files that are sent to a terminal. Only its owner can read the folder."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from gateway.domain.chat import Outbound
from gateway.runtime.errors import AdapterError
from gateway.runtime.structs import replace

LARGEST = 50 * 1024 * 1024  # bytes; a terminal limits nothing, a disk does


def filed(files: Path, outbound: Outbound, content: bytes) -> Outbound:
    """Write a row's file; the row then says where it is. Each file is in a folder of its own, named after its row: a
    row that is shown again is written again. Raises AdapterError, to be tried again, if the disk refuses."""
    assert outbound.file is not None, "only a row with a file is sent as one"
    name = Path(outbound.file.name).name  # a name with a path in it stays in the folder, too
    place = files / outbound.id / (name if name not in ("", "..") else "file")
    partial = place.with_name(f".{outbound.id}")
    try:
        for folder in (files.parent, files, place.parent):  # a mode is that of the last one only
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        partial.replace(place)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise AdapterError(f"{place} cannot be written: {error.strerror}") from error
    return replace(outbound, text=f"{outbound.text}\nFile: {place.absolute()}".strip())
